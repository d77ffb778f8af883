// SQLite itself, on the simulated disk: what it asks of an operating system is answered here, as its own layer for Unix
// answers it. The directory is synced after the first sync of a journal or a log, and after a removal that asks for it;
// the main file's name never by itself. Shared memory is memory of the engine, so the write-ahead log works as it does
// natively, with several connections.
//
// Invariants
// 1. A file that was opened before the power went fails at everything but being closed.
import init from "@sqlite.org/sqlite-wasm";
import { FileLocks, LogLocks } from "./disk-locks.ts";
import { DiskError, SimDisk, SimFile } from "./sim-disk.ts";

/** As much of the engine as we use. Its own declarations know neither 64-bit numbers nor what its methods answer. */
interface Engine {
  readonly capi: {
    readonly sqlite3_vfs: new () => Struct;
    readonly sqlite3_io_methods: new () => Struct;
    sqlite3_errmsg(database: number): string;
  };
  readonly wasm: {
    /** The functions of SQLite as they are: numbers in, numbers out. */
    readonly exports: Readonly<Record<string, (...values: readonly (number | bigint)[]) => number>>;
    alloc(bytes: number): number;
    dealloc(pointer: number): void;
    heap8u(): Uint8Array<ArrayBuffer>;
    peek(pointer: number, type: "i32"): number;
    poke(pointer: number, value: number | bigint, type: "i32" | "i64" | "f64"): void;
    cstrToJs(pointer: number): string | null;
    cstrncpy(to: number, from: number, bytes: number): number;
  };
  readonly vfs: {
    installVfs(parts: {
      readonly io: { readonly struct: Struct; readonly methods: object };
      readonly vfs: {
        readonly struct: Struct;
        readonly methods: object;
        readonly name: string;
        readonly asDefault: boolean;
      };
    }): void;
  };
}

interface Struct {
  readonly pointer: number;
  $iVersion: number;
  $szOsFile: number;
  $mxPathname: number;
}

const engine = (await init()) as unknown as Engine;
const { capi, wasm } = engine;
const raw = wasm.exports;
export const { sqlite3_errmsg: lastError } = capi;

/** A function of SQLite by its name. */
export function sqlite(name: string): (...values: readonly (number | bigint)[]) => number {
  const found = raw[`sqlite3_${name}`];
  if (found === undefined) throw new Error(`the engine has no ${name}`);
  return found;
}

export const memory = wasm;

const OK = 0;
const BUSY = 5;
const NOT_FOUND = 12;
const CANNOT_OPEN = 14;
const FULL = 13;
const IO_ERROR = 10;
const IO_SHORT_READ = IO_ERROR | (2 << 8);
const IO_LOCK = IO_ERROR | (15 << 8);
const POWERSAFE_OVERWRITE = 0x1000;
const OPEN_READ_ONLY = 0x1;
const OPEN_CREATE = 0x4;
const OPEN_JOURNAL_OR_LOG = 0x800 | 0x80000;
const SHARED_LEVEL = 1;
/** As SQLite takes it to be where nobody says more. */
const SECTOR_SAID_BYTES = 4_096;

/** What all connections to one file have in common. */
interface Together {
  readonly generation: number;
  readonly locks: FileLocks;
  readonly logLocks: LogLocks;
  readonly regions: number[];
  users: number;
}

interface Handle {
  readonly disk: SimDisk;
  readonly generation: number;
  readonly file: SimFile;
  readonly readOnly: boolean;
  readonly together: Together;
  /** The name of what is opened must be made durable with its first sync. */
  nameInDoubt: boolean;
  mapped: boolean;
}

const handles = new Map<number, Handle>();
const togethers = new WeakMap<SimFile, Together>();
let mounted = new SimDisk();
let randomness = (): number => 0;

/** From now on this is the disk. `random` is all the chance SQLite has: the same numbers make the same bytes. */
export function mount(disk: SimDisk, random: () => number): void {
  mounted = disk;
  randomness = random;
  sqlite("randomness")(0, 0);
}

export const disk = (): SimDisk => mounted;

/** The files that are open. None may be left when nobody uses the disk. */
export const openHandles = (): number => handles.size;

/** What the disk says, as a code of SQLite. */
function attempt(act: () => void): number {
  try {
    act();
    return OK;
  } catch (error) {
    if (error instanceof DiskError) return error.code === "ENOSPC" ? FULL : IO_ERROR;
    throw error;
  }
}

function live(pointer: number): Handle {
  const handle = handles.get(pointer);
  if (handle === undefined || handle.disk.dead || handle.generation !== handle.disk.generation) {
    throw new DiskError("EIO");
  }
  return handle;
}

const text = (pointer: number): string => wasm.cstrToJs(pointer) ?? "";

function together(file: SimFile, generation: number): Together {
  const known = togethers.get(file);
  if (known?.generation === generation) return known;
  const fresh = { generation, locks: new FileLocks(), logLocks: new LogLocks(), regions: [], users: 0 };
  togethers.set(file, fresh);
  return fresh;
}

const io = {
  xClose: (pointer: number): number => {
    handles.get(pointer)?.together.locks.drop(pointer, 0);
    handles.delete(pointer);
    return OK;
  },
  xRead: (pointer: number, into: number, length: number, offset: bigint): number => {
    const at = Number(offset);
    let short = false;
    const answer = attempt(() => {
      const { file } = live(pointer);
      const heap = wasm.heap8u();
      const end = Math.min(at + length, file.size);
      if (end > at) heap.set(file.bytes.subarray(at, end), into);
      short = end < at + length;
      if (short) heap.fill(0, into + Math.max(0, end - at), into + length);
    });
    return answer === OK && short ? IO_SHORT_READ : answer;
  },
  xWrite: (pointer: number, from: number, length: number, offset: bigint): number =>
    attempt(() => {
      const { disk: on, file } = live(pointer);
      on.write(file, wasm.heap8u().slice(from, from + length), Number(offset));
    }),
  xTruncate: (pointer: number, size: bigint): number =>
    attempt(() => {
      const { disk: on, file } = live(pointer);
      on.truncate(file, Number(size));
    }),
  xSync: (pointer: number): number =>
    attempt(() => {
      const handle = live(pointer);
      handle.disk.sync(handle.file);
      if (!handle.nameInDoubt) return;
      handle.disk.syncDirectory();
      handle.nameInDoubt = false;
    }),
  xFileSize: (pointer: number, into: number): number =>
    attempt(() => {
      wasm.poke(into, BigInt(live(pointer).file.size), "i64");
    }),
  xLock: (pointer: number, level: number): number => {
    let answer = OK;
    const said = attempt(() => {
      const { together: all, readOnly } = live(pointer);
      if (readOnly && level > SHARED_LEVEL) answer = IO_LOCK;
      else if (!all.locks.take(pointer, level)) answer = BUSY;
    });
    return said === OK ? answer : said;
  },
  xUnlock: (pointer: number, level: number): number => {
    handles.get(pointer)?.together.locks.drop(pointer, level);
    return OK;
  },
  xCheckReservedLock: (pointer: number, into: number): number =>
    attempt(() => {
      wasm.poke(into, live(pointer).together.locks.reserved ? 1 : 0, "i32");
    }),
  xFileControl: (): number => NOT_FOUND,
  xSectorSize: (): number => SECTOR_SAID_BYTES,
  xDeviceCharacteristics: (): number => POWERSAFE_OVERWRITE,
};

const sharedMemory = {
  xShmMap: (pointer: number, ...[region, length, extend, into]: [number, number, number, number]): number =>
    attempt(() => {
      const handle = live(pointer);
      const { together: all } = handle;
      if (!handle.mapped) {
        handle.mapped = true;
        all.users += 1;
      }
      while (extend !== 0 && all.regions.length <= region) {
        const fresh = wasm.alloc(length);
        wasm.heap8u().fill(0, fresh, fresh + length);
        all.regions.push(fresh);
      }
      wasm.poke(into, all.regions[region] ?? 0, "i32");
    }),
  xShmLock: (pointer: number, ...[first, count, flags]: [number, number, number]): number => {
    const handle = handles.get(pointer);
    if (handle === undefined) return IO_ERROR;
    const slots = Array.from({ length: count }, (_, index) => first + index);
    if ((flags & 1) !== 0) {
      handle.together.logLocks.drop(pointer, slots);
      return OK;
    }
    return handle.together.logLocks.take(pointer, slots, (flags & 8) !== 0 ? "exclusive" : "shared") ? OK : BUSY;
  },
  xShmBarrier: (): void => {},
  xShmUnmap: (pointer: number): number => {
    const handle = handles.get(pointer);
    if (handle === undefined || !handle.mapped) return OK;
    handle.mapped = false;
    const { together: all } = handle;
    all.users -= 1;
    if (all.users > 0) return OK;
    for (const region of all.regions.splice(0)) wasm.dealloc(region);
    togethers.delete(handle.file);
    return OK;
  },
};

function open(name: number, pointer: number, flags: number): void {
  const on = mounted;
  const nameless = name === 0;
  const path = nameless ? "" : text(name);
  let file = nameless ? new SimFile("") : on.file(path);
  if (file === undefined && (flags & OPEN_CREATE) === 0) throw new DiskError("ENOENT");
  file ??= on.create(path);
  const { generation } = on;
  const readOnly = (flags & OPEN_READ_ONLY) !== 0;
  const nameInDoubt = (flags & OPEN_CREATE) !== 0 && (flags & OPEN_JOURNAL_OR_LOG) !== 0;
  const all = together(file, generation);
  handles.set(pointer, { disk: on, generation, file, readOnly, together: all, nameInDoubt, mapped: false });
}

const ioMethods = new capi.sqlite3_io_methods();
ioMethods.$iVersion = 2;
const vfs = new capi.sqlite3_vfs();
vfs.$iVersion = 2;
vfs.$szOsFile = 8;
vfs.$mxPathname = 512;

const system = {
  xOpen: (_: number, ...[name, pointer, flags, said]: [number, number, number, number]): number => {
    wasm.poke(pointer, 0, "i32");
    if (attempt(() => open(name, pointer, flags)) !== OK) return CANNOT_OPEN;
    wasm.poke(pointer, Number(ioMethods.pointer), "i32");
    if (said !== 0) wasm.poke(said, flags, "i32");
    return OK;
  },
  xDelete: (_: number, name: number, syncDirectory: number): number => {
    try {
      mounted.remove(text(name));
      if (syncDirectory !== 0) mounted.syncDirectory();
      return OK;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      return error.code === "ENOENT" ? IO_ERROR | (23 << 8) : IO_ERROR | (10 << 8);
    }
  },
  xAccess: (_: number, ...[name, __, into]: [number, number, number]): number =>
    attempt(() => {
      wasm.poke(into, mounted.file(text(name)) === undefined ? 0 : 1, "i32");
    }),
  xFullPathname: (_: number, ...[name, length, into]: [number, number, number]): number => {
    wasm.cstrncpy(into, name, length);
    return OK;
  },
  xRandomness: (_: number, length: number, into: number): number => {
    const heap = wasm.heap8u();
    for (let at = 0; at < length; at += 1) heap[into + at] = randomness();
    return length;
  },
  // Nobody else can do anything meanwhile, so waiting is of no use.
  xSleep: (_: number, microseconds: number): number => microseconds,
  xCurrentTimeInt64: (_: number, into: number): number => {
    wasm.poke(into, 212_000_000_000_000n, "i64");
    return OK;
  },
  xCurrentTime: (_: number, into: number): number => {
    wasm.poke(into, 2_453_703.7, "f64");
    return OK;
  },
  xGetLastError: (): number => OK,
};

engine.vfs.installVfs({
  io: { struct: ioMethods, methods: { ...io, ...sharedMemory } },
  vfs: { struct: vfs, methods: system, name: "simulated", asDefault: true },
});
