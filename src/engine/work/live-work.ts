// A turn or call that is live: the means to stop it, and how far it is.

import type { CancelReason } from "../../core/model/cancel.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Work } from "../../core/model/ids.ts";
import type { CallWaitsFor } from "../../core/read/explained.ts";
import type { HookedCall } from "../../ports/hooks.ts";
import type { Deadline } from "./deadline.ts";
import { Scope } from "./scope.ts";

/** A stop that has reached a turn or call. */
export interface StoppingWork {
  readonly reason: CancelReason;
  deadline: Deadline;
  /** When the last call or process that it waited for was over. */
  waitedUntil: number;
  cancelTimer: () => void;
}

/** Methods, not closures: there may be a hundred thousand of them. */
export abstract class LiveWork {
  readonly id: Work;
  /** What it is called in an outcome that has to name it. */
  readonly name: string;
  readonly scope = new Scope();
  /** `waiting`: asked for, but its request is not durable yet, so nothing has begun. */
  phase: "waiting" | "live" | "stopping" | "abandoned" | "ended" = "waiting";
  /** It has ended and nothing is recorded of it: the next worker takes it up. */
  isParked = false;
  /** Set while it is being stopped. */
  stopping: StoppingWork | undefined = undefined;
  /** What it waits for, if it is live and has done nothing yet. */
  waits: CallWaitsFor | undefined = undefined;
  /** When a call was requested, by the wall clock; undefined if that was before this worker took its session over. */
  since: number | undefined = undefined;
  /** False: nothing of it has been done, in this life or an earlier one. */
  begun: boolean | undefined = undefined;

  constructor(id: Work, name: string) {
    this.id = id;
    this.name = name;
  }

  /** Begins it. Called once, when its request is durable. */
  abstract begin(): void;

  /** Settles it without its cooperation: it never began, or it did not stop in time. */
  abstract abandon(reason: CancelReason, how: "unbegun" | "abandoned"): void;

  /** What a turn has said so far, for a follower that joins in the middle of it. */
  said(): Delta | undefined {
    return undefined;
  }

  /** What hooks are given of a call. */
  hooked(): HookedCall | undefined {
    return undefined;
  }
}
