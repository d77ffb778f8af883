// Real pipes for children.
//
// What Node calls a pipe is a pair of sockets, and a socket cannot be opened by name: in such a child everything that
// says `> /dev/stderr` fails. Node cannot make a pipe, but it can open one that has a name. So names are made ahead of
// time, several by one call of `mkfifo`, and each is used once and removed.
//
// Invariants
// 1. Both ends of a pipe are open, and its name is gone, before anybody else can see it.
// 2. Nobody waits for a name: if there is none, the child gets what Node has.
import { execFile } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

/** Made by one call. A child needs two or three. */
const NAMES_AT_ONCE = 30;

/** Below this, more are made. */
const NAMES_MIN = 12;

/** How long `mkfifo` may take. It takes a millisecond. */
const MAKE_MS_MAX = 5_000;

export interface Pipe {
  /** The end of the child. Closed by us once the child has it. */
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
   * `dir` is made, and used for nothing else; what is left in it of an earlier life is removed. `bare`: it stays
   * empty, where a socket can be opened by name and named pipes are not known to work, and in Bun, which does not read
   * them.
   */
  constructor(dir: string, bare = false) {
    this.#dir = dir;
    this.#bare = bare;
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** Resolves when there are names, or there will be none. Never rejects. */
  fill(): Promise<void> {
    if (this.#bare) return Promise.resolve();
    this.#making ??= this.#make();
    return this.#making;
  }

  /** One that the child writes to. Undefined: there is none now. */
  fromChild(): Pipe | undefined {
    return this.#take((path) => {
      const ours = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      return { ours, fd: orClose([ours], () => openSync(path, constants.O_WRONLY)), readable: true };
    });
  }

  /** One that the child reads from. */
  toChild(): Pipe | undefined {
    return this.#take((path) => {
      // A writer can be opened only while there is a reader, and a reader that waits for data only while there is a
      // writer: so the first reader is one for the moment.
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
    // While names are being made, whoever removes the others meets new ones: then it is done when they are there.
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
      // Out of file descriptors, or somebody has removed the name. What follows will tell.
      return undefined;
    } finally {
      rmSync(path, { force: true });
    }
  }

  /** Again, if it was removed meanwhile. If it cannot be made, there are no names. */
  #makeDirectory(): void {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    } catch {
      // mkfifo fails then, and says nothing else.
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
    // In the same tick: whoever closes after it removes the directory, and before it leaves that to us.
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
