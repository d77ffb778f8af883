// Where the bytes of one stream are, whether it is going on or was kept by an earlier life. Types only.
import type { Stream } from "../../ports/spawner.ts";

export interface Source {
  readonly stream: Stream;
  /** Bytes the child has written to it, as far as is known. */
  readonly total: number;
  /** Nothing comes any more. */
  readonly ended: boolean;
  /** What memory has of [from, to), beginning exactly at `from`: at least a byte, perhaps not all. Does not change. */
  memory(from: number, to: number): Uint8Array | undefined;
  /** The same from disk. Never rejects: what cannot be read is not kept. */
  disk(from: number, to: number): Promise<Uint8Array | undefined>;
  /** Where reading goes on behind a hole that `from` is in: the first byte that memory has, or the end. */
  next(from: number): number;
}
