// The first and the last bytes of a stream, in bounded memory.
//
// Invariants
// 1. No byte is held twice: the tail begins behind the head. While both have room, together they are the whole stream.
// 2. Returned pieces do not change: pieces of the head are never overwritten, pieces of the tail are copies.
import { HEAD_BYTES, TAIL_BYTES } from "./limits.ts";

export interface HeadAndTailSize {
  readonly headBytes?: number | undefined;
  readonly tailBytes?: number | undefined;
}

export class HeadAndTail {
  readonly #headMax: number;
  readonly #tailMax: number;
  // Allocated on demand: most programs write little, and many only to one stream.
  #head: Uint8Array | undefined;
  #ring: Uint8Array | undefined;
  #total = 0;

  constructor(size: HeadAndTailSize = {}) {
    this.#headMax = size.headBytes ?? HEAD_BYTES;
    this.#tailMax = size.tailBytes ?? TAIL_BYTES;
  }

  /** The number of bytes taken. */
  get total(): number {
    return this.#total;
  }

  /** The end of the head. */
  get headTo(): number {
    return Math.min(this.#total, this.#headMax);
  }

  /** The beginning of the tail. */
  get tailFrom(): number {
    return Math.max(this.headTo, this.#total - this.#tailMax);
  }

  /** The memory in use. */
  get heldBytes(): number {
    return (this.#head?.length ?? 0) + (this.#ring?.length ?? 0);
  }

  take(bytes: Uint8Array): void {
    const first = Math.min(bytes.length, this.#headMax - this.headTo);
    if (first > 0) {
      this.#head ??= new Uint8Array(this.#headMax);
      this.#head.set(bytes.subarray(0, first), this.#total);
    }
    this.#total += bytes.length;
    if (first < bytes.length) this.#keepLast(bytes, Math.min(bytes.length - first, this.#tailMax));
  }

  /** The bytes held of [from, to), beginning exactly at `from`; possibly not all. Undefined: not even the first. */
  piece(from: number, to: number): Uint8Array | undefined {
    if (from < this.headTo) return this.#head?.subarray(from, Math.min(to, this.headTo));
    if (from < this.tailFrom || from >= this.#total) return undefined;
    const at = this.#placeOf(from);
    return this.#ring?.slice(at, Math.min(at + Math.min(to, this.#total) - from, this.#tailMax));
  }

  /** The whole head and the whole tail. */
  both(): { readonly head: Uint8Array; readonly tail: Uint8Array } {
    const tail = new Uint8Array(this.#total - this.tailFrom);
    for (let at = this.tailFrom; at < this.#total; ) {
      const piece = this.piece(at, this.#total);
      if (piece === undefined) break;
      tail.set(piece, at - this.tailFrom);
      at += piece.length;
    }
    return { head: this.#head?.subarray(0, this.headTo) ?? new Uint8Array(), tail };
  }

  #keepLast(bytes: Uint8Array, count: number): void {
    this.#ring ??= new Uint8Array(this.#tailMax);
    const at = this.#placeOf(this.#total - count);
    const toEnd = Math.min(count, this.#tailMax - at);
    const from = bytes.length - count;
    this.#ring.set(bytes.subarray(from, from + toEnd), at);
    this.#ring.set(bytes.subarray(from + toEnd), 0);
  }

  #placeOf(offset: number): number {
    return (offset - this.#headMax) % this.#tailMax;
  }
}
