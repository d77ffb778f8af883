// One ACP connection over HTTP or a WebSocket.
//
// Invariants
// 1. It belongs to the actor that opened it, with that actor's permissions. No other actor can use it.
// 2. It counts against the stream limit of its token until it has ended, and is released once.
import type { Stream } from "@agentclientprotocol/sdk";
import type { Clock } from "../../ports/clock.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import { Denial } from "../auth/guard-denial.ts";
import { ACP_HELD_MAX, ACP_IDLE_MS, ACP_STREAMS_MAX } from "../limits.ts";
import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import { limitRate, type RateLimitedStream } from "./acp-rate.ts";
import { type AcpSocket, CLOSE_REASONS } from "./acp-socket.ts";

/** A connection of the ACP agent. */
export interface AgentConnection {
  readonly closed: Promise<void>;
  /** Resolves when all prompts of the connection are answered. */
  settled(): Promise<void>;
}

/** The ACP agent that serves a connection. */
export interface ConnectionAgent {
  connect(stream: Stream): AgentConnection;
}

export interface ConnectionParts {
  readonly actor: Actor;
  /** The request that opened it. Its token is verified again while the connection is open. */
  readonly request: HttpRequest;
  readonly agent: ConnectionAgent;
  readonly clock: Clock;
  readonly guard: Pick<Gatekeeper, "change">;
  /** Called once when it has ended. */
  readonly onEnd: (connection: HttpAcpConnection) => void;
}

export class HttpAcpConnection {
  readonly actor: Actor;
  readonly request: HttpRequest;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  readonly #parts: ConnectionParts;
  readonly #resolveEnded: () => void;
  #connection: AgentConnection | undefined;
  #input: RateLimitedStream | undefined;
  #socket: AcpSocket | undefined;
  readonly #uses = { streams: 0, requests: 0 };
  #usedAt: number;
  #hasEnded = false;

  constructor(parts: ConnectionParts) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.actor = parts.actor;
    this.request = parts.request;
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#parts = parts;
    this.#usedAt = parts.clock.elapsed();
  }

  get socket(): AcpSocket | undefined {
    return this.#socket;
  }

  /** Called once by the SDK, when the client has connected. */
  connect(stream: Stream): AgentConnection {
    const { agent, guard } = this.#parts;
    const input = limitRate(stream, () => guard.change(this.actor));
    const connection = agent.connect(input.stream);
    this.#connection = connection;
    this.#input = input;
    const onClosed = (): void => {
      if (this.#socket === undefined) this.end();
    };
    void connection.closed.then(onClosed, onClosed);
    return connection;
  }

  /** Sets the WebSocket of the connection. The connection ends with it. */
  attach(socket: AcpSocket): void {
    this.#socket = socket;
    void socket.closed.then(() => this.end());
  }

  /** Whether this actor may use the connection: it has the same name and tenant, and at least the same scopes. */
  isOf({ name, tenant, scopes }: Actor): boolean {
    const { actor } = this;
    return actor.name === name && actor.tenant === tenant && [...actor.scopes].every((scope) => scopes.has(scope));
  }

  /** Counts an open stream or request. The returned function releases it. */
  use(kind: "streams" | "requests"): () => void {
    this.#uses[kind] += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#uses[kind] -= 1;
      this.#usedAt = this.#parts.clock.elapsed();
    };
  }

  /** Whether it has the maximum number of open streams. */
  get hasMaxStreams(): boolean {
    return this.#uses.streams >= ACP_STREAMS_MAX;
  }

  /** Whether it has the maximum number of open requests. */
  get hasMaxRequests(): boolean {
    return this.#uses.requests >= ACP_HELD_MAX;
  }

  /** Whether the idle timeout has expired. Only over HTTP, where a dead client cannot be noticed otherwise. */
  get isIdle(): boolean {
    if (this.#socket !== undefined || this.#uses.streams + this.#uses.requests > 0) return false;
    return this.#parts.clock.elapsed() - this.#usedAt >= ACP_IDLE_MS;
  }

  /** Resolves when all its prompts are answered and the responses are written. */
  async settled(): Promise<void> {
    await this.#connection?.settled();
    await this.#input?.flushed();
  }

  /** Closes it gracefully: messages that were already sent are still delivered. */
  close(): void {
    // The SDK closes a socket after the last message, but does not know one that has received no message.
    if (this.#socket?.isGreeted === false) this.#socket.cut(CLOSE_REASONS.shutdown);
    this.#socket?.setCloseReason(CLOSE_REASONS.shutdown);
    this.#input?.end();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#resolveEnded();
    this.#parts.onEnd(this);
  }
}

export const tooManyRequests = (): Denial =>
  new Denial(429, "overloaded", "This ACP connection has the maximum number of open requests.", {
    hint: "Read the responses on its streams. Stops are accepted at any time.",
    headers: { "retry-after": "1" },
  });
