// Which file a name leads to, and which program has it.
import { type BigIntStats, statSync } from "node:fs";

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

export interface Owner {
  readonly pid: number;
  /** The owner's number: when it opened the file, in ms, and always more than that of the one before. */
  readonly since: number;
}
