// The bytes of one stream, running or saved. Types only.
import type { Stream } from "../../ports/spawner.ts";

export interface Source {
  readonly stream: Stream;
  /** The known number of bytes that the child has written. */
  readonly total: number;
  /** No more bytes follow. */
  readonly ended: boolean;
  /**
   * The bytes in memory of [from, to), beginning exactly at `from`: at least one, possibly not all. They do not change.
   */
  memory(from: number, to: number): Uint8Array | undefined;
  /** The same from disk. Never rejects: unreadable bytes count as not kept. */
  disk(from: number, to: number): Promise<Uint8Array | undefined>;
  /** The end of the gap that contains `from`: the first byte in memory, or the end. */
  next(from: number): number;
}
