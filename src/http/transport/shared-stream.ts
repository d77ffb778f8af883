// One connection of a client that carries any number of requests which follow or wait, and the stops among them.
//
// Invariants
// 1. Each request is answered by the same handler as any other, with the rights of the connection it came on.
// 2. An answer whose reader does not read holds one piece here and one window on its way, and delays no other answer.
// 3. A whole answer is sent before pieces of others: a receipt does not wait for streams.
// 4. When the connection ends, its answers end, and nothing else does.
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
  /** The request that became this connection. */
  readonly carrier: HttpRequest;
  readonly handle: (request: HttpRequest) => Promise<HttpAnswer>;
  /** Whether a request may come this way, and whether it is a stop. */
  readonly kindOf: (method: string, path: string) => "follows" | "stops" | undefined;
}

type Request = Extract<StreamUp, { type: "request" }>;

/** A request that is being answered. */
interface Answering {
  readonly stop: AbortController;
  unread: number;
  /** How much is sent at once. Little at first: over a line that is cut again and again, some of it gets through. */
  chars: number;
  /** A piece that waits to be sent, and who waits for that. */
  waiting: { readonly text: string; readonly sent: () => void } | undefined;
}

export class SharedStream {
  readonly id: string;
  readonly actor: Actor;
  readonly #parts: SharedStreamParts;
  readonly #answering = new Map<string, Answering>();
  readonly #whole: string[] = [];
  /** Those with a piece to send and room to send it, in the order in which they came. */
  readonly #ready = new Set<string>();
  #wake: () => void = () => {};
  #ended = false;

  constructor(parts: SharedStreamParts) {
    this.id = parts.id;
    this.actor = parts.actor;
    this.#parts = parts;
  }

  receive(message: StreamUp): void {
    if (this.#ended) return;
    switch (message.type) {
      case "request":
        if (this.#answering.has(message.id)) throw taken(message.id);
        void this.#answer(message);
        return;
      case "read": {
        const one = this.#answering.get(message.id);
        if (one === undefined) return;
        one.unread = Math.max(0, one.unread - message.chars);
        this.#offer(message.id, one);
        return;
      }
      case "leave":
        this.#leave(message.id);
    }
  }

  /** What is sent to the client, as frames of an event stream. Ends with the signal. */
  async *frames(signal: AbortSignal): AsyncGenerator<string, "cut"> {
    const aborted = (): void => this.end();
    signal.addEventListener("abort", aborted, { once: true });
    try {
      yield frame({ type: "open", stream: this.id });
      while (!this.#ended) {
        const next = this.#whole.shift() ?? this.#nextPiece();
        if (next !== undefined) yield next;
        else await this.#more();
      }
      return "cut";
    } finally {
      signal.removeEventListener("abort", aborted);
      this.end();
    }
  }

  end(): void {
    this.#ended = true;
    for (const id of [...this.#answering.keys()]) this.#leave(id);
    this.#wake();
  }

  async #answer(request: Request): Promise<void> {
    const { id, method, path } = request;
    const one: Answering = { stop: new AbortController(), unread: 0, chars: STREAM_FIRST_CHARS, waiting: undefined };
    const kind = this.#parts.kindOf(method, path.split("?", 1)[0] ?? "");
    const full = this.#answering.size >= (kind === "stops" ? STREAM_STOPS_MAX : STREAM_REQUESTS_MAX);
    this.#say({ type: "received", id });
    this.#answering.set(id, one);
    const refusal = kind === undefined ? notHere() : full ? crowded() : undefined;
    const inner = innerRequest(request, this.#parts.carrier, one.stop.signal);
    const { status, headers, body } =
      refusal === undefined ? await this.#parts.handle(inner) : refused(refusal, inner.id);
    if (one.stop.signal.aborted) {
      if (typeof body === "object") void body.return?.();
      return;
    }
    const head = { status, headers };
    if (typeof body !== "object") this.#say({ type: "answer", id, head, text: body ?? "" });
    else await this.#stream(id, one, head, body);
    this.#answering.delete(id);
  }

  async #stream(
    id: string,
    one: Answering,
    head: { status: number; headers: HttpAnswer["headers"] },
    body: ResponseStream,
  ) {
    this.#say({ type: "head", id, head });
    for (let step = await body.next(); step.done !== true; step = await body.next()) {
      const text = step.value;
      await new Promise<void>((sent) => {
        one.waiting = { text, sent };
        this.#offer(id, one);
      });
      if (one.stop.signal.aborted) break;
    }
    void body.return?.();
    if (!one.stop.signal.aborted) this.#say({ type: "end", id });
  }

  #offer(id: string, one: Answering): void {
    if (one.waiting === undefined || one.unread >= STREAM_WINDOW_CHARS) return;
    this.#ready.add(id);
    this.#wake();
  }

  #nextPiece(): string | undefined {
    const [id] = this.#ready;
    if (id === undefined) return undefined;
    this.#ready.delete(id);
    const one = this.#answering.get(id);
    const waiting = one?.waiting;
    if (one === undefined || waiting === undefined) return this.#nextPiece();
    const text = waiting.text.slice(0, characterEnd(waiting.text, one.chars));
    const rest = waiting.text.slice(text.length);
    one.unread += text.length;
    one.chars = Math.min(one.chars * 2, PIECE_CHARS_MAX);
    one.waiting = rest === "" ? undefined : { ...waiting, text: rest };
    if (rest === "") waiting.sent();
    else this.#offer(id, one);
    return frame({ type: "piece", id, text });
  }

  #leave(id: string): void {
    const one = this.#answering.get(id);
    this.#answering.delete(id);
    this.#ready.delete(id);
    one?.stop.abort(LEFT);
    one?.waiting?.sent();
  }

  #say(message: StreamDown): void {
    if (this.#ended) return;
    this.#whole.push(frame(message));
    // It asks on and on, and takes no answer.
    if (this.#whole.length > STREAM_UNSENT_MAX) this.end();
    this.#wake();
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** As the handler sees it: what was asked for, by the one who opened the connection. */
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

const refused = (error: ControlError, requestId: string): HttpAnswer =>
  errorAnswer(error, { status: error.code === "overloaded" ? 429 : 400, requestId });

const taken = (id: string): ControlError =>
  new ControlError("invalid", `A request "${id}" is being answered on this connection already.`);

const notHere = (): ControlError =>
  new ControlError("invalid", "Only requests that follow, wait or stop can be sent over this connection.", {
    hint: "Send it as a request by itself.",
  });

const crowded = (): ControlError =>
  new ControlError("overloaded", `This connection answers ${STREAM_REQUESTS_MAX} requests already.`, {
    hint: "Leave those that are not read any more.",
  });

const LEFT = { name: "Left", message: "The answer is not wanted any more." } as const;
