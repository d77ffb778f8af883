// A made-up history and its log, which fit each other, and how each test changes them.
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { CallId, RunId, SessionId, TurnId } from "../../src/core/model/ids.ts";
import type {
  Answer,
  AnswerMoment,
  CallerHistory,
  CallerRequest,
  RequestName,
  RequestOf,
  RequestTypes,
} from "./caller-history.ts";
import { check, type Evidence } from "./check.ts";
import type { Effect } from "./check-effects.ts";

export const sessionId: SessionId = "ses_a";
export const [one, two]: readonly [RunId, RunId] = ["run_one", "run_two"];
export const call: CallId = "call_one.1";
export const completed: Outcome = { kind: "completed" };
export const enough: Outcome = { kind: "cancelled", reason: { kind: "user" } };

export const accepted = (runId: RunId, text: string, key?: string): Event => ({
  ...{ type: "run.accepted", runId, prompt: { text }, delivery: "queue", ...(key === undefined ? {} : { key }) },
});
export const turn = (runId: RunId): { runId: RunId; turnId: TurnId } => ({ runId, turnId: `turn_${runId.slice(4)}.1` });
export const requested = (callId: CallId, more: { idempotent?: true } = {}): Event => ({
  ...{ type: "call.requested", runId: one, callId, name: "call", input: null, ...more },
});
export const settled = (callId: CallId): Event => ({ type: "call.settled", runId: one, callId, outcome: completed });

/** One run with one call, and one that was withdrawn before it began. */
export const GOOD: readonly Event[] = [
  { type: "session.created", sessionId },
  accepted(one, "first"),
  { type: "run.started", runId: one },
  { type: "turn.requested", ...turn(one) },
  requested(call),
  accepted(two, "second"),
  { type: "run.settled", runId: two, outcome: enough },
  settled(call),
  { type: "turn.settled", ...turn(one), outcome: completed, next: "end", text: "" },
  { type: "run.settled", runId: one, outcome: completed },
];

export const begin: Effect = { kind: "begin", work: call, life: 1, step: "one 0" };
export const end: Effect = { ...begin, kind: "end" };
export const EFFECTS: readonly Effect[] = [{ kind: "begin", work: turn(one).turnId, life: 1 }, begin, end];

export function request<K extends RequestName>(
  name: K,
  params: RequestTypes[K]["params"],
  answer: Answer<RequestTypes[K]["value"]>,
  sentAt = 60,
): CallerRequest {
  const made: RequestOf<K> = { name, sessionId, params, answer, sentAt, answeredAt: sentAt + 1 };
  return made as unknown as CallerRequest;
}

/** The request with what is known of the moment of its answer. The log has ten events. */
export const at = (made: CallerRequest, moment: Partial<AnswerMoment> = {}): CallerRequest => ({
  ...made,
  life: 1,
  moment: { ...{ sentHead: 10, head: 10, trimmedTo: 0, server: "serving", storeFailed: false }, ...moment },
});

export const returned = <T>(value: T): Answer<T> => ({ kind: "returned", value });
export const refused = (code: string, carriedOut?: true): Answer<never> => ({
  ...{ kind: "refused", code, ...(carriedOut === undefined ? {} : { carriedOut }) },
});
export const receipt = (runId: RunId, seq: number) =>
  returned({ kind: "accepted", runId, seq, joined: "queue", ahead: 0, repeated: false } as const);
export const prompt = (label: string, runId: RunId, seq: number, sentAt: number): CallerRequest =>
  request("prompt", { label }, receipt(runId, seq), sentAt);
export const outcome = (runId: RunId, value: Outcome): CallerRequest =>
  request("outcome", { runId }, returned(value), 50);

export const REQUESTS: readonly CallerRequest[] = [
  prompt("first", one, 2, 1),
  prompt("second", two, 6, 3),
  outcome(one, completed),
  request("cancel-run", { runId: two }, returned({ kind: "withdrawn" }), 5),
];

export const record = (events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 0 }));

export interface Made extends Partial<Evidence> {
  readonly events?: readonly Event[];
  readonly requests?: readonly CallerRequest[];
  readonly slices?: CallerHistory["slices"];
}

export const findings = ({ events = GOOD, requests = REQUESTS, slices = [], ...changed }: Made) =>
  check({
    ...{ history: { requests, slices }, logs: new Map([[sessionId, record(events)]]), effects: EFFECTS },
    ...{ labelOf: ({ prompt: { text } }) => text, storeFails: false, ...changed },
  });

/** Each kind of finding once, with the guarantee it breaks. */
export const found = (made: Made): readonly string[] => [
  ...new Set(findings(made).map(({ kind, guarantee }) => `${guarantee} ${kind}`)),
];
export const also = (...more: readonly CallerRequest[]): Made => ({ requests: [...REQUESTS, ...more] });

/** The good log with another event in one place. */
export const but = (at: number, ...events: readonly Event[]): readonly Event[] => GOOD.toSpliced(at, 1, ...events);
