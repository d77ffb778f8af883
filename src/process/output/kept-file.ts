// One file of output: bytes go in without waiting and are on disk soon after, in order, up to a stated size.
//
// Invariants
// 1. The file is a prefix of the stream without holes: after the first byte that is not accepted none is.
// 2. One write is under way at a time; what comes meanwhile waits, and is written together.
// 3. What is accepted can be read at once: `pending` has what the disk has not.
// 4. What waits is at most WAITING_BYTES_MAX, whether or not anybody pauses.
// 5. Nothing here throws into the reader of the pipe. Trouble is remembered, and ends the file where it is.
import { open } from "node:fs/promises";
import { messageOf } from "../../core/errors.ts";
import { BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, WAITING_BYTES_MAX } from "./limits.ts";

/** What a file handle can do, as far as it is needed. */
export interface Sink {
  writev(buffers: readonly Uint8Array[], position: number): Promise<{ readonly bytesWritten: number }>;
  close(): Promise<void>;
}

export type OpenSink = (path: string) => Promise<Sink>;

export interface KeptFileOptions {
  readonly path: string;
  readonly bytesMax: number;
  /** Called when less waits than before, and when there is trouble. */
  readonly onChange: () => void;
  readonly openSink?: OpenSink | undefined;
}

/** Bytes that wait for the disk, and where in the file they belong. */
interface Block {
  readonly from: number;
  readonly bytes: Uint8Array;
  used: number;
}

/** Only a new file, and never through a link: whoever put something there first does not get our writes. */
const createNew: OpenSink = (path) => open(path, "wx", 0o600);

export class KeptFile {
  readonly #options: KeptFileOptions;
  #inFlight: Block[] = [];
  #filling: Block[] = [];
  #accepted = 0;
  #written = 0;
  #full = false;
  #sink: Sink | undefined;
  #writing: Promise<void> | undefined;
  #trouble: string | undefined;

  constructor(options: KeptFileOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  /** Bytes that are on disk. */
  get written(): number {
    return this.#written;
  }

  get waiting(): number {
    return this.#accepted - this.#written;
  }

  /** The memory that takes. */
  get heldBytes(): number {
    return [...this.#inFlight, ...this.#filling].reduce((sum, block) => sum + block.bytes.length, 0);
  }

  /** Why the file ends before its limit, if it does. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Takes a copy of what there is room for. */
  take(bytes: Uint8Array): void {
    if (this.#full || bytes.length === 0) return;
    const count = Math.min(bytes.length, this.#options.bytesMax - this.#accepted, WAITING_BYTES_MAX - this.waiting);
    this.#copyIn(bytes.subarray(0, count));
    if (count < bytes.length) this.#fill();
    if (count > 0) this.#writing ??= this.#write();
  }

  /** What waits of [from, to), beginning exactly at `from`. */
  pending(from: number, to: number): Uint8Array | undefined {
    if (from < this.#written || from >= this.#accepted) return undefined;
    for (const blocks of [this.#inFlight, this.#filling]) {
      const block = blocks.find((one) => from < one.from + one.used);
      // Not a copy: what is used of a block is never written again.
      if (block !== undefined) return block.bytes.subarray(from - block.from, Math.min(to - block.from, block.used));
    }
    return undefined;
  }

  /** Takes nothing more, and resolves when what was accepted is on disk or cannot be. */
  async end(): Promise<void> {
    this.#full = true;
    await this.#writing;
    const sink = this.#sink;
    this.#sink = undefined;
    try {
      await sink?.close(); // @fault leak-fd
    } catch (error) {
      this.#fail(messageOf(error));
    }
  }

  #fill(): void {
    this.#full = true;
    if (this.#accepted === this.#options.bytesMax) return;
    this.#trouble ??= `the disk did not keep up: ${this.waiting} bytes were waiting for it, and more came.`;
  }

  #copyIn(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const block = this.#roomFor(bytes.length - at);
      const count = Math.min(bytes.length - at, block.bytes.length - block.used);
      block.bytes.set(bytes.subarray(at, at + count), block.used);
      block.used += count;
      this.#accepted += count;
      at += count;
    }
  }

  #roomFor(count: number): Block {
    const last = this.#filling.at(-1);
    if (last !== undefined && last.used < last.bytes.length) return last;
    const size = Math.min(BLOCK_BYTES_MAX, Math.max(BLOCK_BYTES_MIN, count));
    const block = { from: this.#accepted, bytes: Buffer.allocUnsafeSlow(size), used: 0 };
    this.#filling.push(block);
    return block;
  }

  async #write(): Promise<void> {
    try {
      this.#sink ??= await (this.#options.openSink ?? createNew)(this.path);
      while (this.#filling.length > 0) {
        this.#inFlight = this.#filling;
        this.#filling = [];
        await this.#writeAll(
          this.#sink,
          this.#inFlight.map((block) => block.bytes.subarray(0, block.used)),
        );
        this.#inFlight = [];
        this.#options.onChange();
      }
    } catch (error) {
      this.#fail(messageOf(error));
    } finally {
      this.#writing = undefined;
    }
  }

  /** A disk may take less than it is given; the rest is offered again. */
  async #writeAll(sink: Sink, buffers: readonly Uint8Array[]): Promise<void> {
    let left = buffers;
    while (left.length > 0) {
      const { bytesWritten } = await sink.writev(left, this.#written);
      if (bytesWritten === 0) throw new Error("the disk takes nothing more.");
      this.#written += bytesWritten;
      left = behind(left, bytesWritten);
    }
  }

  #fail(message: string): void {
    this.#full = true;
    this.#trouble ??= message;
    this.#accepted = this.#written;
    this.#inFlight = [];
    this.#filling = [];
    this.#options.onChange();
  }
}

/** What is left of these buffers without their first `count` bytes. */
function behind(buffers: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  let passed = count;
  const index = buffers.findIndex((one) => {
    if (passed < one.length) return true;
    passed -= one.length;
    return false;
  });
  const first = buffers[index];
  return first === undefined ? [] : [first.subarray(passed), ...buffers.slice(index + 1)];
}
