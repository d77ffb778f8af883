// The output of a child that is going on: everything it writes comes by here, is counted, and is kept as far as agreed.
//
// Invariants
// 1. The counts are exact: every byte that was taken, kept or not. `all` has them in the order in which they came.
// 2. Memory is bounded however much comes, however slow the disk is, and however many read.
// 3. The disk never breaks the capture. Without it the counts, the head and the tail remain, and readers are told what
//    is missing.
// 4. The end waits for no pipe: what comes after it is not taken any more, whoever still holds the other end.
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
  /** Exists, is ours alone, and holds no output yet. */
  readonly dir: string;
  readonly clock: Clock;
  /** Bytes kept on disk of stdout, of stderr, and of both together. Default OUTPUT_BYTES_DEFAULT. */
  readonly outputBytesMax?: number | undefined;
  /** `one`: a terminal, which has no stderr. Everything is stdout then, and `all` is the same. Default `apart`. */
  readonly streams?: "apart" | "one" | undefined;
  /** Called after `take` has answered "pause", once, when it is time to read on. Must not throw. */
  readonly onDrain?: (() => void) | undefined;
  /** How files are made; for tests of disks that are slow or full. */
  readonly openSink?: OpenSink | undefined;
}

export class Capture implements Output {
  readonly dir: string;
  readonly #clock: Clock;
  readonly #onDrain: (() => void) | undefined;
  readonly #streams: Readonly<Record<Stream, CapturedStream>>;
  /** Each once: of a terminal, stdout and `all` are the same. */
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

  /** The first thing that kept the files from being complete, for the operator. A limit that was reached is none. */
  get trouble(): string | undefined {
    const troubled = this.#each.find(({ file }) => file.trouble !== undefined);
    return troubled === undefined ? this.#late : `${troubled.file.path} is not complete: ${troubled.file.trouble}`;
  }

  /** All memory that grows with what a child writes; bounded by what the limits add up to. */
  get heldBytes(): number {
    return this.#each.reduce((sum, stream) => sum + stream.heldBytes, 0);
  }

  /** Takes what was read from a pipe, by copying it. After "pause", read on when `onDrain` is called. */
  take(from: "stdout" | "stderr", bytes: Uint8Array): "go" | "pause" {
    if (this.#ending !== undefined || bytes.length === 0) return "go";
    const { all, stdout } = this.#streams;
    const own = all === stdout ? stdout : this.#streams[from];
    own.take(bytes);
    if (own !== all) all.take(bytes);
    this.#lines += countLineEnds(bytes);
    this.#lastAt = this.#clock.elapsed();
    this.#growth.tell();
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
   * Nothing more comes. Resolves when the files are complete, with the counts beside them, or FLUSH_MS_MAX has passed.
   * Never rejects; again it is the same end.
   */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const flushed = Promise.all(this.#each.map((stream) => stream.end()));
    this.#growth.tell();
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const dispose = this.#clock.after(FLUSH_MS_MAX, () => resolve("late"));
    const ended = await Promise.race([flushed.then(() => this.#save()), late]);
    dispose();
    if (ended === "late")
      this.#late ??= `The disk took longer than ${FLUSH_MS_MAX} ms to take in the rest of the output.`;
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
    // Not a condition on trouble: a file that ended so has nothing waiting.
    if (!this.#paused || this.#each.some(({ file }) => file.waiting > WAITING_BYTES_RESUME)) return;
    this.#paused = false;
    this.#onDrain?.();
  }
}
