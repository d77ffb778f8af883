// The laws, tested with made-up histories: each broken promise is seen, and a good history has none.
import { expect, test } from "vitest";
import type { Event, Recorded } from "../../src/core/event.ts";
import type { SessionId } from "../../src/core/ids.ts";
import type { Held, History, Prompted, Told } from "./history.ts";
import { broken } from "./laws.ts";

const completed = { kind: "completed" } as const;
const GOOD: readonly Event[] = [
  { type: "session.created", sessionId: "ses_a" },
  { type: "run.accepted", runId: "run_1", prompt: { text: "say" }, delivery: "queue" },
  { type: "run.started", runId: "run_1" },
  { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" },
  { type: "turn.settled", runId: "run_1", turnId: "turn_1.1", outcome: completed, next: "end" },
  { type: "run.settled", runId: "run_1", outcome: completed },
];

const value = (told: unknown): Told => ({ kind: "value", value: told });
const refused = (code: string, message = ""): Told => ({ kind: "refused", code, message });
const held = (told: Told, what = "it"): Held => ({ what, life: 1, told });
const receipt = value({ kind: "accepted", runId: "run_1", seq: 2, joined: "queue", ahead: 0, repeated: false });

function prompted(accepted: Told, outcome: Told, runId: Prompted["runId"] = "run_1"): Prompted {
  return { session: "ses_a", runId, key: undefined, accepted: held(accepted), outcome: held(outcome) };
}

function history(changed: Partial<History> = {}, events: readonly Event[] = GOOD): History {
  const log = events.map((event, index): Recorded => ({ ...event, seq: index + 1, at: 1 }));
  return {
    held: [],
    prompts: [prompted(receipt, value(completed))],
    cancels: [],
    changes: [],
    followed: [],
    logs: new Map<SessionId, readonly Recorded[]>([["ses_a", log]]),
    carriedOut: [{ id: "turn_1.1", life: 1 }],
    answersLost: false,
    saidInternal: false,
    crashed: new Set(),
    closedUnanswered: new Set(),
    ...changed,
  };
}

const change = (told: Told, event: Recorded["type"]): Partial<History> => ({
  changes: [{ session: "ses_a", event, like: {}, receipt: held(told) }],
});
const cancel = (told: Told, open = true): Partial<History> => ({
  cancels: [{ runId: "run_1", open, receipt: held(told) }],
});
const follow = (...heard: readonly number[]): Partial<History> => ({
  followed: [{ session: "ses_a", heard: [...heard], after: 0, ended: held({ kind: "waiting" }) }],
});

test("a good history breaks nothing", () => {
  const all = { ...follow(1, 2, 3, 4, 5, 6), ...cancel(value({ kind: "settled", outcome: completed })) };
  expect(broken(history(all))).toEqual([]);
  expect(broken(history({ held: [held({ kind: "waiting" })], crashed: new Set([1]) }))).toEqual([]);
  const unrecorded = cancel(refused("store_full", "The stop was carried out here, but …"));
  expect(broken(history({ ...unrecorded, closedUnanswered: new Set([1]) }))).toEqual([]);
  expect(broken(history({ prompts: [prompted(refused("unavailable"), value(completed))], answersLost: true }))).toEqual(
    [],
  );
});

test.each<[string, string, History]>([
  ["a promise that nobody settles", "G8", history({ held: [held({ kind: "waiting" })] })],
  ["an error without a code", "G28", history({ held: [held({ kind: "raw", error: "TypeError" })] })],
  ["a fault of ours", "G28", history({ held: [held(refused("internal"))] })],
  ["an acceptance that is not in the log", "G1", history({}, GOOD.slice(0, 1))],
  ["a prompt that runs beside the one it repeats", "G2", history({ prompts: [twice()] })],
  [
    "a refusal that is in the log",
    "G3",
    history({ prompts: [prompted(refused("store_full"), refused("store_full"))] }),
  ],
  ["another outcome than the log's", "G15", history({ prompts: [prompted(receipt, value({ kind: "lost" }))] })],
  ["a withdrawal of what has started", "G10", history(cancel(value({ kind: "withdrawn" })))],
  ["a stop of what completed", "G10", history(cancel(value({ kind: "stopping", since: 4, first: true })))],
  ["an end that was another", "G10", history(cancel(value({ kind: "settled", outcome: { kind: "lost" } })))],
  ["a stop that was forgotten", "G28", history(cancel(refused("store_full", "The stop was carried out here, but …")))],
  ["a change that is not recorded", "G6", history(change(value({ kind: "changed", seq: 3 }), "run.edited"))],
  ["a change that was refused and recorded", "G3", history(change(refused("store_full"), "run.started"))],
  ["a change that came too late and is recorded", "G3", history(change(value({ kind: "started" }), "run.started"))],
  ["a follower who misses something", "G30", history(follow(1, 2, 4))],
  ["a follower who hears something twice", "G30", history(follow(1, 2, 2))],
  ["a follower who is left behind", "G30", history(follow(1, 2, 3))],
  ["a follower who hears what is not there", "G29", history(follow(1, 2, 3, 4, 5, 6, 7))],
  ["work that is done twice", "G25", history({ carriedOut: [1, 1].map((life) => ({ id: "turn_1.1", life })) })],
  ["work that nobody asked for", "G1", history({ carriedOut: [{ id: "call_1.1", life: 1 }] })],
  ["a run without an outcome", "G24", history({ prompts: [] }, GOOD.slice(0, 5))],
  ["two runs with one key", "G2", history({}, [...GOOD, keyed("run_2"), keyed("run_3")])],
])("%s is seen", (_, guarantee, bad) => {
  expect(broken(bad).join("\n")).toContain(`${guarantee}: `);
});

/** Told that it is run_1, and in the log itself. */
function twice(): Prompted {
  const other = value({ kind: "accepted", runId: "run_9", seq: 2, joined: "queue", ahead: 0, repeated: true });
  return prompted(other, value(completed));
}

function keyed(runId: Prompted["runId"]): Event {
  return { type: "run.accepted", runId, prompt: { text: "say" }, delivery: "queue", key: "k" };
}
