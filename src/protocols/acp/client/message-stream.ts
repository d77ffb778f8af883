// The pipes of an external agent as a message stream: lines of JSON from its stdout, and lines to its stdin.
//
// Invariants
// 1. A line that is not a message is skipped, and the first one is remembered: programs print greetings and warnings on
//    stdout.
// 2. A line that is too long ends the stream, because its content is unknown.
// 3. Nothing is buffered here: a line is handled in the tick in which it arrives, in order. A `session/update` reaches
//    `onSessionUpdate` before the answer that follows it.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { isUnparsable } from "../../../core/json-depth.ts";
import { LineSplitter } from "../../../wire/line-splitter.ts";
import { brief, isObject } from "./kept-json.ts";
import { MESSAGE_BYTES_MAX, NAME_CHARS_MAX } from "./limits.ts";

export interface MessageStreamParts {
  readonly write: (line: string) => Promise<void>;
  /** Receives the parameters of `session/update` unchanged. Must not throw. */
  readonly onSessionUpdate: (params: unknown) => void;
  readonly bytesMax?: number;
}

export class MessageStream {
  readonly stream: Stream;
  /** The first line that was not a message. */
  strayLine: string | undefined = undefined;
  /** Why the stream failed. */
  failure: string | undefined = undefined;
  readonly #lines: LineSplitter;
  readonly #onSessionUpdate: (params: unknown) => void;
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined;
  #ended = false;

  constructor({ write, onSessionUpdate, bytesMax = MESSAGE_BYTES_MAX }: MessageStreamParts) {
    this.#onSessionUpdate = onSessionUpdate;
    const readable = new ReadableStream<AnyMessage>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.#ended = true;
      },
    });
    const writable = new WritableStream<AnyMessage>({ write: (message) => write(`${JSON.stringify(message)}\n`) });
    this.stream = { readable, writable };
    this.#lines = new LineSplitter(bytesMax, {
      line: (bytes) => this.#line(bytes.toString("utf8").trim()),
      tooLong: () => this.#fail(new Error(`it wrote a line of more than ${bytesMax} bytes`)),
    });
  }

  push(piece: Uint8Array): void {
    if (!this.#ended) this.#lines.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
  }

  /** Ends the stream. */
  end(): void {
    if (this.#ended) return;
    this.#lines.end();
    if (this.#ended) return;
    this.#ended = true;
    this.#controller?.close();
  }

  #line(text: string): void {
    if (text === "" || this.#ended) return;
    const message = parse(text);
    if (message === undefined) this.strayLine ??= brief(text, NAME_CHARS_MAX);
    else if ("method" in message && message.method === "session/update") this.#onSessionUpdate(message.params);
    else this.#controller?.enqueue(message);
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.failure = error.message;
    this.#controller?.error(error);
  }
}

function parse(text: string): AnyMessage | undefined {
  if (isUnparsable(text)) return undefined;
  try {
    const given: unknown = JSON.parse(text);
    if (!isObject(given) || given.jsonrpc !== "2.0") return undefined;
    const isMessage = typeof given.method === "string" || "result" in given || "error" in given;
    // A request, a notification or an answer by its fields; other fields are checked where they are used.
    return isMessage ? (given as AnyMessage) : undefined;
  } catch {
    return undefined;
  }
}
