// What the table of stops is made of: every method of the control that stops something, read off its types; what it can
// be sent for; and what can happen on its way. A method that is added to the control must be added here.

import type { CancelReceipt, SessionReceipt } from "../../../src/core/model/cancel.ts";
import type { SessionDeleted } from "../../../src/core/model/upkeep.ts";
import type {
  BelayControl,
  CoveredSession,
  ProcessControl,
  QueueControl,
  RunControl,
  SessionControl,
} from "../../../src/ports/control.ts";

type Receipt = SessionReceipt | CancelReceipt | SessionDeleted | readonly CoveredSession[];
type StopsOf<T> = {
  [K in keyof T & string]: T[K] extends (...given: never[]) => Promise<infer R>
    ? [R] extends [Receipt]
      ? K
      : never
    : never;
}[keyof T & string];
type ChangesOf<T> = { [K in keyof T & string]: T[K] extends (...given: never[]) => unknown ? K : never }[keyof T &
  string];

export type Method =
  | `belay.${StopsOf<BelayControl>}`
  | `session.${StopsOf<SessionControl>}`
  | `run.${StopsOf<RunControl>}`
  | `process.${StopsOf<ProcessControl>}`
  /** Its other methods list, and change what waits without ending it. */
  | `queue.${Exclude<ChangesOf<QueueControl>, "list" | "edit" | "move" | "steer">}`;

export const IN_FLIGHT = [
  "an unanswered prompt",
  "an unanswered prompt in a session of its own",
  "a queued run",
  "a steer",
  "a live run",
  "a call",
  "a question",
  "a process",
] as const;
export type InFlight = (typeof IN_FLIGHT)[number];

const OWN = "an unanswered prompt in a session of its own";
const IN_A_SESSION: readonly InFlight[] = IN_FLIGHT.filter((one) => one !== OWN);
const RUNS = ["an unanswered prompt", "a queued run", "a steer", "a live run"] as const;

/** What each method can be sent for. */
export const REACHES: Readonly<Record<Method, readonly InFlight[]>> = {
  "belay.cancel": IN_A_SESSION,
  "belay.cancelPrompt": [OWN],
  "belay.cancelAll": IN_FLIGHT,
  "session.cancel": IN_A_SESSION,
  "session.cancelCall": ["a call"],
  "session.cancelPrompt": RUNS,
  "session.close": IN_A_SESSION,
  "session.delete": IN_A_SESSION,
  "run.cancel": [OWN, ...RUNS, "a call", "a question"],
  "process.cancel": ["a process"],
  "queue.withdraw": ["a queued run", "a steer"],
};

/** Those that stop everything of the session, so that the prompt behind them runs. */
export const FREES_THE_SESSION: ReadonlySet<Method> = new Set(["belay.cancelAll", "session.cancel"]);

/** Those that end the session: what has not arrived is refused. */
export const ENDS_THE_SESSION: ReadonlySet<Method> = new Set(["session.close", "session.delete"]);

/**
 * `in one tick`: with nothing in between. `delayed`: the prompt and the stop stay on the way for a while. `reordered`:
 * the stop arrives before the prompt it is for, and once more behind the prompt that follows it. `answer lost`: the
 * server acts, and neither answer arrives. `server restarted`: while the prompt, or else the stop, is on the way.
 */
export const NETWORKS = ["in one tick", "delayed", "reordered", "answer lost", "server restarted"] as const;
export type Network = (typeof NETWORKS)[number];

/** The other networks are in the slow lane. */
export const QUICK_NETWORKS: readonly Network[] = ["in one tick", "answer lost"];

export const isUnanswered = (inFlight: InFlight): boolean => inFlight.startsWith("an unanswered prompt");
export const hasOwnSession = (inFlight: InFlight): boolean => inFlight === OWN;
