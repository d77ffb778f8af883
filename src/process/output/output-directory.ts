// Keeps the output of ended processes: one directory for each, with the oldest removed beyond a limit.
//
// Invariants
// 1. The output of a running process is never removed.
// 2. A failed removal affects nothing else: it is retried when the next process ends.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import { isProcessId, type ProcessId } from "../../core/model/ids.ts";

/** Ended processes whose output is kept: a few days of busy work. */
export const OUTPUTS_MAX = 1_000; // @fault small-shelf

/** The limit for all of them together. */
export const OUTPUTS_BYTES_MAX = 2 * 1024 * 1024 * 1024;

export interface OutputDirectoryOptions {
  readonly countMax?: number;
  readonly bytesMax?: number;
  /** Whether the process runs in another server: several may share a directory. */
  readonly isLive?: (id: ProcessId) => boolean;
}

interface Kept {
  readonly id: ProcessId;
  readonly bytes: number;
}

export class OutputDirectory {
  readonly #dir: string;
  readonly #countMax: number;
  readonly #bytesMax: number;
  readonly #isLive: (id: ProcessId) => boolean;
  readonly #live = new Set<ProcessId>();
  /** Ended processes, oldest first. */
  #kept: Kept[] = [];
  #tidying: Promise<void> = Promise.resolve();

  constructor(dir: string, options: OutputDirectoryOptions = {}) {
    this.#dir = dir;
    this.#countMax = options.countMax ?? OUTPUTS_MAX;
    this.#bytesMax = options.bytesMax ?? OUTPUTS_BYTES_MAX;
    this.#isLive = (id) => this.#live.has(id) || (options.isLive?.(id) ?? false);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const found = readdirSync(dir).filter(isProcessId);
    const aged = found.map((id) => ({ id, at: statSync(join(dir, id), { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
    aged.sort((a, b) => a.at - b.at);
    this.#tidying = this.#count(aged.map(({ id }) => id));
  }

  pathOf(id: ProcessId): string {
    return join(this.#dir, id);
  }

  /** Creates an empty directory for a process that is about to start. */
  make(id: ProcessId): string {
    const path = this.pathOf(id);
    try {
      // The directory may have been removed with all its contents. If it cannot be created again, this fails as well.
      if (!existsSync(this.#dir)) mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      const there = error instanceof Error && "code" in error && error.code === "EEXIST";
      throw there
        ? new ControlError("conflict", `The id ${id} was used before, and its output is still kept.`)
        : new ControlError("not_started", `${id} was not started: no directory for its output could be created.`, {
            hint: `Make room, or make ${this.#dir} writable.`,
            cause: error,
          });
    }
    this.#live.add(id);
    return path;
  }

  /** Call when the process did not start. */
  remove(id: ProcessId): void {
    this.#live.delete(id);
    rmSync(this.pathOf(id), { recursive: true, force: true });
  }

  /** Call when the process has ended: from here on its output may be removed. */
  ended(id: ProcessId): void {
    if (!this.#live.delete(id)) return;
    this.#tidying = this.#tidying.then(() => this.#count([id]));
  }

  /** Removes the output of these processes, except running ones. */
  async discard(ids: readonly ProcessId[]): Promise<void> {
    const gone = new Set<ProcessId>();
    for (const id of ids) if (!this.#isLive(id) && (await removed(this.pathOf(id)))) gone.add(id);
    this.#tidying = this.#tidying.then(() => {
      this.#kept = this.#kept.filter(({ id }) => !gone.has(id));
    });
  }

  /** Resolves when no removal is in progress. */
  async settled(): Promise<void> {
    await this.#tidying;
  }

  async #count(ids: readonly ProcessId[]): Promise<void> {
    for (const id of ids) this.#kept.push({ id, bytes: await bytesIn(this.pathOf(id)) });
    let bytes = this.#kept.reduce((sum, one) => sum + one.bytes, 0);
    let count = this.#kept.length;
    const kept: Kept[] = [];
    for (const one of this.#kept) {
      const tooMuch = count > this.#countMax || bytes > this.#bytesMax;
      if (!tooMuch || this.#isLive(one.id) || !(await removed(this.pathOf(one.id)))) {
        kept.push(one);
        continue;
      }
      bytes -= one.bytes;
      count -= 1;
    }
    this.#kept = kept;
  }
}

async function bytesIn(dir: string): Promise<number> {
  try {
    const sizes = (await readdir(dir)).map(async (name) => (await stat(join(dir, name))).size);
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  } catch {
    return 0;
  }
}

async function removed(dir: string): Promise<boolean> {
  try {
    await rm(dir, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}
