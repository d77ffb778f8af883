// One connection that multiplexes any number of a client's requests that follow or wait, and stops.
//
// Invariants
// 1. Each request is answered by the same handler as any other, with the permissions of its connection.
// 2. A response that the client does not read buffers one piece here and one window in flight, and delays no other.
// 3. A complete response is sent before the pieces of others: a receipt does not wait for streams.
// 4. When the connection ends, its responses end, and nothing else does.
import { ControlError } from "../../core/errors.ts";
import { STREAM_WINDOW_CHARS, type StreamDown, type StreamUp } from "../../wire/stream-message.ts";
import { errorAnswer } from "../auth/guard-denial.ts";
import { authorizationOf } from "../auth/guard-headers.ts";
import {
  PIECE_CHARS_MAX,
  STREAM_FIRST_CHARS,
  STREAM_REQUESTS_MAX,
  STREAM_STOPS_MAX,
  STREAM_UNSENT_MAX,
} from "../limits.ts";
import { characterEnd } from "./event-batches.ts";
import { FRAME_END } from "./event-text.ts";
import type { Actor, HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";

export interface SharedStreamParts {
  readonly id: string;
  readonly actor: Actor;
  /** The request that opened this connection. */
  readonly carrier: HttpRequest;
  readonly handle: (request: HttpRequest) => Promise<HttpAnswer>;
  /** Whether a request may use this connection, and whether it is a stop. */
  readonly kindOf: (method: string, path: string) => "follows" | "stops" | undefined;
}

type Request = Extract<StreamUp, { type: "request" }>;

/** A request whose response is not complete. */
interface PendingRequest {
  readonly stop: AbortController;
  unread: number;
  /** The length of the next piece. Small at first, so that some data gets through on an unreliable network. */
  chars: number;
  /** A piece that is not sent yet. `sent` is called when it is. */
  waiting: { readonly text: string; readonly sent: () => void } | undefined;
}

export class SharedStream {
  readonly id: string;
  readonly actor: Actor;
  readonly #parts: SharedStreamParts;
  readonly #pending = new Map<string, PendingRequest>();
  readonly #complete: string[] = [];
  /** The ids of requests with a piece to send and room in their window, in order of arrival. */
  readonly #ready = new Set<string>();
  #wake: () => void = () => {};
  #hasEnded = false;

  constructor(parts: SharedStreamParts) {
    this.id = parts.id;
    this.actor = parts.actor;
    this.#parts = parts;
  }

  receive(message: StreamUp): void {
    if (this.#hasEnded) return;
    switch (message.type) {
      case "request":
        if (this.#pending.has(message.id)) throw duplicateId(message.id);
        void this.#answer(message);
        return;
      case "read": {
        const one = this.#pending.get(message.id);
        if (one === undefined) return;
        one.unread = Math.max(0, one.unread - message.chars);
        this.#schedule(message.id, one);
        return;
      }
      case "leave":
        this.#cancel(message.id);
    }
  }

  /** The frames of the event stream to the client. Ends with the signal. */
  async *frames(signal: AbortSignal): AsyncGenerator<string, "cut"> {
    const onAbort = (): void => this.end();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      yield frame({ type: "open", stream: this.id });
      while (!this.#hasEnded) {
        const next = this.#complete.shift() ?? this.#nextPiece();
        if (next !== undefined) yield next;
        else await this.#wakeUp();
      }
      return "cut";
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.end();
    }
  }

  end(): void {
    this.#hasEnded = true;
    for (const id of [...this.#pending.keys()]) this.#cancel(id);
    this.#wake();
  }

  async #answer(request: Request): Promise<void> {
    const { id, method, path } = request;
    const one: PendingRequest = {
      stop: new AbortController(),
      unread: 0,
      chars: STREAM_FIRST_CHARS,
      waiting: undefined,
    };
    const kind = this.#parts.kindOf(method, path.split("?", 1)[0] ?? "");
    const isFull = this.#pending.size >= (kind === "stops" ? STREAM_STOPS_MAX : STREAM_REQUESTS_MAX);
    this.#send({ type: "received", id });
    this.#pending.set(id, one);
    const refusal = kind === undefined ? unsupportedRequest() : isFull ? tooManyRequests() : undefined;
    const inner = innerRequest(request, this.#parts.carrier, one.stop.signal);
    const { status, headers, body } =
      refusal === undefined ? await this.#parts.handle(inner) : refusalAnswer(refusal, inner.id);
    if (one.stop.signal.aborted) {
      if (typeof body === "object") void body.return?.();
      return;
    }
    const head = { status, headers };
    if (typeof body !== "object") this.#send({ type: "answer", id, head, text: body ?? "" });
    else await this.#stream(id, one, head, body);
    this.#pending.delete(id);
  }

  async #stream(
    id: string,
    one: PendingRequest,
    head: { status: number; headers: HttpAnswer["headers"] },
    body: ResponseStream,
  ) {
    this.#send({ type: "head", id, head });
    for (let step = await body.next(); step.done !== true; step = await body.next()) {
      const text = step.value;
      await new Promise<void>((sent) => {
        one.waiting = { text, sent };
        this.#schedule(id, one);
      });
      if (one.stop.signal.aborted) break;
    }
    void body.return?.();
    if (!one.stop.signal.aborted) this.#send({ type: "end", id });
  }

  #schedule(id: string, one: PendingRequest): void {
    if (one.waiting === undefined || one.unread >= STREAM_WINDOW_CHARS) return;
    this.#ready.add(id);
    this.#wake();
  }

  #nextPiece(): string | undefined {
    const [id] = this.#ready;
    if (id === undefined) return undefined;
    this.#ready.delete(id);
    const one = this.#pending.get(id);
    const waiting = one?.waiting;
    if (one === undefined || waiting === undefined) return this.#nextPiece();
    const text = waiting.text.slice(0, characterEnd(waiting.text, one.chars));
    const rest = waiting.text.slice(text.length);
    one.unread += text.length;
    one.chars = Math.min(one.chars * 2, PIECE_CHARS_MAX);
    one.waiting = rest === "" ? undefined : { ...waiting, text: rest };
    if (rest === "") waiting.sent();
    else this.#schedule(id, one);
    return frame({ type: "piece", id, text });
  }

  #cancel(id: string): void {
    const one = this.#pending.get(id);
    this.#pending.delete(id);
    this.#ready.delete(id);
    one?.stop.abort(LEFT);
    one?.waiting?.sent();
  }

  #send(message: StreamDown): void {
    if (this.#hasEnded) return;
    this.#complete.push(frame(message));
    // The client sends requests without reading the responses.
    if (this.#complete.length > STREAM_UNSENT_MAX) this.end();
    this.#wake();
  }

  #wakeUp(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** The request for the handler, with the credentials of the request that opened the connection. */
function innerRequest(
  { id, method, path, lastEventId, key, body }: Request,
  carrier: HttpRequest,
  signal: AbortSignal,
) {
  const [target = "", search = ""] = path.split("?", 2);
  const text = body === undefined ? "" : JSON.stringify(body);
  const own: Readonly<Record<string, string | undefined>> = {
    host: carrier.header("host"),
    origin: carrier.header("origin"),
    "sec-fetch-site": carrier.header("sec-fetch-site"),
    authorization: authorizationOf(carrier),
    "content-type": body === undefined ? undefined : "application/json",
    "last-event-id": lastEventId,
    "idempotency-key": key,
  };
  return {
    ...{
      id: `${carrier.id}.${id}`,
      method,
      path: target,
      query: new URLSearchParams(search),
      via: carrier.via,
      signal,
    },
    header: (name: string) => own[name],
    body: () => Promise.resolve(text),
    shared: true,
  } satisfies HttpRequest;
}

const frame = (message: StreamDown): string => `data: ${JSON.stringify(message)}${FRAME_END}`;

const refusalAnswer = (error: ControlError, requestId: string): HttpAnswer =>
  errorAnswer(error, { status: error.code === "overloaded" ? 429 : 400, requestId });

const duplicateId = (id: string): ControlError =>
  new ControlError("invalid", `The request "${id}" is already pending on this connection.`);

const unsupportedRequest = (): ControlError =>
  new ControlError("invalid", "Only requests that follow, wait or stop can be sent over this connection.", {
    hint: "Send it as a separate HTTP request.",
  });

const tooManyRequests = (): ControlError =>
  new ControlError("overloaded", `This connection already has ${STREAM_REQUESTS_MAX} pending requests.`, {
    hint: "Send `leave` for responses that are no longer read.",
  });

const LEFT = { name: "Left", message: "The client no longer wants the response." } as const;
