// Reads kept output without trusting its directory: the child whose output it is may have changed it.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Does not follow links, and does not block on a pipe that was put in place of the file. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * The bytes of a file in [from, to): at least one, possibly fewer than requested. Undefined: none, or it is unreadable.
 */
export async function readRange(path: string, from: number, to: number): Promise<Uint8Array | undefined> {
  return withFile(path, async (file) => {
    const bytes = Buffer.allocUnsafeSlow(to - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return bytesRead > 0 ? bytes.subarray(0, bytesRead) : undefined;
  });
}

/** The size of a file. Undefined: it does not exist, or is not a regular file. */
export async function sizeOf(path: string): Promise<number | undefined> {
  return withFile(path, async (file) => (await file.stat()).size);
}

async function withFile<T>(path: string, use: (file: FileHandle) => Promise<T>): Promise<T | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS);
    return (await file.stat()).isFile() ? await use(file) : undefined;
  } catch {
    // Unreadable bytes count as not kept: the reader only needs to know how much is missing.
    return undefined;
  } finally {
    await file?.close().catch(() => undefined);
  }
}
