// Splits a stream of bytes into lines, at line feed bytes only: U+2028 is text, and one character may be split between
// two chunks.
//
// Invariants
// 1. A line that is too long is never buffered: it is reported once, and the rest of it is discarded.

const LINE_FEED = 0x0a;

export interface LineListener {
  line(bytes: Buffer): void;
  tooLong(): void;
}

export class LineSplitter {
  readonly #bytesMax: number;
  readonly #listener: LineListener;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** True while the rest of a line that was too long arrives. */
  #discarding = false;

  constructor(bytesMax: number, listener: LineListener) {
    this.#bytesMax = bytesMax;
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  /** Ends the input. A last line without a line feed counts: JSON is complete or not by itself. */
  end(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  #add(chunk: Buffer): void {
    if (this.#discarding) return;
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#bytesMax) {
      this.#chunks.push(chunk);
      return;
    }
    this.#discarding = true;
    this.#chunks = [];
    this.#listener.tooLong();
  }

  #endLine(): void {
    const chunks = this.#chunks;
    const wasTooLong = this.#discarding;
    this.#chunks = [];
    this.#bytes = 0;
    this.#discarding = false;
    if (wasTooLong) return;
    this.#listener.line(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
  }
}
