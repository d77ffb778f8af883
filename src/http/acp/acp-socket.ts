// A WebSocket as the SDK is given it: text only, alive, and let go when it is not.
//
// Invariants
// 1. Once it is cut, nothing that comes in on it reaches anybody.
// 2. It ends within a bound of being closed, whether or not the other side plays along.
// 3. One that says nothing at first, or gives no sign of life later, is ended.
import { isUnparsable } from "../../core/json-depth.ts";
import type { Clock } from "../../ports/clock.ts";
import { ACP_GREETING_MS, ACP_PING_MS, ACP_UNREAD_BYTES_MAX, ACP_WAITING_BYTES_MAX, DRAIN_MS } from "../limits.ts";
import type { MessageSocket } from "../transport/http-exchange.ts";

type Listener = (...given: unknown[]) => void;

/** Why it is closed, in the numbers of RFC 6455 and a word of ours. */
export interface CloseReason {
  readonly code: number;
  readonly reason: string;
}

export const CLOSE_REASONS = {
  shutdown: { code: 1001, reason: "shutting_down" },
  revoked: { code: 1008, reason: "unauthenticated" },
  silent: { code: 1008, reason: "initialize did not come" },
  binary: { code: 1003, reason: "messages are text" },
  nested: { code: 1007, reason: "nested too deeply" },
} as const satisfies Readonly<Record<string, CloseReason>>;

/** The SDK has one bound for what waits in either direction; we have two, and say so by a constant more of the one. */
const HEAD_START_BYTES = ACP_WAITING_BYTES_MAX - ACP_UNREAD_BYTES_MAX;

export class AcpSocket {
  /** Resolves when it has ended on both sides. */
  readonly closed: Promise<void>;
  readonly #socket: MessageSocket;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Set<Listener>>();
  #closeReason: CloseReason | undefined;
  #cut = false;
  #heard = false;
  #greeted = false;
  #dispose: () => void;
  #cancelEnd: (() => void) | undefined;

  constructor(socket: MessageSocket, clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#socket = socket;
    this.#clock = clock;
    this.#dispose = clock.after(ACP_GREETING_MS, () => this.#awaitGreeting(), "idle");
    socket.on("message", (data, isBinary) => this.#arrive(data, isBinary));
    socket.on("pong", () => {
      this.#heard = true;
    });
    socket.on("error", (error) => this.#tell("error", error));
    socket.on("close", () => {
      this.#dispose();
      this.#cancelEnd?.();
      this.#tell("close");
      resolve();
    });
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  /** Whether anything was ever said on it. */
  get isGreeted(): boolean {
    return this.#greeted;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount + HEAD_START_BYTES;
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  /** After what is on its way. */
  close(code?: number, reason?: string): void {
    const said = this.#closeReason ?? { code, reason };
    this.#socket.close(said.code, said.reason);
    this.#cancelEnd ??= this.#clock.after(DRAIN_MS, () => this.#socket.terminate(), "idle");
  }

  on(type: string, listener: Listener): this {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return this;
  }

  off(type: string, listener: Listener): this {
    this.#listeners.get(type)?.delete(listener);
    return this;
  }

  /** How it will have been closed, by whomever. */
  partWith(parting: CloseReason): void {
    this.#closeReason ??= parting;
  }

  /** At once: for whoever uses it, it has ended already. */
  cut(parting: CloseReason): void {
    if (this.#cut) return;
    this.partWith(parting);
    this.close();
    this.#tell("close");
    this.#cut = true;
  }

  #arrive(data: unknown, isBinary: boolean): void {
    this.#heard = true;
    this.#greeted = true;
    if (isBinary) this.cut(CLOSE_REASONS.binary);
    else if (isUnparsable(String(data))) this.cut(CLOSE_REASONS.nested);
    else this.#tell("message", data, false);
  }

  #awaitGreeting(): void {
    if (!this.#greeted) this.cut(CLOSE_REASONS.silent);
    else this.#ping();
  }

  #ping(): void {
    this.#heard = false;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
    this.#dispose = this.#clock.after(
      ACP_PING_MS,
      () => {
        if (this.#heard) this.#ping();
        else this.#socket.terminate();
      },
      "idle",
    );
  }

  #tell(type: string, ...given: unknown[]): void {
    if (this.#cut) return;
    for (const listener of [...(this.#listeners.get(type) ?? [])]) listener(...given);
  }
}
