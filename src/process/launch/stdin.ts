// The stdin of a child: ordered writes, with the pipe's backpressure.
import type { Writable } from "node:stream";
import { ControlError } from "../../core/errors.ts";

/** The maximum buffered for a child that does not read. Beyond it writes are rejected instead of filling memory. */
const WAITING_BYTES_MAX = 1024 * 1024;

export class Input {
  readonly #stream: Writable | undefined;

  constructor(stream: Writable | undefined) {
    this.#stream = stream;
  }

  /** Resolves when the pipe has taken the data. Rejects if there is no pipe, or no reader. */
  write(data: string | Uint8Array): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined) return refuse("invalid", "This process was started without input.", OPEN);
    if (stream.writableEnded || stream.destroyed) return refuse("closed", "The input of this process has ended.", GONE);
    if (stream.writableLength > WAITING_BYTES_MAX) {
      return refuse("overloaded", "The process does not read its input.", "Wait until it has read what it was given.");
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    stream.write(data, (error) => {
      if (error === null || error === undefined) resolve();
      else reject(new ControlError("closed", "The process has closed its input.", { hint: GONE, cause: error }));
    });
    return promise;
  }

  end(): void {
    const stream = this.#stream;
    if (stream === undefined || stream.writableEnded) return;
    // Buffered data is still written if there is a reader.
    stream.end();
  }

  /** Call when the command has ended. */
  destroy(): void {
    this.#stream?.destroy();
  }
}

const OPEN = 'Start it with `stdin: "open"`.';
const GONE = "Start another process.";

const refuse = (code: "invalid" | "closed" | "overloaded", message: string, hint: string): Promise<never> =>
  Promise.reject(new ControlError(code, message, { hint }));
