// What the store imports as `node:fs`, on the simulated disk. Only what the store uses of it.
import { disk } from "./disk-vfs.ts";
import { DiskError, type SimFile } from "./sim-disk.ts";

/** The one folder of the disk. */
export const FOLDER = "/disk";

interface Stats {
  readonly size: number;
  /** The store reads these as bigints. A file keeps its number for as long as it exists. */
  readonly dev: bigint;
  readonly ino: bigint;
  readonly nlink: bigint;
  isDirectory(): boolean;
  isFile(): boolean;
}

const opened = new Map<number, SimFile>();
const FOLDER_DESCRIPTOR = 100;
let lastDescriptor = FOLDER_DESCRIPTOR;

export const existsSync = (path: string): boolean => path === FOLDER || disk().file(path) !== undefined;

export function statSync(path: string, options: { readonly throwIfNoEntry?: boolean } = {}): Stats | undefined {
  if (path === FOLDER) return { size: 0, dev: 1n, ino: 1n, nlink: 1n, isDirectory: () => true, isFile: () => false };
  const file = disk().file(path);
  if (file !== undefined) {
    const [dev, ino, nlink] = [1n, numberOf(file), 1n];
    return { size: file.size, dev, ino, nlink, isDirectory: () => false, isFile: () => true };
  }
  if (options.throwIfNoEntry === false) return undefined;
  throw new DiskError("ENOENT");
}

export function fstatSync(descriptor: number): Stats | undefined {
  return descriptor === FOLDER_DESCRIPTOR ? statSync(FOLDER) : undefined;
}

const numbers = new WeakMap<SimFile, bigint>();
let lastNumber = 1n;

function numberOf(file: SimFile): bigint {
  const known = numbers.get(file);
  if (known !== undefined) return known;
  lastNumber += 1n;
  numbers.set(file, lastNumber);
  return lastNumber;
}

export const realpathSync = (path: string): string => path;

export function openSync(path: string): number {
  if (path === FOLDER) return FOLDER_DESCRIPTOR;
  const file = disk().file(path);
  if (file === undefined) throw new DiskError("ENOENT");
  lastDescriptor += 1;
  opened.set(lastDescriptor, file);
  return lastDescriptor;
}

export function readSync(
  descriptor: number,
  into: Uint8Array,
  ...[offset, length, at]: [number, number, number]
): number {
  const file = opened.get(descriptor);
  if (file === undefined) throw new DiskError("EIO");
  const bytes = file.bytes.subarray(at, Math.min(at + length, file.size));
  into.set(bytes, offset);
  return bytes.length;
}

export const closeSync = (descriptor: number): void => void opened.delete(descriptor);

export function rmSync(path: string): void {
  try {
    disk().remove(path);
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== "ENOENT") throw error;
  }
}

export function writeFileSync(path: string, content: string | Uint8Array): void {
  const file = disk().file(path) ?? disk().create(path);
  if (file.size > 0) disk().truncate(file, 0);
  disk().write(file, Buffer.from(content), 0);
}

export function readFileSync(path: string): string {
  const file = disk().file(path);
  if (file === undefined) throw new DiskError("ENOENT");
  return Buffer.from(file.bytes.subarray(0, file.size)).toString("utf8");
}

/** ext4, as the numbers of file systems go. It does not say how much room it has. */
export const statfsSync = () => ({ type: 0xef53, bsize: 4_096, blocks: 0, bavail: 0 });
