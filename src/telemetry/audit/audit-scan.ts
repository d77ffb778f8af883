// Reads the lines of an audit file backwards from its end, one block at a time: newest first, in bounded memory.
import type { FileHandle } from "node:fs/promises";
import { AUDIT_BLOCK_BYTES, AUDIT_LINE_BYTES_MAX } from "../limits.ts";
import { LINE_FEED } from "./audit-folder.ts";

export interface ScannedLine {
  /** Empty if the bytes cannot be a record. */
  readonly text: string;
  /** The offset of its first byte. Reading the lines before it continues with the previous line. */
  readonly at: number;
}

/**
 * Yields the lines that end before `end`. The bytes between the last line break and `end` are not a line: they are
 * torn, or are being written. Lines longer than any record are skipped.
 */
export async function* linesBefore(file: Pick<FileHandle, "read">, end: number): AsyncGenerator<ScannedLine, void> {
  let from = end;
  /** The end of a line whose beginning is in an earlier block. */
  let rest: Buffer = Buffer.alloc(0);
  let isSkipping = true;
  while (from > 0) {
    const block = await read(file, Math.max(0, from - AUDIT_BLOCK_BYTES), from);
    // The file was truncated after its size was read: stop.
    if (block.length === 0) return;
    from = Math.max(0, from - AUDIT_BLOCK_BYTES);
    const bytes = Buffer.concat([block, rest]);
    let stop = bytes.length;
    for (let feed = lastFeed(bytes, stop); feed !== -1; feed = lastFeed(bytes, stop)) {
      if (!isSkipping) yield { text: bytes.toString("utf8", feed + 1, stop), at: from + feed + 1 };
      isSkipping = false;
      stop = feed;
    }
    rest = bytes.subarray(0, stop);
    if (isSkipping || rest.length > AUDIT_LINE_BYTES_MAX) {
      isSkipping = true;
      rest = Buffer.alloc(0);
      yield { text: "", at: from };
    }
  }
  if (!isSkipping) yield { text: rest.toString("utf8"), at: 0 };
}

const lastFeed = (bytes: Buffer, before: number): number =>
  before === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, before - 1);

async function read(file: Pick<FileHandle, "read">, from: number, to: number): Promise<Buffer> {
  const block = Buffer.alloc(to - from);
  let filled = 0;
  while (filled < block.length) {
    const { bytesRead } = await file.read(block, filled, block.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return block.subarray(0, filled);
}
