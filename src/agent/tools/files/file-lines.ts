// Reads a range of lines in bounded memory, however long the file or a line is.
import type { FileHandle } from "node:fs/promises";
import {
  FILE_BLOCK_BYTES,
  FILE_LINE_CHARS,
  FILE_RESULT_LINES_MAX,
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
  /** The number of lines in the file. */
  readonly total: number;
  /** `begin`: the file is longer than the scan limit, and `total` counts only the scanned lines. */
  readonly scanned: "whole" | "begin";
  /** The first requested line that did not fit. */
  readonly next?: number;
  /** Some bytes are not UTF-8, or the text itself contains U+FFFD. */
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

/** Whether the beginning contains a zero byte, as in nearly every binary file and in no text. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, FILE_SNIFF_BYTES).includes(0);

/** Collects the requested lines from a text that arrives in chunks, within the limits per line and in total. */
class LineWindow {
  readonly #options: LinesOptions;
  readonly #lines: { readonly number: number; readonly text: string }[] = [];
  #number = 1;
  #line = "";
  #lineChars = 0;
  #bytes = 0;
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
    // A carriage return is left out: a model would copy it inconsistently. The result mentions CRLF once instead.
    const isReturned = this.#line.endsWith("\r") && this.#lineChars === this.#line.length;
    const whole = isReturned ? this.#line.slice(0, -1) : this.#line;
    const rest = this.#lineChars - (isReturned ? 1 : 0) - FILE_LINE_CHARS;
    const text = rest > 0 ? `${whole.slice(0, FILE_LINE_CHARS)}… (${rest} more characters)` : whole;
    const bytes = Buffer.byteLength(text) + String(this.#number).length + 2;
    if (
      this.#lines.length >= FILE_RESULT_LINES_MAX ||
      (this.#bytes + bytes > this.#options.bytesMax && this.#lines.length > 0)
    ) {
      this.#next = this.#number;
      return;
    }
    this.#crlf ||= isReturned;
    this.#replaced ||= text.includes("\uFFFD");
    this.#bytes += bytes;
    this.#lines.push({ number: this.#number, text });
  }

  #isWanted(): boolean {
    return this.#next === undefined && this.#number >= this.#options.from && this.#number <= this.#options.to;
  }
}
