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

const OWN = "an unanswered prompt in a session of its own";
const OWN_RUN = "a live run in a session of its own";
const UNANSWERED = ["an unanswered prompt"] as const;
const WAITING = ["a queued run", "a steer"] as const;
const LIVE = ["a live run", "a call", "a question"] as const;
const PROCESSES = ["a process", "a process that is being started"] as const;
export const IN_FLIGHT = [...UNANSWERED, OWN, ...WAITING, ...LIVE, OWN_RUN, ...PROCESSES] as const;
export type InFlight = (typeof IN_FLIGHT)[number];

type Reach = "stops" | { readonly not: string };

const each = <K extends InFlight>(all: readonly K[], reach: Reach): Readonly<Record<K, Reach>> =>
  Object.fromEntries(all.map((one) => [one, reach])) as Record<K, Reach>;
const not = (why: string): Reach => ({ not: why });

const NO_ID = not("it has no id yet");
const NO_NAME = not("its session has no name yet");
const NO_CALL = each(
  [...UNANSWERED, OWN, ...WAITING, "a live run", "a question", OWN_RUN, ...PROCESSES],
  not("no call"),
);
const NO_PROMPT = each(PROCESSES, not("a process has no prompt"));
const NO_PROCESS = each([...UNANSWERED, OWN, ...WAITING, ...LIVE, OWN_RUN], not("no process"));
const OF_A_SESSION = each([...UNANSWERED, ...WAITING, ...LIVE, OWN_RUN, ...PROCESSES], "stops");
const PROMPTS = each([...UNANSWERED, ...WAITING, ...LIVE], "stops");

/** What each method stops. A state or a method that is not here is an error of types. */
export const REACHES: Readonly<Record<Method, Readonly<Record<InFlight, Reach>>>> = {
  "belay.cancel": { ...OF_A_SESSION, [OWN]: NO_ID },
  "belay.cancelPrompt": {
    ...each([...UNANSWERED, ...WAITING, ...LIVE], not("a prompt of a session is cancelled through it")),
    ...{ ...NO_PROMPT, [OWN]: "stops", [OWN_RUN]: "stops" },
  },
  "belay.cancelAll": each(IN_FLIGHT, "stops"),
  "session.cancel": { ...OF_A_SESSION, [OWN]: NO_NAME },
  "session.cancelCall": { ...NO_CALL, "a call": "stops" },
  "session.cancelPrompt": { ...PROMPTS, ...NO_PROMPT, [OWN]: NO_NAME, [OWN_RUN]: "stops" },
  "session.close": { ...OF_A_SESSION, [OWN]: NO_NAME },
  "session.delete": { ...OF_A_SESSION, [OWN]: NO_NAME },
  "run.cancel": { ...PROMPTS, ...each(PROCESSES, not("no run")), [OWN]: "stops", [OWN_RUN]: "stops" },
  "process.cancel": { ...NO_PROCESS, ...each(PROCESSES, "stops") },
  "queue.withdraw": {
    ...each([...UNANSWERED, OWN, ...LIVE, OWN_RUN, ...PROCESSES], not("it does not wait in a queue")),
    ...each(WAITING, "stops"),
  },
  "queue.clear": {
    ...each([...UNANSWERED, OWN, ...LIVE, OWN_RUN, ...PROCESSES], not("it does not wait in a queue")),
    ...each(WAITING, "stops"),
  },
};

/** Those that stop everything of the session, so that the prompt behind them runs. */
export const FREES_THE_SESSION: ReadonlySet<Method> = new Set(["belay.cancelAll", "session.cancel"]);

/** Those that end the session: what has not arrived is refused. */
export const ENDS_THE_SESSION: ReadonlySet<Method> = new Set(["session.close", "session.delete"]);

/**
 * `in one tick`: with nothing in between. `delayed`: the prompt and the stop stay on the way for a while. `reordered`:
 * the stop arrives before the prompt it is for, and once more behind the prompt that follows it. `answer lost`: the
 * server acts, and neither answer arrives. `answer lost, then 502`: and a proxy answers whatever is sent again, until
 * patience ends. `server restarted`: while the prompt, or else the stop, is on the way.
 */
export const NETWORKS = [
  ...(["in one tick", "delayed", "reordered", "answer lost", "answer lost, then 502", "server restarted"] as const),
] as const;
export type Network = (typeof NETWORKS)[number];

/** The other networks are in the slow lane. */
export const QUICK_NETWORKS: readonly Network[] = ["in one tick", "answer lost"];

export const isUnanswered = (inFlight: InFlight): boolean => inFlight.startsWith("an unanswered prompt");
export const hasOwnSession = (inFlight: InFlight): boolean => inFlight === OWN || inFlight === OWN_RUN;
export const isProcess = (inFlight: InFlight): boolean => PROCESSES.some((one) => one === inFlight);
