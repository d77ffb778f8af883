// What an engine is made of.
import type { Resume } from "../core/decide-run.ts";
import type { Recorded } from "../core/event.ts";
import type { SessionId } from "../core/ids.ts";
import type { Agent, Clock, Hooks, Ids, Notify, Store } from "../ports.ts";
import type { Spawner } from "../spawner.ts";

export interface EngineParts {
  readonly store: Store;
  readonly agent: Agent;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly notify: Notify;
  readonly graceMs: number;
  readonly liveRunsMax: number;
  readonly resume: Resume;
  readonly hooks: Hooks;
  /** Undefined: no processes can be started. */
  readonly spawner: (() => Promise<Spawner>) | undefined;
  /** Hears of everything that is recorded. Does not throw. */
  readonly tap: Tap | undefined;
  /** How long a run may take altogether, in this worker. */
  readonly runLimitMs: number | undefined;
}

export type Tap = (session: SessionId, events: readonly Recorded[]) => void;
