// The stdin of a child: written in order, with the pipe's own pressure back to the writer.
import type { Writable } from "node:stream";
import { ControlError } from "../../core/errors.ts";

/** What may wait for a child that does not read. The caller is told instead of the memory filled. */
const WAITING_BYTES_MAX = 1024 * 1024;

export class Input {
  readonly #stream: Writable | undefined;

  constructor(stream: Writable | undefined) {
    this.#stream = stream;
  }

  /** Resolves when the pipe has taken it. Rejects if there is no pipe, or nobody at its end. */
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
    // What waits is still written, if anybody reads it.
    stream.end();
  }

  /** Nobody will read it any more. */
  destroy(): void {
    this.#stream?.destroy();
  }
}

const OPEN = 'Start it with `stdin: "open"`.';
const GONE = "Start another process.";

const refuse = (code: "invalid" | "closed" | "overloaded", message: string, hint: string): Promise<never> =>
  Promise.reject(new ControlError(code, message, { hint }));
