// A WebSocket with faults, in place of the platform's: the next stop that is sent over it is held, sent again later, or
// loses its answer together with the connection. Faults are planned by the origin of the server.
import type { Gate } from "../../../src/testing/gate.ts";

export type SocketFault =
  | { readonly kind: "hold-request" | "copy-later"; readonly until: Gate }
  | { readonly kind: "drop-answer" };

type Message = { readonly type: string; readonly id?: string; readonly method?: string; readonly path?: string };

export class FaultySocket {
  static readonly #planned = new Map<string, { readonly fault: SocketFault; readonly met: () => void }>();
  static readonly #awaited = new Map<string, () => void>();
  readonly #socket: WebSocket;
  readonly #origin: string;
  readonly #stops = new Set<string | undefined>();
  #dropped: string | undefined;

  /** Resolves when a stop has met it. */
  static plan(url: string, fault: SocketFault): Promise<void> {
    return new Promise((met) => void FaultySocket.#planned.set(new URL(url).host, { fault, met }));
  }

  /** Resolves when a stop that was sent to this server is answered. */
  static stopAnswered(url: string): Promise<void> {
    return new Promise((answered) => void FaultySocket.#awaited.set(new URL(url).host, answered));
  }

  /** What met no stop does not meet that of a later server with the same address. */
  static forget(url: string): void {
    FaultySocket.#planned.delete(new URL(url).host);
    FaultySocket.#awaited.delete(new URL(url).host);
  }

  constructor(url: string, protocols: string[]) {
    this.#origin = new URL(url).host;
    this.#socket = new RealSocket(url, protocols);
  }

  addEventListener(type: "open" | "close" | "error" | "message", call: (event: { data: unknown }) => void): void {
    this.#socket.addEventListener(type, (event) => {
      const data = "data" in event ? event.data : undefined;
      const message = data === undefined ? undefined : (JSON.parse(String(data)) as Message);
      const isAnswer = message?.type === "answer";
      if (isAnswer && this.#dropped !== undefined && message.id === this.#dropped) return this.close();
      if (isAnswer && this.#stops.has(message.id)) FaultySocket.#awaited.get(this.#origin)?.();
      call({ data });
    });
  }

  send(text: string): void {
    const message = JSON.parse(text) as Message;
    const isStop = message.type === "request" && message.method !== "GET";
    if (isStop) this.#stops.add(message.id);
    const planned = isStop ? FaultySocket.#planned.get(this.#origin) : undefined;
    if (planned === undefined) {
      this.#socket.send(text);
      return;
    }
    FaultySocket.#planned.delete(this.#origin);
    const { fault, met } = planned;
    met();
    if (fault.kind !== "hold-request") this.#socket.send(text);
    if (fault.kind === "drop-answer") this.#dropped = message.id;
    else {
      const later = fault.kind === "copy-later" ? JSON.stringify({ ...message, id: `${message.id}-copy` }) : text;
      void fault.until.opened.then(() => {
        if (this.#socket.readyState === RealSocket.OPEN) this.#socket.send(later);
      });
    }
  }

  close(): void {
    this.#socket.close();
  }
}

const RealSocket = globalThis.WebSocket;
