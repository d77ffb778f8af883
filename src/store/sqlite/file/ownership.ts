// Whether an open file is still the one its name leads to, and still this program's.
//
// Invariants
// 1. It compares device, inode and link count by name, which costs microseconds: an open connection to a file that was
//    removed goes on working, and everything written to it is lost at its end.
// 2. The owner's number in the file rises with every opening, so two openings never have the same. It is compared in
//    every transaction: without the lock's file, or under a second name, a second writer is still kept out.
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

  /** Throws unless the name leads to the file that is open and the lock is held. `new`: something is to begin. */
  require(work: "new" | "any"): void {
    if (this.#isTakenOver) throw new TakenOver(this.#file);
    const found = this.#identity.look();
    if (typeof found === "string") {
      // Held as long as this program lives: another one that begins anew in this place would hide what runs here.
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

  /** Throws if another program has opened the file since. `since`: the number that the file has. */
  requireOwner(since: unknown): void {
    if (since === this.owner.since) return;
    this.#isTakenOver = true;
    throw new TakenOver(this.#file);
  }
}

/** Another program has opened the file since: this one drives nothing any more. */
export class TakenOver extends ControlError {
  constructor(file: string) {
    super("store_locked", takenOver(file), {
      hint: "Its lock file was removed while it was in use. End this program: the other one has the file.",
    });
  }
}

const takenOver = (file: string): string => `Another program has taken over ${file}. Nothing was recorded.`;

/** Whether an error of the store, also of its thread, says that another program has the file from now on. */
export const isTakenOver = (error: ControlError, file: string): boolean =>
  error.code === "store_locked" && error.message === takenOver(file);

/** Refuses a file with a second name: under that name it would have a lock and a write-ahead log of its own. */
export function requireOneName(file: string, found = statSync(file, { bigint: true, throwIfNoEntry: false })): void {
  if (found === undefined || found.nlink <= 1n) return;
  const message = `${file} has ${found.nlink} names (hard links): two programs could write to it at once.`;
  throw new ControlError("store_locked", message, {
    hint: "Remove the other names. To make a copy of it, copy the file: a hard link is not a copy.",
  });
}

/** Another file, or none, is where the open file was. */
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
