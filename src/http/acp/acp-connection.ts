// One connection that speaks ACP, from whoever opened it to its end.
//
// Invariants
// 1. It belongs to the actor that opened it, with what that actor may do. Nobody else gets to use it.
// 2. It counts among the streams of its token until it has ended, and is given back once.
import type { Stream } from "@agentclientprotocol/sdk";
import type { Clock } from "../../ports/clock.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import { Denial } from "../auth/guard-denial.ts";
import { ACP_HELD_MAX, ACP_IDLE_MS, ACP_STREAMS_MAX } from "../limits.ts";
import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import { type Rated, rated } from "./acp-rate.ts";
import { type AcpSocket, CLOSE_REASONS } from "./acp-socket.ts";

/** What the door has of a connection. */
export interface Visit {
  readonly closed: Promise<void>;
  /** Resolves when every prompt of it is answered. */
  settled(): Promise<void>;
}

/** Where a connection leads. */
export interface AcpOpener {
  connect(stream: Stream): Visit;
}

export interface ConnectionParts {
  readonly actor: Actor;
  /** What it was opened with: by it, its token is looked at again. */
  readonly request: HttpRequest;
  readonly door: AcpOpener;
  readonly clock: Clock;
  readonly guard: Pick<Gatekeeper, "change">;
  /** It has ended. Told once. */
  readonly left: (connection: HttpAcpConnection) => void;
}

export class HttpAcpConnection {
  readonly actor: Actor;
  readonly request: HttpRequest;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  readonly #parts: ConnectionParts;
  readonly #end: () => void;
  #visit: Visit | undefined;
  #input: Rated | undefined;
  #socket: AcpSocket | undefined;
  readonly #uses = { reading: 0, asking: 0 };
  #usedAt: number;
  #over = false;

  constructor(parts: ConnectionParts) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.actor = parts.actor;
    this.request = parts.request;
    this.ended = promise;
    this.#end = resolve;
    this.#parts = parts;
    this.#usedAt = parts.clock.elapsed();
  }

  get socket(): AcpSocket | undefined {
    return this.#socket;
  }

  /** Called by the SDK, once, when somebody comes in. */
  connect(stream: Stream): Visit {
    const { door, guard } = this.#parts;
    const input = rated(stream, () => guard.change(this.actor));
    const visit = door.connect(input.stream);
    this.#visit = visit;
    this.#input = input;
    const over = (): void => {
      if (this.#socket === undefined) this.leave();
    };
    void visit.closed.then(over, over);
    return visit;
  }

  /** It goes over this one, and ends with it. */
  attach(socket: AcpSocket): void {
    this.#socket = socket;
    void socket.closed.then(() => this.leave());
  }

  /** Whether it is this one's to use: of the same name, in the same place, and with no less. */
  isOf({ name, tenant, scopes }: Actor): boolean {
    const { actor } = this;
    return actor.name === name && actor.tenant === tenant && [...actor.scopes].every((scope) => scopes.has(scope));
  }

  /** Somebody reads or asks. The answer gives it back. */
  use(how: "reading" | "asking"): () => void {
    this.#uses[how] += 1;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#uses[how] -= 1;
      this.#usedAt = this.#parts.clock.elapsed();
    };
  }

  /** Whether it has as many streams open as it can have sessions. */
  get isFull(): boolean {
    return this.#uses.reading >= ACP_STREAMS_MAX;
  }

  /** Whether so much of it waits that the next request would be one too many. */
  get isCrowded(): boolean {
    return this.#uses.asking >= ACP_HELD_MAX;
  }

  /** Over HTTP, where nobody tells us that a client is gone. */
  get isIdle(): boolean {
    if (this.#socket !== undefined || this.#uses.reading + this.#uses.asking > 0) return false;
    return this.#parts.clock.elapsed() - this.#usedAt >= ACP_IDLE_MS;
  }

  /** Resolves when all its prompts are answered, and the answers have been taken. */
  async settled(): Promise<void> {
    await this.#visit?.settled();
    await this.#input?.quiet();
  }

  /** Ends it in good order: what was handed on still goes out. */
  part(): void {
    // The SDK closes a socket behind the last message, but one on which nothing was said it does not know.
    if (this.#socket?.isGreeted === false) this.#socket.cut(CLOSE_REASONS.shutdown);
    this.#socket?.partWith(CLOSE_REASONS.shutdown);
    this.#input?.end();
  }

  leave(): void {
    if (this.#over) return;
    this.#over = true;
    this.#end();
    this.#parts.left(this);
  }
}

export const crowded = (): Denial =>
  new Denial(429, "overloaded", "As many requests wait on this ACP connection as it may have.", {
    hint: "Read what was answered before. What stops something is taken also now.",
    headers: { "retry-after": "1" },
  });
