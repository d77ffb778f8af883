// A disk that forgets. What was written and not synced is in doubt; when the power goes, anything may become of it.
//
// What it promises, which is what ext4 and xfs promise, taken at its least favourable:
// - A sector of 512 bytes that was written since the last sync of its file may hold any of the contents it has had
//   since then, or be torn between two of them, whatever becomes of its neighbours and in whatever order they were
//   written.
// - The length of a file may be any it has had since the last sync, or lie between them. Where a file has grown and the
//   bytes did not follow, there are zeros or garbage.
// - Cutting a file short happens as a whole or not at all, and before whatever is written to it later: file systems
//   keep a journal of it. Either all of its past is still there, or nothing behind the new end is.
// - A sync of a file makes its bytes and its length durable, and does not speak of its name. A name that was made or
//   removed may be there or not, until its directory is synced.
// - A write changes no byte beside those it is about (SQLite calls that powersafe overwrite, and relies on it).
// - A power cut in the middle of a sync leaves what a cut before it would: some of it done.
//
// Invariants
// 1. After the power has gone nothing answers, and nothing changes, until `restore`.
// 2. The same choices make the same disk.
import { createHash } from "node:crypto";
import { type Chooser, chance, pick } from "../../sim/chooser.ts";

export const SECTOR_BYTES = 512;

/** What a disk may pretend to have done: all of its syncs, or only those of some files. */
export type Lie = "database" | "log" | "directory" | "all";

/** What was going on when the power went. */
export interface Moment {
  readonly doing: "write" | "sync" | "truncate" | "create" | "delete" | "sync-directory" | "nothing";
  readonly path: string;
}

export class DiskError extends Error {
  override readonly name = "DiskError";
  readonly code: "EIO" | "ENOSPC" | "ENOENT";

  constructor(code: DiskError["code"]) {
    super(code);
    this.code = code;
  }
}

interface Version {
  readonly order: number;
  /** Undefined: the file did not reach so far, so nobody knows what is there. */
  readonly bytes: Uint8Array | undefined;
}

/** What a file was before it was cut short. */
type Past = Pick<SimFile, "bytes" | "size" | "doubts" | "sizes">;

export class SimFile {
  readonly path: string;
  bytes = new Uint8Array(4_096);
  size = 0;
  /** By number of sector: what it was at the last sync, and what it has been since. */
  doubts = new Map<number, Version[]>();
  /** The length at the last sync, and those since. */
  sizes: number[] = [0];
  /** Since the last sync, oldest first. */
  pasts: Past[] = [];

  constructor(path: string) {
    this.path = path;
  }
}

/** How one cut chooses among what is in doubt. */
type Fate = (versions: readonly Version[]) => number;

export class SimDisk {
  readonly #lies: ReadonlySet<Lie>;
  readonly #names = new Map<string, SimFile>();
  readonly #nameDoubts = new Map<string, (SimFile | undefined)[]>();
  #order = 0;
  #left = Number.POSITIVE_INFINITY;
  #moment: Moment = { doing: "nothing", path: "" };
  #dead = false;
  /** Bytes that fit on it. */
  capacity = Number.POSITIVE_INFINITY;
  /** Rises with every end of the machine or of the program: what was opened before is of no use afterwards. */
  generation = 0;

  constructor(lies: readonly Lie[] = []) {
    this.#lies = new Set(lies);
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** The power goes in the middle of the `changes`-th change from now. */
  cutAfter(changes: number): void {
    this.#left = changes;
  }

  /** The power goes now. */
  cut(): void {
    this.#dead = true;
  }

  file(path: string): SimFile | undefined {
    if (this.#dead) throw new DiskError("EIO");
    return this.#names.get(path);
  }

  create(path: string): SimFile {
    const last = this.#change("create", path);
    const file = new SimFile(path);
    this.#rename(path, file);
    if (last) throw new DiskError("EIO");
    return file;
  }

  remove(path: string): void {
    const last = this.#change("delete", path);
    if (!this.#names.has(path)) throw new DiskError("ENOENT");
    this.#rename(path, undefined);
    if (last) throw new DiskError("EIO");
  }

  write(file: SimFile, bytes: Uint8Array, at: number): void {
    const last = this.#change("write", file.path);
    const end = at + bytes.length;
    if (end > file.size && this.used + end - file.size > this.capacity) throw new DiskError("ENOSPC");
    this.#doubt(file, at, end);
    grow(file, end);
    file.bytes.set(bytes, at);
    file.size = Math.max(file.size, end);
    this.#note(file, at, end);
    if (last) throw new DiskError("EIO");
  }

  truncate(file: SimFile, size: number): void {
    const last = this.#change("truncate", file.path);
    if (size < file.size) {
      file.pasts.push({ bytes: file.bytes.slice(), size: file.size, doubts: file.doubts, sizes: file.sizes });
      const kept = [...file.doubts].filter(([sector]) => sector * SECTOR_BYTES < size);
      file.doubts = new Map(kept.map(([sector, versions]) => [sector, [...versions]]));
      file.bytes.fill(0, size);
      file.size = size;
      file.sizes = [size];
    } else if (size > file.size) {
      grow(file, size);
      file.size = size;
      file.sizes.push(size);
    }
    if (last) throw new DiskError("EIO");
  }

  sync(file: SimFile): void {
    if (this.#change("sync", file.path)) throw new DiskError("EIO");
    if (this.#lies.has("all") || this.#lies.has(file.path.endsWith("-wal") ? "log" : "database")) return;
    file.doubts.clear();
    file.sizes = [file.size];
    file.pasts = [];
  }

  syncDirectory(): void {
    if (this.#change("sync-directory", "")) throw new DiskError("EIO");
    if (this.#lies.has("all") || this.#lies.has("directory")) return;
    this.#nameDoubts.clear();
  }

  get used(): number {
    let used = 0;
    for (const file of this.#names.values()) used += file.size;
    return used;
  }

  /** Nothing is changed meanwhile, whatever is tried: so ends a program that was killed. */
  suspend(act: () => void): void {
    this.#dead = true;
    try {
      act();
    } finally {
      this.#dead = false;
    }
  }

  /** The program dies, and the machine goes on: nothing is lost that was written. */
  kill(): void {
    this.generation += 1;
    this.#dead = false;
    this.#left = Number.POSITIVE_INFINITY;
  }

  /** The power comes back. Answers when it had gone, and a digest of what is left. */
  restore(chooser: Chooser): { readonly moment: Moment; readonly digest: string } {
    const moment = this.#moment;
    for (const [path, choices] of this.#nameDoubts) {
      const file = choices[chooser.below(choices.length)];
      if (file === undefined) this.#names.delete(path);
      else this.#names.set(path, file);
    }
    this.#nameDoubts.clear();
    const digest = createHash("sha1");
    for (const path of [...this.#names.keys()].sort()) {
      const file = this.#names.get(path);
      if (file === undefined) continue;
      settle(file, chooser);
      digest.update(`${path} ${file.size}\n`).update(file.bytes.subarray(0, file.size));
    }
    this.#moment = { doing: "nothing", path: "" };
    this.kill();
    return { moment, digest: digest.digest("base64") };
  }

  /** Answers whether this change is the last: it is begun, and the power goes. */
  #change(doing: Moment["doing"], path: string): boolean {
    if (this.#dead) throw new DiskError("EIO");
    this.#left -= 1;
    if (this.#left > 0) return false;
    this.#dead = true;
    this.#moment = { doing, path };
    return true;
  }

  #rename(path: string, file: SimFile | undefined): void {
    const choices = this.#nameDoubts.get(path) ?? [this.#names.get(path)];
    choices.push(file);
    this.#nameDoubts.set(path, choices);
    if (file === undefined) this.#names.delete(path);
    else this.#names.set(path, file);
  }

  /** Puts aside what the sectors were at the last sync. */
  #doubt(file: SimFile, from: number, to: number): void {
    for (let sector = Math.floor(from / SECTOR_BYTES); sector * SECTOR_BYTES < to; sector += 1) {
      if (file.doubts.has(sector)) continue;
      const start = sector * SECTOR_BYTES;
      const known = start < (file.sizes[0] ?? 0) && start < file.size;
      file.doubts.set(sector, [{ order: 0, bytes: known ? sectorOf(file, start) : undefined }]);
    }
  }

  #note(file: SimFile, from: number, to: number): void {
    this.#order += 1;
    for (let sector = Math.floor(from / SECTOR_BYTES); sector * SECTOR_BYTES < to; sector += 1) {
      file.doubts.get(sector)?.push({ order: this.#order, bytes: sectorOf(file, sector * SECTOR_BYTES) });
    }
    if (file.sizes.at(-1) !== file.size) file.sizes.push(file.size);
  }
}

/** Decides what is left of a file. From then on all of it is durable. */
function settle(file: SimFile, chooser: Chooser): void {
  const past = file.pasts[chooser.below(file.pasts.length + 1)];
  if (past !== undefined) Object.assign(file, past);
  file.pasts = [];
  const size = chosenSize(file, chooser);
  if (file.doubts.size > 0) {
    const fate = chosenFate(file, chooser);
    for (const [sector, versions] of file.doubts) {
      const start = sector * SECTOR_BYTES;
      grow(file, start + SECTOR_BYTES);
      file.bytes.set(chosenBytes(versions, fate(versions), chooser), start);
    }
  }
  grow(file, size);
  file.bytes.fill(0, size);
  file.size = size;
  file.sizes = [size];
  file.doubts.clear();
}

function chosenSize(file: SimFile, chooser: Chooser): number {
  const { sizes } = file;
  if (sizes.length === 1) return sizes[0] ?? 0;
  const kind = chooser.below(4);
  if (kind === 0) return sizes[0] ?? 0;
  if (kind === 1) return sizes.at(-1) ?? 0;
  if (kind === 2) return pick(chooser, sizes);
  const least = Math.min(...sizes);
  const sectors = Math.ceil((Math.max(...sizes) - least) / SECTOR_BYTES);
  return Math.min(least + chooser.below(sectors + 1) * SECTOR_BYTES, Math.max(...sizes));
}

function chosenFate(file: SimFile, chooser: Chooser): Fate {
  const last = (versions: readonly Version[]): number => versions.length - 1;
  const orders = [...file.doubts.values()].flatMap((versions) => versions.map(({ order }) => order));
  const when = pick(chooser, orders);
  const lucky = chooser.below(file.doubts.size);
  let index = -1;
  switch (chooser.below(8)) {
    case 0: // All of it was written.
      return last;
    case 1: // None of it was.
      return () => 0;
    case 2: // In order, up to a moment.
      return (versions) => versions.findLastIndex(({ order }) => order <= when || order === 0);
    case 3: // Only what came after it.
      return (versions) => ((versions.at(-1)?.order ?? 0) >= when ? last(versions) : 0);
    case 4: // All but one sector.
      return (versions) => {
        index += 1;
        return index === lucky ? 0 : last(versions);
      };
    case 5: // One sector and no other.
      return (versions) => {
        index += 1;
        return index === lucky ? last(versions) : 0;
      };
    default:
      return (versions) => chooser.below(versions.length);
  }
}

const TORN_PERCENT = 6;

function chosenBytes(versions: readonly Version[], index: number, chooser: Chooser): Uint8Array {
  const chosen = versions[index]?.bytes ?? unknownBytes(chooser);
  if (index === 0 || !chance(chooser, TORN_PERCENT)) return chosen;
  const before = versions[index - 1]?.bytes ?? unknownBytes(chooser);
  const at = chooser.below(SECTOR_BYTES);
  const torn = before.slice();
  torn.set(chosen.subarray(0, at));
  return torn;
}

function unknownBytes(chooser: Chooser): Uint8Array {
  const bytes = new Uint8Array(SECTOR_BYTES);
  if (chance(chooser, 50)) return bytes;
  for (let at = 0; at < SECTOR_BYTES; at += 1) bytes[at] = chooser.below(256);
  return bytes;
}

function sectorOf(file: SimFile, start: number): Uint8Array {
  const bytes = new Uint8Array(SECTOR_BYTES);
  bytes.set(file.bytes.subarray(start, Math.min(start + SECTOR_BYTES, file.bytes.length)));
  return bytes;
}

function grow(file: SimFile, size: number): void {
  if (size <= file.bytes.length) return;
  const bytes = new Uint8Array(Math.max(size, file.bytes.length * 2));
  bytes.set(file.bytes.subarray(0, file.size));
  file.bytes = bytes;
}
