// A live turn or call: its state, and how it is stopped.

import type { CancelReason } from "../../core/model/cancel.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Work } from "../../core/model/ids.ts";
import type { CallWaitsFor } from "../../core/read/explained.ts";
import type { HookedCall } from "../../ports/hooks.ts";
import type { Deadline } from "./deadline.ts";
import { Scope } from "./scope.ts";

/** The stop of a turn or call that is being stopped. */
export interface StoppingWork {
  readonly reason: CancelReason;
  deadline: Deadline;
  /** When the last call or process that it waited for had ended. */
  waitedUntil: number;
  cancelTimer: () => void;
}

/** Methods rather than closures: there may be a hundred thousand of them. */
export abstract class LiveWork {
  readonly id: Work;
  /** Its name in an outcome. */
  readonly name: string;
  readonly scope = new Scope();
  /**
   * - `waiting`: its request is not durable yet, so nothing has begun.
   * - `live`: begun.
   * - `stopping`: its scope is cancelled, and it has until its deadline.
   * - `abandoned`: it missed its deadline, or was stopped while waiting; a late result is dropped.
   * - `ended`: its code has returned, and its end is being recorded.
   */
  phase: "waiting" | "live" | "stopping" | "abandoned" | "ended" = "waiting";
  /** It has ended and nothing is recorded: the next worker continues it. */
  isParked = false;
  /** Set while it is being stopped. */
  stopping: StoppingWork | undefined = undefined;
  /** What it waits for, if it is live and has not begun its own work. */
  waits: CallWaitsFor | undefined = undefined;
  /** When a call was requested, by the wall clock; undefined if that was before this worker took its session over. */
  since: number | undefined = undefined;
  /** False: none of its work has begun, here or under an earlier worker. */
  begun: boolean | undefined = undefined;

  constructor(id: Work, name: string) {
    this.id = id;
    this.name = name;
  }

  /** Begins it. Called once, when its request is durable. */
  abstract begin(): void;

  /** Settles it without its cooperation: it never began, or it did not stop in time. */
  abstract abandon(reason: CancelReason, how: "unbegun" | "abandoned"): void;

  /** The output of a turn so far, for a follower that joins during the turn. */
  outputSoFar(): Delta | undefined {
    return undefined;
  }

  /** The call as hooks receive it. */
  hooked(): HookedCall | undefined {
    return undefined;
  }
}
