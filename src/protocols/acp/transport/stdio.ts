// An editor on stdin and stdout, as the stream that ACP is spoken on: one message to a line.
//
// The SDK has such a stream. It reads on while nobody takes the messages out, and an input that is closed by ourselves
// is an error to it; here the one must wait, and the other end in order.
//
// Invariants
// 1. Whichever way the editor goes, by ending its input, by not reading any more or by a signal to us, the stream ends
//    in order: what is still to be answered can be.
// 2. At most MESSAGES_AHEAD_MAX messages wait for whoever takes them out, and those of one piece of input.
// 3. A message is written when the one before it has been: an editor that does not read makes its writer wait.
import { isUtf8 } from "node:buffer";
import type { Readable, Writable } from "node:stream";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { isUnparsable, PARSED_LEVELS_MAX } from "../../../core/json-depth.ts";
import { LineSplitter } from "../../../wire/line-splitter.ts";

export interface EditorLine {
  readonly stream: Stream;
  /** Resolves when nothing more comes from the editor. */
  readonly ended: Promise<void>;
  /** Resolves when everything that was asked is answered, prompts excepted: those take as long as their runs. */
  answered(): Promise<void>;
  /** As if the editor had. */
  hangUp(): void;
}

/** Read ahead of whoever takes the messages out. A person's editor has a few under way. */
const MESSAGES_AHEAD_MAX = 16;

/** One message. A prompt is far smaller, but may bring a picture or two along. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

export function editorLine(input: Readable, output: Writable): EditorLine {
  const hangUp = (): void => void input.destroy();
  // Not once: a pipe without a reader may say so more often, and an error nobody hears ends the program.
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
      open.say(message);
    },
  });
  const readable = messagesOf(input, { heard: (message) => open.hear(message), faulty: write });
  return { stream: { readable, writable }, ended, answered: () => open.answered(), hangUp };
}

/**
 * It never rejects: that nobody reads any more is told by the end of the input. To the connection it would be a reason
 * to break off at once, before what was begun through it is brought to an end.
 */
function written(output: Writable, text: string): Promise<void> {
  return new Promise((resolve) => void output.write(text, () => resolve()));
}

/** The requests of the editor that have no answer yet. */
class OpenRequests {
  readonly #ids = new Set<string>();
  #waiting: (() => void)[] = [];

  hear(message: AnyMessage): void {
    if (!("method" in message) || !("id" in message) || message.method === "session/prompt") return;
    this.#ids.add(JSON.stringify(message.id));
  }

  say(message: AnyMessage): void {
    if ("method" in message) return;
    this.#ids.delete(JSON.stringify(message.id));
    if (this.#ids.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  answered(): Promise<void> {
    if (this.#ids.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
}

interface Ears {
  heard(message: AnyMessage): void;
  faulty(fault: Fault): Promise<void>;
}

function messagesOf(input: Readable, { heard, faulty }: Ears): ReadableStream<AnyMessage> {
  let open = true;
  /** Lines that were none, and whose sender has not taken the answer yet. */
  let faults = 0;
  const start = (controller: ReadableStreamDefaultController<AnyMessage>): void => {
    const full = (): boolean => faults > 0 || (controller.desiredSize ?? 0) <= 0;
    const answer = async (fault: Fault): Promise<void> => {
      faults += 1;
      await faulty(fault);
      faults -= 1;
      if (!full()) input.resume();
    };
    const splitter = new LineSplitter(MESSAGE_BYTES_MAX, {
      line: (bytes) => {
        const decoded = decode(bytes);
        if (decoded === undefined) return;
        if (decoded.kind === "fault") return void answer(decoded.fault);
        heard(decoded.message);
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

/** What is said to something that is no message at all. It has no id that could be known. */
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

/** Undefined: an empty line. Whether an object is a message is for whoever takes it. */
function decode(bytes: Buffer): Decoded | undefined {
  // A replacement character in a prompt would be something that was never sent.
  if (!isUtf8(bytes)) return { kind: "fault", fault: faultOf(PARSE, "Parse error: a message is UTF-8.") };
  const text = bytes.toString("utf8").trim();
  if (text === "") return undefined;
  if (isUnparsable(text)) {
    return { kind: "fault", fault: faultOf(INVALID, `A message has at most ${PARSED_LEVELS_MAX} levels.`) };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "fault", fault: faultOf(PARSE, "Parse error: a line is one JSON object.") };
  }
  if (Array.isArray(value)) return { kind: "fault", fault: faultOf(INVALID, "JSON-RPC batches are not supported.") };
  if (typeof value !== "object" || value === null) {
    return { kind: "fault", fault: faultOf(INVALID, "Invalid request: a message is a JSON object.") };
  }
  // Decoding: the connection looks at its fields before it takes it for anything.
  return { kind: "message", message: value as AnyMessage };
}
