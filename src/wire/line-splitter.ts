// Bytes in, lines out. Split at the byte of a line feed and nowhere else: U+2028 is text, and a character may come in
// two pieces.
//
// Invariants
// 1. A line that is too long is never held: it is told of once, and the rest of it is passed over.

const LINE_FEED = 0x0a;

export interface LineListener {
  line(bytes: Buffer): void;
  tooLong(): void;
}

export class LineSplitter {
  readonly #bytesMax: number;
  readonly #listener: LineListener;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The rest of a line of which too much has come. */
  #passing = false;

  constructor(bytesMax: number, listener: LineListener) {
    this.#bytesMax = bytesMax;
    this.#listener = listener;
  }

  push(piece: Buffer): void {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, from)) {
      this.#add(piece.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    if (from < piece.length) this.#add(piece.subarray(from));
  }

  /** Nothing more will come. JSON says by itself where it ends, so a last line without its line feed counts. */
  end(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  #add(piece: Buffer): void {
    if (this.#passing) return;
    this.#bytes += piece.length;
    if (this.#bytes <= this.#bytesMax) {
      this.#pieces.push(piece);
      return;
    }
    this.#passing = true;
    this.#pieces = [];
    this.#listener.tooLong();
  }

  #endLine(): void {
    const pieces = this.#pieces;
    const passed = this.#passing;
    this.#pieces = [];
    this.#bytes = 0;
    this.#passing = false;
    if (passed) return;
    this.#listener.line(pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces));
  }
}
