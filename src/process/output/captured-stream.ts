// One stream of a running child: its byte count, its head and tail in memory, its file.
import type { Stream } from "../../ports/spawner.ts";
import { readRange } from "./disk-read.ts";
import { HeadAndTail, type HeadAndTailSize } from "./head-and-tail.ts";
import { KeptFile, type KeptFileOptions } from "./kept-file.ts";
import type { Source } from "./source.ts";

export class CapturedStream implements Source {
  readonly stream: Stream;
  readonly file: KeptFile;
  readonly ends: HeadAndTail;
  #ended = false;

  constructor(stream: Stream, file: KeptFileOptions, size: HeadAndTailSize) {
    this.stream = stream;
    this.file = new KeptFile(file);
    this.ends = new HeadAndTail(size);
  }

  get total(): number {
    return this.ends.total;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get heldBytes(): number {
    return this.ends.heldBytes + this.file.heldBytes;
  }

  take(bytes: Uint8Array): void {
    this.ends.take(bytes);
    this.file.take(bytes);
  }

  /** Ends the stream in this tick; resolves when the file is complete. */
  end(): Promise<void> {
    this.#ended = true;
    return this.file.end();
  }

  memory(from: number, to: number): Uint8Array | undefined {
    return this.ends.piece(from, to) ?? this.file.pending(from, to);
  }

  async disk(from: number, to: number): Promise<Uint8Array | undefined> {
    const { written, path } = this.file;
    return from < written ? readRange(path, from, Math.min(to, written)) : undefined;
  }

  next(from: number): number {
    const { written, waiting } = this.file;
    // Only after a read failed although the bytes were written: bytes still in the queue come before the tail.
    if (from < written && waiting > 0) return written;
    return Math.max(from, this.ends.tailFrom);
  }
}
