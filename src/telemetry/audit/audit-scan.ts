// The lines of an audit file from its end backwards, a block at a time: newest first, with little in memory.
import type { FileHandle } from "node:fs/promises";
import { AUDIT_BLOCK_BYTES, AUDIT_LINE_BYTES_MAX } from "../limits.ts";
import { LINE_FEED } from "./audit-folder.ts";

export interface ScannedLine {
  /** Empty where there was nothing that could be a record. */
  readonly text: string;
  /** Where it begins. Reading on before it goes on with the line above. */
  readonly at: number;
}

/**
 * The lines that end before `end`. What is between the last line break and `end` is not a line: it was torn, or is
 * being written. The same goes for what is longer than any record: it is passed over up to where it begins.
 */
export async function* linesBefore(file: Pick<FileHandle, "read">, end: number): AsyncGenerator<ScannedLine, void> {
  let from = end;
  /** The end of a line whose beginning is further up. */
  let rest: Buffer = Buffer.alloc(0);
  let passing = true;
  while (from > 0) {
    const block = await read(file, Math.max(0, from - AUDIT_BLOCK_BYTES), from);
    // A file that is shorter than it was has been tampered with, and is over.
    if (block.length === 0) return;
    from = Math.max(0, from - AUDIT_BLOCK_BYTES);
    const bytes = Buffer.concat([block, rest]);
    let stop = bytes.length;
    for (let feed = lastFeed(bytes, stop); feed !== -1; feed = lastFeed(bytes, stop)) {
      if (!passing) yield { text: bytes.toString("utf8", feed + 1, stop), at: from + feed + 1 };
      passing = false;
      stop = feed;
    }
    rest = bytes.subarray(0, stop);
    if (passing || rest.length > AUDIT_LINE_BYTES_MAX) {
      passing = true;
      rest = Buffer.alloc(0);
      yield { text: "", at: from };
    }
  }
  if (!passing) yield { text: rest.toString("utf8"), at: 0 };
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
