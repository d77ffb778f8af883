// Some lines of a file, read in bounded memory however long the file or a line of it is.
import type { FileHandle } from "node:fs/promises";
import {
  FILE_BLOCK_BYTES,
  FILE_LINE_CHARS,
  FILE_LINES_TOLD,
  FILE_SCAN_BYTES_MAX,
  FILE_SNIFF_BYTES,
} from "./file-limits.ts";

export interface LinesOptions {
  /** The first line is 1. */
  readonly from: number;
  readonly to: number;
  readonly bytesMax: number;
}

export interface LinesRead {
  readonly kind: "lines";
  readonly lines: readonly { readonly number: number; readonly text: string }[];
  /** How many there are altogether. */
  readonly total: number;
  /** The file is longer than what was read of it: `total` are those that were counted. */
  readonly scanned: "whole" | "begin";
  /** The first line of those asked for that there was no room for. */
  readonly next?: number;
  /** Some of its bytes are no UTF-8, or the text says so itself. */
  readonly replaced: boolean;
  readonly crlf: boolean;
}

export async function readLines(
  handle: FileHandle,
  options: LinesOptions,
  signal: AbortSignal,
): Promise<LinesRead | { readonly kind: "binary" }> {
  const window = new LineWindow(options);
  const decoder = new TextDecoder();
  const block = Buffer.alloc(FILE_BLOCK_BYTES);
  let position = 0;
  let isWhole = false;
  while (position < FILE_SCAN_BYTES_MAX && !isWhole) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(block, 0, block.length, position);
    const bytes = block.subarray(0, bytesRead);
    if (position === 0 && isBinary(bytes)) return { kind: "binary" };
    position += bytesRead;
    isWhole = bytesRead === 0;
    window.push(decoder.decode(bytes, { stream: !isWhole }));
  }
  return window.end(isWhole ? "whole" : "begin");
}

/** No text has a zero byte; nearly everything else has one early. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, FILE_SNIFF_BYTES).includes(0);

/** Takes a text in pieces and keeps the lines that are asked for, each of them and all of them within bounds. */
class LineWindow {
  readonly #options: LinesOptions;
  readonly #lines: { readonly number: number; readonly text: string }[] = [];
  #number = 1;
  #line = "";
  #lineChars = 0;
  #told = 0;
  #next: number | undefined;
  #replaced = false;
  #crlf = false;

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  push(text: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
      this.#add(text, from, end);
      this.#endLine();
      from = end + 1;
    }
    this.#add(text, from, text.length);
  }

  end(scanned: LinesRead["scanned"]): LinesRead {
    if (this.#lineChars > 0) this.#endLine();
    return {
      ...{ kind: "lines", lines: this.#lines, total: this.#number - 1, scanned },
      ...(this.#next === undefined ? {} : { next: this.#next }),
      ...{ replaced: this.#replaced, crlf: this.#crlf },
    };
  }

  #add(text: string, from: number, to: number): void {
    const room = Math.max(0, FILE_LINE_CHARS + 1 - this.#lineChars);
    if (this.#isWanted()) this.#line += text.slice(from, Math.min(to, from + room));
    this.#lineChars += to - from;
  }

  #endLine(): void {
    if (this.#isWanted()) this.#keep();
    this.#number += 1;
    this.#line = "";
    this.#lineChars = 0;
  }

  #keep(): void {
    // A model that saw the carriage return would repeat it, or leave it out; it is told of it once instead.
    const isReturned = this.#line.endsWith("\r") && this.#lineChars === this.#line.length;
    const whole = isReturned ? this.#line.slice(0, -1) : this.#line;
    const rest = this.#lineChars - (isReturned ? 1 : 0) - FILE_LINE_CHARS;
    const text = rest > 0 ? `${whole.slice(0, FILE_LINE_CHARS)}… (${rest} more characters)` : whole;
    const bytes = Buffer.byteLength(text) + String(this.#number).length + 2;
    if (
      this.#lines.length >= FILE_LINES_TOLD ||
      (this.#told + bytes > this.#options.bytesMax && this.#lines.length > 0)
    ) {
      this.#next = this.#number;
      return;
    }
    this.#crlf ||= isReturned;
    this.#replaced ||= text.includes("\uFFFD");
    this.#told += bytes;
    this.#lines.push({ number: this.#number, text });
  }

  #isWanted(): boolean {
    return this.#next === undefined && this.#number >= this.#options.from && this.#number <= this.#options.to;
  }
}
