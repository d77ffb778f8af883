// Real pipes for children.
//
// Node's pipes are pairs of sockets, and a socket cannot be opened by name: in such a child every `> /dev/stderr`
// fails. Node cannot make a pipe, but it can open a named one. So named pipes are made in advance, several by one call
// of `mkfifo`, and each is used once and removed.
//
// Invariants
// 1. Both ends of a pipe are open, and its name is removed, before another program can see it.
// 2. A start never waits for a pipe: if the pool is empty, the child gets Node's own.
import { execFile } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

/** Made by one call. A child needs two or three. */
const NAMES_AT_ONCE = 30;

/** Below this, more are made. */
const NAMES_MIN = 12;

/** The timeout of `mkfifo`. It takes a millisecond. */
const MAKE_MS_MAX = 5_000;

export interface Pipe {
  /** The child's end. We close it once the child has it. */
  readonly fd: number;
  /** Our end. */
  readonly stream: Socket;
}

export class PipePool {
  readonly #dir: string;
  readonly #bare: boolean;
  readonly #names: string[] = [];
  #made = 0;
  #making: Promise<void> | undefined;
  #closed = false;

  /**
   * `dir` is created, and used for nothing else; files that an earlier server left in it are removed. `bare`: the pool
   * stays empty, where a socket can be opened by name and named pipes are not known to work, and in Bun, which does not
   * read them.
   */
  constructor(dir: string, bare = false) {
    this.#dir = dir;
    this.#bare = bare;
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** Resolves when the pool is filled, or cannot be. Never rejects. */
  fill(): Promise<void> {
    if (this.#bare) return Promise.resolve();
    this.#making ??= this.#make();
    return this.#making;
  }

  /** A pipe that the child writes to. Undefined: none is available now. */
  fromChild(): Pipe | undefined {
    return this.#take((path) => {
      const ours = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      return { ours, fd: orClose([ours], () => openSync(path, constants.O_WRONLY)), readable: true };
    });
  }

  /** A pipe that the child reads from. */
  toChild(): Pipe | undefined {
    return this.#take((path) => {
      // A writer can be opened only while there is a reader, and a blocking reader only while there is a writer: so the
      // first reader is temporary.
      const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      const ours = orClose([first], () => openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
      const fd = orClose([first, ours], () => openSync(path, constants.O_RDONLY));
      closeSync(first);
      return { ours, fd, readable: false };
    });
  }

  close(): void {
    this.#closed = true;
    this.#names.length = 0;
    // While pipes are being made, `#make` removes the directory once they are there.
    if (this.#making === undefined) rmSync(this.#dir, { recursive: true, force: true });
  }

  #take(open: (path: string) => { ours: number; fd: number; readable: boolean }): Pipe | undefined {
    const path = this.#names.pop();
    if (this.#names.length < NAMES_MIN && !this.#closed) void this.fill();
    if (path === undefined) return undefined;
    try {
      const { ours, fd, readable } = open(path);
      return { fd, stream: orClose([fd], () => new Socket({ fd: ours, readable, writable: !readable })) };
    } catch {
      // Out of file descriptors, or the file was removed. The fallback will show.
      return undefined;
    } finally {
      rmSync(path, { force: true });
    }
  }

  /** Creates the directory again if it was removed meanwhile. Without it the pool stays empty. */
  #makeDirectory(): void {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    } catch {
      // Then mkfifo fails too.
    }
  }

  async #make(): Promise<void> {
    const paths = Array.from({ length: NAMES_AT_ONCE }, () => {
      this.#made += 1;
      return join(this.#dir, String(this.#made));
    });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#makeDirectory();
    execFile("mkfifo", ["-m", "600", ...paths], { timeout: MAKE_MS_MAX }, (error) => resolve(error === null));
    const made = await promise;
    // In the same tick: a later `close` removes the directory itself, an earlier one has left that to us.
    this.#making = undefined;
    if (this.#closed) rmSync(this.#dir, { recursive: true, force: true });
    else if (made) this.#names.push(...paths);
  }
}

function orClose<T>(open: readonly number[], make: () => T): T {
  try {
    return make();
  } catch (error) {
    for (const fd of open) closeSync(fd);
    throw error;
  }
}
