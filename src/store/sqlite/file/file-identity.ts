// Which file a name leads to, and which program has it.
import { type BigIntStats, closeSync, fstatSync, openSync, statSync } from "node:fs";

export class FileIdentity {
  readonly #path: string;
  readonly #dev: bigint;
  readonly #ino: bigint;

  constructor(path: string) {
    const { dev, ino } = statSync(path, { bigint: true });
    this.#path = path;
    this.#dev = dev;
    this.#ino = ino;
  }

  /** The file as it is now, if its name still leads to it. */
  look(): BigIntStats | "removed" | "replaced" {
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return "removed";
    return found.dev === this.#dev && found.ino === this.#ino ? found : "replaced";
  }
}

/** A directory that is kept open, so that one that was renamed can be told from one that was removed. */
export class HeldDirectory {
  readonly #path: string;
  readonly #descriptor: number;

  constructor(path: string) {
    this.#path = path;
    this.#descriptor = openSync(path, "r");
  }

  /** `moved`: it exists under another name. */
  look(): "there" | "removed" | "moved" {
    const { dev, ino, nlink } = fstatSync(this.#descriptor, { bigint: true });
    if (nlink === 0n) return "removed";
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    return found?.dev === dev && found.ino === ino ? "there" : "moved";
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

export interface Owner {
  readonly pid: number;
  /** The owner's number: when it opened the file, in ms, and always more than that of the one before. */
  readonly since: number;
}
