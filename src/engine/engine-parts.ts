// The dependencies and options of an engine.

import type { Recorded } from "../core/model/event.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Retention } from "../core/model/retention.ts";
import type { Resume } from "../core/policy/decide-run.ts";
import type { Agent } from "../ports/agent.ts";
import type { Clock, Ids } from "../ports/clock.ts";
import type { Hooks, Notify } from "../ports/hooks.ts";
import type { Spawner } from "../ports/spawner.ts";
import type { Store } from "../ports/store.ts";
import type { StartWatch } from "./loop-watch.ts";

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
  /** Receives everything that is recorded. Must not throw. */
  readonly tap: Tap | undefined;
  /** Starts the thread that watches the event loop. Undefined: it is not watched. */
  readonly watch?: StartWatch;
  /** Limits of what the store keeps. Undefined: everything is kept. */
  readonly retention?: Retention | undefined;
  /** The time limit of a run in this worker. */
  readonly runLimitMs: number | undefined;
  /** Error texts pass through it before they are recorded. Default: removes what looks like a token or a key. */
  readonly redact?: ((text: string) => string) | undefined;
}

export type Tap = (session: SessionId, events: readonly Recorded[]) => void;
