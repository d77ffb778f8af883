// Checks that an open file is still at its path, and still owned by this program.
//
// Invariants
// 1. It compares device, inode and link count of the path, which takes microseconds: an open connection to a removed
//    file still works, and everything written to it is lost when it closes.
// 2. The owner's number in the file increases with every opening, so no two are equal. It is compared in every
//    transaction: this excludes a second writer even without the lock file, or under a second name.
import { statSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import { FileIdentity, type Owner } from "./file-identity.ts";
import type { Lock } from "./owner.ts";

export class Ownership {
  readonly owner: Owner;
  readonly #file: string;
  readonly #lock: Lock;
  readonly #identity: FileIdentity;
  #isTakenOver = false;

  constructor(file: string, lock: Lock, owner: Owner) {
    this.owner = owner;
    this.#file = file;
    this.#lock = lock;
    this.#identity = new FileIdentity(file);
  }

  /** Throws unless the path refers to the open file and the lock is held. `new`: for a write that starts something. */
  require(work: "new" | "any"): void {
    if (this.#isTakenOver) throw new TakenOver(this.#file);
    const found = this.#identity.look();
    if (typeof found === "string") {
      // Keeps the lock while this program lives: another program that creates a new file here would hide its running
      // work.
      this.#keepLock("if it can be");
      throw new FileLost(this.#file, found);
    }
    this.#keepLock("surely");
    if (work === "new") requireOneName(this.#file, found);
  }

  #keepLock(how: "surely" | "if it can be"): void {
    try {
      this.#lock.keep();
    } catch (error) {
      this.#isTakenOver = error instanceof ControlError && error.code === "store_locked";
      if (this.#isTakenOver) throw new TakenOver(this.#file);
      if (how === "surely") throw error;
    }
  }

  /** Throws if another program has opened the file since. `since`: the owner's number in the file. */
  requireOwner(since: unknown): void {
    if (since === this.owner.since) return;
    this.#isTakenOver = true;
    throw new TakenOver(this.#file);
  }
}

/** Another program has opened the file: this one may not write any more. */
export class TakenOver extends ControlError {
  constructor(file: string) {
    super("store_locked", takenOver(file), {
      hint: "Its lock file was removed while it was in use. End this program: the other one has the file.",
    });
  }
}

const takenOver = (file: string): string => `Another program has taken over ${file}. Nothing was recorded.`;

/** Whether an error of the store, possibly from its thread, says that another program has taken over the file. */
export const isTakenOver = (error: ControlError, file: string): boolean =>
  error.code === "store_locked" && error.message === takenOver(file);

/** Refuses a file with a second name (hard link): under that name it would have another lock and write-ahead log. */
export function requireOneName(file: string, found = statSync(file, { bigint: true, throwIfNoEntry: false })): void {
  if (found === undefined || found.nlink <= 1n) return;
  const message = `${file} has ${found.nlink} names (hard links): two programs could write to it at once.`;
  throw new ControlError("store_locked", message, {
    hint: "Remove the other names. To make a copy of it, copy the file: a hard link is not a copy.",
  });
}

/** The open file was removed from its path, or replaced by another one. */
export class FileLost extends ControlError {
  readonly what: "removed" | "replaced";

  constructor(file: string, what: FileLost["what"]) {
    super("store_corrupt", `${file} was ${what} while it was open. Nothing more is recorded.`, {
      hint:
        `Put the file back where it was, with its ${file}-wal. If it is gone, end this program: what it had ` +
        "recorded is lost.",
    });
    this.what = what;
  }
}
