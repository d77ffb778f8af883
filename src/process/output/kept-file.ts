// One file of output: bytes are accepted without waiting and written soon after, in order, up to a limit.
//
// Invariants
// 1. The file is a prefix of the stream without holes: after the first byte that is rejected, none is accepted.
// 2. One write is in progress at a time; bytes that arrive meanwhile are queued, and written together.
// 3. Accepted bytes can be read at once: `pending` has those that are not on disk yet.
// 4. At most WAITING_BYTES_MAX are queued, whether the caller pauses or not.
// 5. Nothing here throws into the reader of the pipe. The first error is recorded, and ends the file there.
import { open } from "node:fs/promises";
import { messageOf } from "../../core/errors.ts";
import { BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, WAITING_BYTES_MAX } from "./limits.ts";

/** The part of a file handle that is needed. */
export interface Sink {
  writev(buffers: readonly Uint8Array[], position: number): Promise<{ readonly bytesWritten: number }>;
  close(): Promise<void>;
}

export type OpenSink = (path: string) => Promise<Sink>;

export interface KeptFileOptions {
  readonly path: string;
  readonly bytesMax: number;
  /** Called when the queue gets shorter, and after an error. */
  readonly onChange: () => void;
  readonly openSink?: OpenSink | undefined;
}

/** Queued bytes, and their position in the file. */
interface Block {
  readonly from: number;
  readonly bytes: Uint8Array;
  used: number;
}

/** Creates a new file and never follows a link, so that our writes go to no file that was put there first. */
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

  /** The memory of queued bytes. */
  get heldBytes(): number {
    return [...this.#inFlight, ...this.#filling].reduce((sum, block) => sum + block.bytes.length, 0);
  }

  /** Why the file ends before its limit, if it does. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Copies as many bytes as there is room for. */
  take(bytes: Uint8Array): void {
    if (this.#full || bytes.length === 0) return;
    const count = Math.min(bytes.length, this.#options.bytesMax - this.#accepted, WAITING_BYTES_MAX - this.waiting);
    this.#copyIn(bytes.subarray(0, count));
    if (count < bytes.length) this.#fill();
    if (count > 0) this.#writing ??= this.#write();
  }

  /** The queued bytes of [from, to), beginning exactly at `from`. */
  pending(from: number, to: number): Uint8Array | undefined {
    if (from < this.#written || from >= this.#accepted) return undefined;
    for (const blocks of [this.#inFlight, this.#filling]) {
      const block = blocks.find((one) => from < one.from + one.used);
      // Not a copy: the used part of a block is never overwritten.
      if (block !== undefined) return block.bytes.subarray(from - block.from, Math.min(to - block.from, block.used));
    }
    return undefined;
  }

  /** Accepts no more bytes, and resolves when all accepted bytes are on disk or have failed. */
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
    this.#trouble ??= `the disk did not keep up: ${this.waiting} bytes were queued when more arrived.`;
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

  /** A disk may accept fewer bytes than offered; the rest is offered again. */
  async #writeAll(sink: Sink, buffers: readonly Uint8Array[]): Promise<void> {
    let left = buffers;
    while (left.length > 0) {
      const { bytesWritten } = await sink.writev(left, this.#written);
      if (bytesWritten === 0) throw new Error("the disk accepts no more bytes.");
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

/** These buffers without their first `count` bytes. */
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
