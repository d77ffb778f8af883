// The dependencies of the log's writer, and the fields of a command that is not decided yet.
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { Store } from "../../ports/store.ts";
import type { CommitListener } from "./commit-listener.ts";
import type { Redact } from "./error-text.ts";

export interface Ports {
  readonly store: Store;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly consequences: CommitListener;
  readonly redact?: Redact;
}

export const NONE = { command: undefined, decided: undefined, events: [], memos: [], answer: undefined } as const;
