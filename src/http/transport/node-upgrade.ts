// A request of Node's that asks for a WebSocket: it becomes one, or it is answered like any other and let go.
//
// Invariants
// 1. Until it is accepted nothing is written to its connection but the answer that refuses it, which is the last.
// 2. A token among its subprotocols is never said back.
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
  /** What came behind the request. */
  readonly head: Buffer;
  readonly onAdmitted?: HttpRequest["onAdmitted"];
}

/** Subprotocols that we say we speak. Who offers any, and is told none, gives up. */
const SPOKEN: ReadonlySet<string> = new Set(["belay.acp", "acp", "belay.stream"]);

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

  /** Itself, if it is a WebSocket that is asked for. */
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

  /** What follows such a request belongs to what it asks to become. */
  body(): Promise<string> {
    return Promise.reject(new Denial(400, "invalid", "A request that asks for another protocol has no body here."));
  }

  async accept(headers: Readonly<Record<string, string>>): Promise<MessageSocket> {
    const { message, socket, head } = this.#arrival;
    // Loaded when somebody needs it.
    const { WebSocketServer } = await import("ws");
    const server = new WebSocketServer({
      ...{ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: BODY_BYTES_MAX },
      handleProtocols: (offered) => [...offered].find((one) => SPOKEN.has(one)) ?? false,
    });
    let made: MessageSocket | undefined;
    let flaw: Denial | undefined;
    server.on("headers", (lines) => {
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    });
    server.on("wsClientError", (error) => {
      flaw = new Denial(400, "invalid", `This does not ask for a WebSocket as it should: ${error.message}.`);
    });
    server.handleUpgrade(message, socket, head, (webSocket) => {
      made = webSocket;
    });
    if (made === undefined) throw flaw ?? GONE;
    return made;
  }

  /** Says no, and ends the connection: nobody can tell what its sender takes the rest of it for. */
  refuse(answer: HttpAnswer): void {
    const { socket } = this.#arrival;
    if (answer === SWITCHED) return;
    const { body = "" } = answer;
    if (typeof body === "object") void body.return?.().catch(() => {});
    const said = typeof body === "string" ? { ...answer, body } : noUpgrade().answer(this.id);
    socket.end(rawAnswer(said, this.id), () => socket.destroy());
  }

  leave(): void {
    this.#controller.abort(GONE);
  }
}

/** Whatever else somebody would like to speak, HTTP will do. */
export const wantsWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

const noUpgrade = (): Denial =>
  new Denial(400, "invalid", "A stream of events cannot be asked for together with another protocol.", {
    hint: "Ask without `Upgrade`.",
  });
