// Detects whether a path still refers to the same file or directory, and names the program that owns a store.
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

  /** The file's current state, if its path still refers to it. */
  look(): BigIntStats | "removed" | "replaced" {
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return "removed";
    return found.dev === this.#dev && found.ino === this.#ino ? found : "replaced";
  }
}

/** A directory that is kept open, to distinguish a rename from a removal. */
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
  /** The owner's number: when it opened the file, in ms, and always greater than the previous owner's. */
  readonly since: number;
}
