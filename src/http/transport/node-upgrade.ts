// Converts a Node.js upgrade request: it becomes a WebSocket, or is answered like any other request and closed.
//
// Invariants
// 1. Before it is accepted, only the response that refuses it is written to the connection, and then it is closed.
// 2. A token among its subprotocols is never sent back.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { Denial } from "../auth/guard-denial.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import { type HttpAnswer, type HttpRequest, type MessageSocket, SWITCHED, type Upgrade } from "./http-exchange.ts";
import { rawAnswer } from "./listener-headers.ts";
import { GONE, headerOf, targetFlaw, targetOf } from "./node-exchange.ts";

export interface UpgradeArrival {
  readonly id: string;
  readonly via: "tcp" | "socket";
  readonly message: IncomingMessage;
  readonly socket: Duplex;
  /** The bytes after the request. */
  readonly head: Buffer;
  readonly onAdmitted?: HttpRequest["onAdmitted"];
}

/** The supported subprotocols. A client that offers some, and gets none in the response, closes the connection. */
const SUPPORTED: ReadonlySet<string> = new Set(["belay.acp", "acp", "belay.stream"]);

export class NodeUpgrade implements HttpRequest, Upgrade {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly via: "tcp" | "socket";
  readonly onAdmitted: HttpRequest["onAdmitted"];
  readonly #arrival: UpgradeArrival;
  readonly #controller = new AbortController();

  constructor(arrival: UpgradeArrival) {
    const { id, via, message } = arrival;
    const { path, query } = targetOf(message);
    this.#arrival = arrival;
    this.id = id;
    this.via = via;
    this.onAdmitted = arrival.onAdmitted;
    this.method = message.method ?? "";
    this.path = path;
    this.query = query;
  }

  /** Set if the request asks for a WebSocket. */
  get upgrade(): Upgrade | undefined {
    return wantsWebSocket(this.#arrival.message) ? this : undefined;
  }

  get flaw(): Denial | undefined {
    return targetFlaw(this.#arrival.message);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  header(name: string): string | undefined {
    return headerOf(this.#arrival.message, name);
  }

  /** Rejects: the bytes after the request belong to the new protocol. */
  body(): Promise<string> {
    return Promise.reject(new Denial(400, "invalid", "An upgrade request cannot have a body."));
  }

  async accept(headers: Readonly<Record<string, string>>): Promise<MessageSocket> {
    const { message, socket, head } = this.#arrival;
    // Imported on demand.
    const { WebSocketServer } = await import("ws");
    const server = new WebSocketServer({
      ...{ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: BODY_BYTES_MAX },
      handleProtocols: (offered) => [...offered].find((one) => SUPPORTED.has(one)) ?? false,
    });
    let made: MessageSocket | undefined;
    let flaw: Denial | undefined;
    server.on("headers", (lines) => {
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    });
    server.on("wsClientError", (error) => {
      flaw = new Denial(400, "invalid", `This is not a valid WebSocket handshake: ${error.message}.`);
    });
    server.handleUpgrade(message, socket, head, (webSocket) => {
      made = webSocket;
    });
    if (made === undefined) throw flaw ?? GONE;
    return made;
  }

  /** Refuses the upgrade and closes the connection: the protocol of the bytes that follow is unknown. */
  refuse(answer: HttpAnswer): void {
    const { socket } = this.#arrival;
    if (answer === SWITCHED) return;
    const { body = "" } = answer;
    if (typeof body === "object") void body.return?.().catch(() => {});
    const sent = typeof body === "string" ? { ...answer, body } : noUpgrade().answer(this.id);
    socket.end(rawAnswer(sent, this.id), () => socket.destroy());
  }

  leave(): void {
    this.#controller.abort(GONE);
  }
}

/** Whether the request asks for a WebSocket. Upgrades to other protocols are ignored. */
export const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

const noUpgrade = (): Denial =>
  new Denial(400, "invalid", "An event stream cannot be requested with an upgrade to another protocol.", {
    hint: "Send the request without `Upgrade`.",
  });
