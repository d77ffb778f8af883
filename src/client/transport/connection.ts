// All requests to one server go through here, and its streams are opened here.
//
// Invariants
// 1. A request is repeated only if that cannot do anything twice: it is safe, has a key, or names exactly one target.
// 2. Every wait here ends: with a response, at its limit, or when the client is closed.
// 3. The token is sent to its own address, and nowhere else.
// 4. A stop is sent through `stop()` or `stopAll()`, which keep its order relative to prompts.

import { ControlError, messageOf } from "../../core/errors.ts";
import { RESEND_MS_MAX } from "../../core/limits.ts";
import { cutReason } from "../../core/model/cancel.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import { ATTEMPTS_MAX, REQUEST_MS, WAIT_PIECE_MS } from "../limits.ts";
import { Outcomes } from "../outcomes.ts";
import type { Random } from "../random.ts";
import { SendOrder, type Unanswered } from "../send-order.ts";
import { Backoff, type Patience } from "./backoff.ts";
import { Places } from "./places.ts";
import { answerOf, type Fetch, type FetchInit, type FetchResponse, type Trouble } from "./reply.ts";
import { type OpenCarrier, SharedStream } from "./shared-stream.ts";

export interface ConnectionParts {
  readonly fetch: Fetch;
  /** Paths are appended to this. */
  readonly base: string;
  /** The server's name in messages. */
  readonly where: string;
  /** Opens the connection that stops and long requests share. Undefined: each request has its own. */
  readonly open?: OpenCarrier | undefined;
  /** Whether there are only six connections, so that short requests must leave some free. */
  readonly isCrowded?: boolean;
  readonly token: string | undefined;
  readonly clock: Clock;
  readonly chance: Random;
  readonly patienceMs: number;
  readonly absentMs: number;
}

export interface Ask {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: object;
  /** Idempotency key: the server recognizes a repeated request by it. */
  readonly key?: string | undefined;
  /** `never`: a repeated request would do its work twice. */
  readonly again?: "never";
  /** How long the server is asked to wait before it responds. */
  readonly waitMs?: number;
  /** Gives up waiting for the response; rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** `patient`: retried until the client's patience is over, without a limit of attempts. */
  readonly attempts?: "patient";
}

/** A stop as it is sent. The server responds once it is recorded, however long its targets take to end. */
export type StopAsk = Pick<Ask, "path" | "body" | "key"> & { readonly method?: "DELETE" };

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Answered<T> {
  readonly status: number;
  readonly value: T;
}

/** Abort reasons of the client itself. */
const CLOSED = { name: "Closed", message: "The client was closed." } as const;
const LATE = { name: "Late", message: "The answer took too long." } as const;

export class Connection {
  readonly clock: Clock;
  readonly chance: Random;
  readonly where: string;
  readonly patienceMs: number;
  readonly order = new SendOrder();
  readonly outcomes = new Outcomes((runs, signal) => {
    const query = { runs: runs.join(","), waitMs: WAIT_PIECE_MS };
    const wait = { waitMs: WAIT_PIECE_MS, signal, attempts: "patient" } as const;
    return this.value({ method: "GET", path: "/v1/outcomes", query, ...wait });
  });
  readonly #parts: ConnectionParts;
  readonly #shared: SharedStream | undefined;
  readonly #places: Places | undefined;
  readonly #underWay = new Set<AbortController>();
  #closed = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.clock = parts.clock;
    this.chance = parts.chance;
    this.where = parts.where;
    this.patienceMs = parts.patienceMs;
    this.#shared = parts.open && new SharedStream(parts.open, parts.clock);
    this.#places = parts.isCrowded === true ? new Places(parts.base) : undefined;
  }

  /** Aborts all pending requests. This stops nothing at the server. */
  close(): void {
    this.#closed = true;
    for (const one of this.#underWay) one.abort(CLOSED);
    this.#shared?.close();
  }

  /** Sends a request, with retries where they are safe, and returns the server's response. */
  ask<T>(ask: Ask): Promise<Answered<T>> {
    return this.#ask(ask, (ask.waitMs ?? 0) > 0 ? "long" : "short");
  }

  async #ask<T>(ask: Ask, kind: Kind): Promise<Answered<T>> {
    const endless = ask.attempts === "patient" || this.patienceMs === Number.POSITIVE_INFINITY;
    // The server remembers a key for longer than this.
    const patienceMs = ask.key === undefined ? this.patienceMs : Math.min(this.patienceMs, RESEND_MS_MAX);
    const backoff = this.backoff(endless ? Number.POSITIVE_INFINITY : ATTEMPTS_MAX, patienceMs);
    for (;;) {
      const answer = await this.#attempt<T>(ask, kind);
      if ("value" in answer) return answer;
      const mayRepeat = isTemporary(answer, ask) && (ask.again !== "never" || answer.untouched === true);
      const pauseMs = mayRepeat ? backoff.next(answer) : undefined;
      if (pauseMs === undefined) throw answer.error;
      await this.pause(pauseMs, ask.signal);
    }
  }

  /** Only the value of the response, where the status adds nothing. */
  async value<T>(ask: Ask): Promise<T> {
    return (await this.ask<T>(ask)).value;
  }

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this.value<T>({ method: "GET", path, query, ...(signal === undefined ? {} : { signal }) });
  }

  /** Sends a stop of one thing in a session, or in an unknown one, ahead of the next prompts. */
  stop<T>(session: SessionId | undefined, ask: StopAsk): Promise<T> {
    return this.order.stop(session, () => this.#stop<T>(ask));
  }

  /** Sends a stop of everything in a session, or in all, that names the prompts without a response. */
  stopAll<T>(session: SessionId | undefined, ask: (named: readonly Unanswered[]) => StopAsk): Promise<T> {
    return this.order.stopAll(session, (named) => this.#stop<T>(ask(named)));
  }

  async #stop<T>(ask: StopAsk): Promise<T> {
    return (await this.#ask<T>({ method: "POST", ...ask }, "stop")).value;
  }

  backoff(attemptsMax: number = Number.POSITIVE_INFINITY, patienceMs = this.patienceMs): Backoff {
    const patience: Patience = { patienceMs, absentMs: this.#parts.absentMs, attemptsMax };
    return new Backoff(this.clock, this.chance, patience);
  }

  /** One attempt to open a stream: a response whose head has arrived. `stop` ends it. */
  async open(path: string, headers: Readonly<Record<string, string>>, stop: AbortController): Promise<FetchResponse> {
    const dispose = this.clock.after(REQUEST_MS, () => stop.abort(LATE));
    try {
      const head = { method: "GET", headers: { accept: "text/event-stream", ...headers } } as const;
      return await this.#send(path, head, stop.signal, "long");
    } finally {
      dispose();
    }
  }

  /** Aborts `stop` when the client is closed, until released. */
  hold(stop: AbortController): () => void {
    if (this.#closed) throw this.#closedError();
    this.#underWay.add(stop);
    return () => void this.#underWay.delete(stop);
  }

  /** Resolves after a while; rejects if the client is closed or the caller aborts. */
  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    await this.during(signal, (stop) => {
      return new Promise<void>((resolve) => {
        const dispose = this.clock.after(ms, resolve);
        stop.signal.addEventListener("abort", () => [dispose(), resolve()], { once: true });
      });
    });
  }

  /** Runs an action that ends early if the caller aborts or the client is closed. */
  async during<T>(signal: AbortSignal | undefined, act: (stop: AbortController) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    const release = this.hold(stop);
    const abandon = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) abandon();
    signal?.addEventListener("abort", abandon, { once: true });
    try {
      const result = await act(stop);
      if (stop.signal.aborted && stop.signal.reason !== LATE) throw stop.signal.reason;
      return result;
    } catch (thrown) {
      if (stop.signal.aborted && stop.signal.reason === CLOSED) throw this.#closedError();
      if (signal?.aborted === true) throw signal.reason;
      throw thrown;
    } finally {
      signal?.removeEventListener("abort", abandon);
      release();
    }
  }

  /** The error for a request that failed on the way. */
  lost(thrown: unknown): ControlError {
    const why = thrown === LATE ? `did not answer within ${REQUEST_MS} ms` : `cannot be reached: ${reasonOf(thrown)}`;
    return new ControlError("disconnected", `${this.where} ${why}`, { cause: thrown });
  }

  async #attempt<T>(ask: Ask, kind: Kind): Promise<Answered<T> | Trouble> {
    return this.during(ask.signal, async (stop) => {
      const places = kind === "short" ? this.#places : undefined;
      const release = places === undefined ? () => {} : await places.take(stop.signal);
      const dispose = this.clock.after(REQUEST_MS + (ask.waitMs ?? 0), () => stop.abort(LATE));
      try {
        const reply = await this.#send(withQuery(ask.path, ask.query), headOf(ask), stop.signal, kind);
        const answer = await answerOf(reply, this.where);
        // The edge: the API defines the server's responses.
        return "value" in answer ? { status: reply.status, value: answer.value as T } : answer;
      } catch (thrown) {
        if (thrown instanceof ControlError) return { error: thrown, again: false, afterMs: 0 };
        const why = stop.signal.reason === LATE ? LATE : thrown;
        return { error: this.lost(why), again: true, afterMs: 0, absent: isAbsent(why) };
      } finally {
        dispose();
        release();
      }
    });
  }

  /** Stops and long requests go over the shared connection, so that no short request can delay a stop. */
  #send(path: string, head: Head, signal: AbortSignal, kind: Kind): Promise<FetchResponse> {
    const { fetch, base, token } = this.#parts;
    const headers = token === undefined ? head.headers : { ...head.headers, authorization: `Bearer ${token}` };
    const init: FetchInit = { ...head, headers, signal, redirect: "manual", cache: "no-store", credentials: "omit" };
    const alone = (): Promise<FetchResponse> => fetch(base + path, init);
    return kind === "short" || this.#shared === undefined ? alone() : this.#shared.fetch(path, init, alone);
  }

  #closedError(): ControlError {
    return new ControlError("disconnected", `This client of ${this.where} was closed.`, {
      hint: "Accepted work continues at the server. Connect again with connectBelay().",
    });
  }
}

/** A proxy's error page is temporary: a request with a key, or a wait, is repeated until the server itself responds. */
const isTemporary = ({ again, foreign }: Trouble, { key, attempts }: Ask): boolean =>
  again || (foreign === true && (key !== undefined || attempts === "patient"));

/** How a request is sent. `short`: it waits for nothing but its response. */
type Kind = "stop" | "long" | "short";

interface Head {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

function headOf({ method, body, key }: Ask): Head {
  const headers: Record<string, string> = { accept: "application/json" };
  if (key !== undefined) headers["idempotency-key"] = key;
  if (body === undefined) return { method, headers };
  headers["content-type"] = "application/json";
  return {
    method,
    headers,
    body: JSON.stringify("reason" in body ? { ...body, reason: cutReason(body.reason) } : body),
  };
}

export function withQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? path : `${path}?${search}`;
}

/** `fetch` reports only that it failed; its cause says why. */
const causeOf = (thrown: unknown): unknown =>
  thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;

const reasonOf = (thrown: unknown): string => messageOf(causeOf(thrown));

/** The connection was refused, or the socket file is missing. Browsers do not say. */
function isAbsent(thrown: unknown): boolean {
  const cause = causeOf(thrown);
  return cause instanceof Error && "code" in cause && (cause.code === "ECONNREFUSED" || cause.code === "ENOENT");
}
