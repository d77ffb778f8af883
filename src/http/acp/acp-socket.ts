// The WebSocket that the SDK uses: text messages only, with pings, and closed when the client is dead.
//
// Invariants
// 1. After `cut`, no message is delivered.
// 2. After `close`, it ends within a timeout, even if the client does not cooperate.
// 3. A client that sends no first message, or answers no ping, is disconnected.
import { isUnparsable } from "../../core/json-depth.ts";
import type { Clock } from "../../ports/clock.ts";
import { ACP_GREETING_MS, ACP_PING_MS, ACP_UNREAD_BYTES_MAX, ACP_WAITING_BYTES_MAX, DRAIN_MS } from "../limits.ts";
import type { MessageSocket } from "../transport/http-exchange.ts";

type Listener = (...given: unknown[]) => void;

/** A close code of RFC 6455 and Belay's reason. */
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

/** The SDK has one limit for both directions, Belay has two: this constant is added to the buffered output. */
const OUTPUT_OFFSET_BYTES = ACP_WAITING_BYTES_MAX - ACP_UNREAD_BYTES_MAX;

export class AcpSocket {
  /** Resolves when it has ended on both sides. */
  readonly closed: Promise<void>;
  readonly #socket: MessageSocket;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Set<Listener>>();
  #closeReason: CloseReason | undefined;
  #isCut = false;
  #isAlive = false;
  #isGreeted = false;
  #cancelPing: () => void;
  #cancelEnd: (() => void) | undefined;

  constructor(socket: MessageSocket, clock: Clock) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#socket = socket;
    this.#clock = clock;
    this.#cancelPing = clock.after(ACP_GREETING_MS, () => this.#checkGreeting(), "idle");
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    socket.on("pong", () => {
      this.#isAlive = true;
    });
    socket.on("error", (error) => this.#emit("error", error));
    socket.on("close", () => {
      this.#cancelPing();
      this.#cancelEnd?.();
      this.#emit("close");
      resolve();
    });
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  /** Whether a message was ever received. */
  get isGreeted(): boolean {
    return this.#isGreeted;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount + OUTPUT_OFFSET_BYTES;
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  /** Closes it after the buffered messages. */
  close(code?: number, reason?: string): void {
    const used = this.#closeReason ?? { code, reason };
    this.#socket.close(used.code, used.reason);
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

  /** Sets the reason for a close, whichever side initiates it. The first reason wins. */
  setCloseReason(reason: CloseReason): void {
    this.#closeReason ??= reason;
  }

  /** Closes it immediately: its listeners get `close` and nothing more. */
  cut(reason: CloseReason): void {
    if (this.#isCut) return;
    this.setCloseReason(reason);
    this.close();
    this.#emit("close");
    this.#isCut = true;
  }

  #receive(data: unknown, isBinary: boolean): void {
    this.#isAlive = true;
    this.#isGreeted = true;
    if (isBinary) this.cut(CLOSE_REASONS.binary);
    else if (isUnparsable(String(data))) this.cut(CLOSE_REASONS.nested);
    else this.#emit("message", data, false);
  }

  #checkGreeting(): void {
    if (!this.#isGreeted) this.cut(CLOSE_REASONS.silent);
    else this.#ping();
  }

  #ping(): void {
    this.#isAlive = false;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
    this.#cancelPing = this.#clock.after(
      ACP_PING_MS,
      () => {
        if (this.#isAlive) this.#ping();
        else this.#socket.terminate();
      },
      "idle",
    );
  }

  #emit(type: string, ...given: unknown[]): void {
    if (this.#isCut) return;
    for (const listener of [...(this.#listeners.get(type) ?? [])]) listener(...given);
  }
}
