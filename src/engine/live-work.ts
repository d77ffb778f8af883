// The handle of a turn or call that is going on: the means to stop it, and what to do when it does not.
import type { CancelReason } from "../core/cancel.ts";
import type { Work } from "../core/ids.ts";
import { Scope } from "./scope.ts";

/** Whoever carries a piece of work out. Objects with methods, not closures: there may be a hundred thousand of them. */
export interface WorkOwner {
  /** What it waits for, if it goes on and has done nothing yet. */
  readonly waits?: "hook" | "approval" | "slot" | undefined;
  /** Begins it. Called once, when its request is durable. */
  begin(): void;
  /** Settles it without its cooperation: it never began, or it did not stop in time. */
  giveUp(reason: CancelReason, how: "unbegun" | "abandoned"): void;
}

export class LiveWork {
  readonly id: Work;
  /** What it is called in an outcome that has to name it. */
  readonly name: string;
  readonly owner: WorkOwner;
  readonly scope = new Scope();
  /** `waiting`: asked for, but its request is not durable yet, so nothing has begun. */
  phase: "waiting" | "live" | "stopping" | "abandoned" | "ended" = "waiting";
  takeBackGrace: (() => void) | undefined = undefined;

  constructor(id: Work, name: string, owner: WorkOwner) {
    this.id = id;
    this.name = name;
    this.owner = owner;
  }
}
