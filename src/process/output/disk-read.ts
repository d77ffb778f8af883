// Reading back what is kept, without trusting the folder: the child whose output it is may have had its hands in it.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A link is not followed, and a pipe somebody left in our place does not hang us. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** What a file has of [from, to): at least a byte, perhaps not all. Undefined: none, or it cannot be read. */
export async function readRange(path: string, from: number, to: number): Promise<Uint8Array | undefined> {
  return withFile(path, async (file) => {
    const bytes = Buffer.allocUnsafeSlow(to - from);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return bytesRead > 0 ? bytes.subarray(0, bytesRead) : undefined;
  });
}

/** How long a file is. Undefined: there is none, or it is something else. */
export async function sizeOf(path: string): Promise<number | undefined> {
  return withFile(path, async (file) => (await file.stat()).size);
}

async function withFile<T>(path: string, use: (file: FileHandle) => Promise<T>): Promise<T | undefined> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, FLAGS);
    return (await file.stat()).isFile() ? await use(file) : undefined;
  } catch {
    // What cannot be read is not kept: the reader is told how much is missing, and that is all it can use.
    return undefined;
  } finally {
    await file?.close().catch(() => undefined);
  }
}
