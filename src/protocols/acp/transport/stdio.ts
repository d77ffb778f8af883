// An ACP message stream over stdin and stdout: one message per line.
//
// The SDK has such a stream, but it reads ahead while no one takes the messages, and reports an error when we close the
// input ourselves. This one applies backpressure and ends cleanly.
//
// Invariants
// 1. However the editor disconnects, by ending its input, by not reading any more or by a signal to us, the stream ends
//    cleanly: open requests can still be answered.
// 2. At most MESSAGES_AHEAD_MAX messages wait for the reader, plus those of one chunk of input.
// 3. A message is written when the previous one has been: an editor that does not read slows down the writer.
import { isUtf8 } from "node:buffer";
import type { Readable, Writable } from "node:stream";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { isUnparsable, PARSED_LEVELS_MAX } from "../../../core/json-depth.ts";
import { LineSplitter } from "../../../wire/line-splitter.ts";

export interface EditorLine {
  readonly stream: Stream;
  /** Resolves when the editor's input has ended. */
  readonly ended: Promise<void>;
  /** Resolves when all requests are answered, except prompts, which take as long as their runs. */
  answered(): Promise<void>;
  /** Ends the input, as if the editor had disconnected. */
  hangUp(): void;
}

/** Messages that are read ahead. An editor has only a few in flight. */
const MESSAGES_AHEAD_MAX = 16;

/** Bytes of one message. A prompt is much smaller, but may contain a picture or two. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

export function editorLine(input: Readable, output: Writable): EditorLine {
  const hangUp = (): void => void input.destroy();
  // Not `once`: a broken pipe may emit several errors, and an unhandled one ends the process.
  output.on("error", hangUp);
  output.once("close", hangUp);
  const ended = new Promise<void>((resolve) => {
    for (const ending of ["end", "error", "close"]) input.on(ending, () => resolve());
  });
  const open = new OpenRequests();
  const write = (message: AnyMessage | Fault): Promise<void> => written(output, `${JSON.stringify(message)}\n`);
  const writable = new WritableStream<AnyMessage>({
    write: async (message) => {
      await write(message);
      open.closed(message);
    },
  });
  const readable = messagesOf(input, { onMessage: (message) => open.opened(message), onFault: write });
  return { stream: { readable, writable }, ended, answered: () => open.answered(), hangUp };
}

/**
 * Writes a line. Never rejects: a broken pipe is reported by the end of the input. A rejection would make the
 * connection close at once, before its runs are ended cleanly.
 */
function written(output: Writable, text: string): Promise<void> {
  return new Promise((resolve) => void output.write(text, () => resolve()));
}

/** The requests of the editor that are not answered yet. */
class OpenRequests {
  readonly #ids = new Set<string>();
  #waiting: (() => void)[] = [];

  opened(message: AnyMessage): void {
    if (!("method" in message) || !("id" in message) || message.method === "session/prompt") return;
    this.#ids.add(JSON.stringify(message.id));
  }

  closed(message: AnyMessage): void {
    if ("method" in message) return;
    this.#ids.delete(JSON.stringify(message.id));
    if (this.#ids.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  answered(): Promise<void> {
    if (this.#ids.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
}

interface MessageHandlers {
  onMessage(message: AnyMessage): void;
  onFault(fault: Fault): Promise<void>;
}

function messagesOf(input: Readable, { onMessage, onFault }: MessageHandlers): ReadableStream<AnyMessage> {
  let open = true;
  /** Malformed lines whose error the editor has not read yet. */
  let faults = 0;
  const start = (controller: ReadableStreamDefaultController<AnyMessage>): void => {
    const full = (): boolean => faults > 0 || (controller.desiredSize ?? 0) <= 0;
    const answer = async (fault: Fault): Promise<void> => {
      faults += 1;
      await onFault(fault);
      faults -= 1;
      if (!full()) input.resume();
    };
    const splitter = new LineSplitter(MESSAGE_BYTES_MAX, {
      line: (bytes) => {
        const decoded = decode(bytes);
        if (decoded === undefined) return;
        if (decoded.kind === "fault") return void answer(decoded.fault);
        onMessage(decoded.message);
        controller.enqueue(decoded.message);
      },
      tooLong: () => void answer(faultOf(INVALID, `A message has at most ${MESSAGE_BYTES_MAX} bytes.`)),
    });
    const end = (): void => {
      if (!open) return;
      splitter.end();
      open = false;
      controller.close();
    };
    input.on("data", (piece: Buffer | string) => {
      if (!open) return;
      splitter.push(typeof piece === "string" ? Buffer.from(piece) : piece);
      if (full()) input.pause();
    });
    for (const ending of ["end", "error", "close"]) input.on(ending, end);
  };
  const cancel = (): void => {
    open = false;
    input.destroy();
  };
  const pull = (): void => {
    if (faults === 0) input.resume();
  };
  return new ReadableStream({ start, pull, cancel }, { highWaterMark: MESSAGES_AHEAD_MAX });
}

/** The error for a line that is not a message. It has no id. */
interface Fault {
  readonly jsonrpc: "2.0";
  readonly id: null;
  readonly error: { readonly code: number; readonly message: string };
}

const PARSE = -32_700;
const INVALID = -32_600;

const faultOf = (code: number, message: string): Fault => ({ jsonrpc: "2.0", id: null, error: { code, message } });

type Decoded =
  | { readonly kind: "message"; readonly message: AnyMessage }
  | { readonly kind: "fault"; readonly fault: Fault };

/** Decodes a line; undefined for an empty one. The reader checks whether an object is a valid message. */
function decode(bytes: Buffer): Decoded | undefined {
  // Otherwise a prompt would contain replacement characters that were never sent.
  if (!isUtf8(bytes)) return { kind: "fault", fault: faultOf(PARSE, "Parse error: a message must be UTF-8.") };
  const text = bytes.toString("utf8").trim();
  if (text === "") return undefined;
  if (isUnparsable(text)) {
    return { kind: "fault", fault: faultOf(INVALID, `A message has at most ${PARSED_LEVELS_MAX} levels.`) };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "fault", fault: faultOf(PARSE, "Parse error: a line must be one JSON object.") };
  }
  if (Array.isArray(value)) return { kind: "fault", fault: faultOf(INVALID, "JSON-RPC batches are not supported.") };
  if (typeof value !== "object" || value === null) {
    return { kind: "fault", fault: faultOf(INVALID, "Invalid request: a message must be a JSON object.") };
  }
  // The connection checks the fields.
  return { kind: "message", message: value as AnyMessage };
}
