// Captures the output of a running child: every byte is counted, and kept up to the limits.
//
// Invariants
// 1. The counts are exact: they include every byte taken, kept or not. `all` has them in order of arrival.
// 2. Memory is bounded for any amount of output, any speed of the disk and any number of readers.
// 3. A disk error never breaks the capture. Counts, head and tail remain, and readers learn how much is missing.
// 4. The end does not wait for pipes: later output is not taken, even if a process still holds the other end.
import { messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Excerpt, Output, OutputCounts, OutputPage, OutputPageOptions, Stream } from "../../ports/spawner.ts";
import { CapturedStream } from "./captured-stream.ts";
import { type Ends, saveCounts, streamPath } from "./counts-file.ts";
import { follow, Growth } from "./follow.ts";
import type { HeadAndTailSize } from "./head-and-tail.ts";
import type { OpenSink } from "./kept-file.ts";
import { FLUSH_MS_MAX, OUTPUT_BYTES_DEFAULT, WAITING_BYTES_PAUSE, WAITING_BYTES_RESUME } from "./limits.ts";
import { countLineEnds } from "./line-ends.ts";
import { excerptOf, readPage, streamOf } from "./output-page.ts";

export interface CaptureOptions extends HeadAndTailSize {
  /** Exists, is private to us, and holds no output yet. */
  readonly dir: string;
  readonly clock: Clock;
  /** Bytes kept on disk of stdout, of stderr, and of both together. Default OUTPUT_BYTES_DEFAULT. */
  readonly outputBytesMax?: number | undefined;
  /** `one`: a terminal, which has no stderr. Everything is stdout then, and `all` is the same. Default `apart`. */
  readonly streams?: "apart" | "one" | undefined;
  /** Called once after `take` has returned "pause", when reading can resume. Must not throw. */
  readonly onDrain?: (() => void) | undefined;
  /** How files are opened; for tests of slow or full disks. */
  readonly openSink?: OpenSink | undefined;
}

export class Capture implements Output {
  readonly dir: string;
  readonly #clock: Clock;
  readonly #onDrain: (() => void) | undefined;
  readonly #streams: Readonly<Record<Stream, CapturedStream>>;
  /** Without duplicates: for a terminal, stdout and `all` are the same stream. */
  readonly #each: readonly CapturedStream[];
  readonly #growth = new Growth();
  #lines = 0;
  #lastAt: number;
  #paused = false;
  #late: string | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: CaptureOptions) {
    this.dir = options.dir;
    this.#clock = options.clock;
    this.#onDrain = options.onDrain;
    this.#lastAt = options.clock.elapsed();
    const make = (stream: Stream): CapturedStream => {
      const bytesMax = options.outputBytesMax ?? OUTPUT_BYTES_DEFAULT;
      const path = streamPath(options.dir, stream);
      return new CapturedStream(
        stream,
        { path, bytesMax, onChange: () => this.#drained(), openSink: options.openSink },
        options,
      );
    };
    const stdout = make("stdout");
    const all = options.streams === "one" ? stdout : make("all");
    this.#streams = { stdout, stderr: make("stderr"), all };
    this.#each = [...new Set(Object.values(this.#streams))];
  }

  get counts(): OutputCounts {
    const { stdout, stderr, all } = this.#streams;
    return {
      bytes: { stdout: stdout.total, stderr: stderr.total, all: all.total },
      kept: { stdout: stdout.file.written, stderr: stderr.file.written, all: all.file.written },
      lines: this.#lines,
    };
  }

  get lastAt(): number {
    return this.#lastAt;
  }

  /** The first error that left a file incomplete, for the operator. Reaching a limit is not an error. */
  get trouble(): string | undefined {
    const troubled = this.#each.find(({ file }) => file.trouble !== undefined);
    return troubled === undefined ? this.#late : `${troubled.file.path} is not complete: ${troubled.file.trouble}`;
  }

  /** All memory that depends on the child's output; bounded by the sum of the limits. */
  get heldBytes(): number {
    return this.#each.reduce((sum, stream) => sum + stream.heldBytes, 0);
  }

  /** Takes a copy of bytes read from a pipe. After "pause", resume reading when `onDrain` is called. */
  take(from: "stdout" | "stderr", bytes: Uint8Array): "go" | "pause" {
    if (this.#ending !== undefined || bytes.length === 0) return "go";
    const { all, stdout } = this.#streams;
    const own = all === stdout ? stdout : this.#streams[from];
    own.take(bytes);
    if (own !== all) all.take(bytes);
    this.#lines += countLineEnds(bytes);
    this.#lastAt = this.#clock.elapsed();
    this.#growth.notify();
    this.#paused ||= own.file.waiting >= WAITING_BYTES_PAUSE || all.file.waiting >= WAITING_BYTES_PAUSE;
    return this.#paused ? "pause" : "go";
  }

  async read(options: OutputPageOptions = {}): Promise<OutputPage> {
    const stream = streamOf(options);
    return { ...(await readPage(this.#streams[stream], options)), stream };
  }

  excerpt(options: Omit<OutputPageOptions, "offset"> = {}): Excerpt {
    return excerptOf(this.#streams[streamOf(options)], options);
  }

  async *follow(options: OutputPageOptions & { readonly signal?: AbortSignal } = {}): AsyncGenerator<OutputPage, void> {
    const stream = streamOf(options);
    for await (const page of follow(this.#streams[stream], this.#growth, options)) yield { ...page, stream };
  }

  /**
   * Ends the capture. Resolves when the files and counts are complete, or after FLUSH_MS_MAX. Never rejects; a second
   * call returns the same promise.
   */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const flushed = Promise.all(this.#each.map((stream) => stream.end()));
    this.#growth.notify();
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const dispose = this.#clock.after(FLUSH_MS_MAX, () => resolve("late"));
    const ended = await Promise.race([flushed.then(() => this.#save()), late]);
    dispose();
    if (ended === "late")
      this.#late ??= `The disk took longer than ${FLUSH_MS_MAX} ms to write the rest of the output.`;
  }

  async #save(): Promise<void> {
    try {
      await saveCounts(this.dir, { counts: this.counts, ends: this.#endsNotOnDisk() });
    } catch (error) {
      this.#late ??= `The counts could not be written to ${this.dir}: ${messageOf(error)}`;
    }
  }

  #endsNotOnDisk(): Partial<Record<Stream, Ends>> {
    const short = Object.entries(this.#streams).filter(([, { file, total }]) => file.written < total);
    return Object.fromEntries(short.map(([stream, { ends }]) => [stream, ends.both()]));
  }

  #drained(): void {
    // A file that ended with an error has no bytes waiting, so it needs no check.
    if (!this.#paused || this.#each.some(({ file }) => file.waiting > WAITING_BYTES_RESUME)) return;
    this.#paused = false;
    this.#onDrain?.();
  }
}
