// Writes log lines to a stream that may be slow, full or closed, without affecting the caller.
//
// Invariants
// 1. `write` never throws and never waits.
// 2. Under backpressure at most SINK_BYTES_MAX are buffered; further lines are dropped and counted.
// 3. After the stream has failed, nothing is written to it.
import { SINK_BYTES_MAX } from "./limits.ts";

/** The part of a writable stream that the sink needs. */
export interface LineStream {
  write(text: string, done: (error?: Error | null) => void): unknown;
  /** An `error` event without a listener would end the program. */
  on(event: "error", listener: () => void): unknown;
  /** Buffered bytes. */
  readonly writableLength: number;
}

export class LineSink {
  readonly #stream: LineStream;
  #dropped = 0;
  #reported = 0;
  #failed = false;

  constructor(stream: LineStream) {
    this.#stream = stream;
    stream.on("error", () => {
      this.#failed = true;
    });
  }

  /** The number of dropped lines. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The lines dropped since the last call. 0 as long as the stream accepts no line to report them in. */
  takeDropped(): number {
    if (!this.#isWritable()) return 0;
    const count = this.#dropped - this.#reported;
    this.#reported = this.#dropped;
    return count;
  }

  write(line: string): void {
    if (!this.#isWritable()) {
      this.#dropped += 1;
      return;
    }
    try {
      this.#stream.write(line, (error) => {
        if (error) this.#dropped += 1;
      });
    } catch {
      this.#failed = true;
      this.#dropped += 1;
    }
  }

  #isWritable(): boolean {
    return !this.#failed && this.#stream.writableLength <= SINK_BYTES_MAX;
  }
}

/** A sink on stderr. Stdout is reserved for protocols. */
export const standardError = (): LineSink => new LineSink(process.stderr);
