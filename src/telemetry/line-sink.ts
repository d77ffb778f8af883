// Where log lines go: a stream that may be slow, full or gone, and never troubles whoever logs.
//
// Invariants
// 1. `write` never throws and never waits.
// 2. What waits for a slow reader is at most SINK_BYTES_MAX; what comes then is dropped and counted.
// 3. Once the stream has failed nothing is written to it again.
import { SINK_BYTES_MAX } from "./limits.ts";

/** What a writable stream can do, as far as it is needed. */
export interface LineStream {
  write(text: string, done: (error?: Error | null) => void): unknown;
  /** A stream that fails with nobody listening ends the program. */
  on(event: "error", heard: () => void): unknown;
  /** Bytes that wait. */
  readonly writableLength: number;
}

export class LineSink {
  readonly #stream: LineStream;
  #dropped = 0;
  #told = 0;
  #dead = false;

  constructor(stream: LineStream) {
    this.#stream = stream;
    stream.on("error", () => {
      this.#dead = true;
    });
  }

  /** Lines that went nowhere. */
  get dropped(): number {
    return this.#dropped;
  }

  /** How many went nowhere since this was last asked; 0 as long as there is nobody to tell it to. */
  takeDropped(): number {
    if (!this.#takes()) return 0;
    const count = this.#dropped - this.#told;
    this.#told = this.#dropped;
    return count;
  }

  write(line: string): void {
    if (!this.#takes()) {
      this.#dropped += 1;
      return;
    }
    try {
      this.#stream.write(line, (error) => {
        if (error) this.#dropped += 1;
      });
    } catch {
      this.#dead = true;
      this.#dropped += 1;
    }
  }

  #takes(): boolean {
    return !this.#dead && this.#stream.writableLength <= SINK_BYTES_MAX;
  }
}

/** The standard error of this program: standard output belongs to whoever speaks a protocol on it. */
export const standardError = (): LineSink => new LineSink(process.stderr);
