// The row that each event changes.
import { expect, test } from "vitest";
import { completed, plainQuestion, user } from "../../../test/fixtures/commands.ts";
import type { Event } from "./event.ts";
import type { MemoChange } from "./memo.ts";
import { keysOf, type RowChange, rowChange } from "./rows.ts";

const run = { runId: "run_a" } as const;
const turn = { ...run, turnId: "turn_a.1" } as const;
const call = { ...run, callId: "call_a.1" } as const;
const one = { processId: "proc_1.1" } as const;
const prompt = { text: "hello" };

/** Every event type: a new one does not compile until its row is decided. */
const changes: { readonly [T in Event["type"]]: readonly [Extract<Event, { type: T }>, RowChange | undefined] } = {
  "session.created": [
    { type: "session.created", sessionId: "ses_1", title: "Chores", cwd: "/srv/shop" },
    { type: "create-session", title: "Chores", cwd: "/srv/shop" },
  ],
  "session.cancel_requested": [{ type: "session.cancel_requested", reason: user, covers: [] }, undefined],
  "session.closed": [{ type: "session.closed", reason: user }, { type: "close-session" }],
  "session.mode_set": [{ type: "session.mode_set", mode: "auto", by: "ann" }, undefined],
  "session.compacted": [{ type: "session.compacted", turnId: "turn_a.1", summary: "x" }, undefined],
  "inbox.added": [{ type: "inbox.added", item: { kind: "result", text: "x" } }, undefined],
  "request.answered": [{ type: "request.answered", key: "k", content: "c", answer: null }, undefined],
  "run.accepted": [
    { type: "run.accepted", ...run, prompt, delivery: "queue", key: "k", content: "c" },
    { type: "insert-run", id: "run_a", acceptedAt: 7, key: "k", content: "c" },
  ],
  "run.edited": [{ type: "run.edited", ...run, prompt }, undefined],
  "run.moved": [{ type: "run.moved", ...run, index: 0 }, undefined],
  "run.steered": [{ type: "run.steered", ...run }, undefined],
  "run.requeued": [{ type: "run.requeued", ...run }, undefined],
  "run.taken": [{ type: "run.taken", ...turn, into: "run_b" }, undefined],
  "run.started": [
    { type: "run.started", ...run },
    { type: "start-run", id: "run_a" },
  ],
  "run.cancel_requested": [{ type: "run.cancel_requested", ...run, reason: user }, undefined],
  "run.parked": [{ type: "run.parked", ...run }, undefined],
  "run.recovered": [{ type: "run.recovered", ...run, attempt: 2 }, undefined],
  "run.settled": [
    { type: "run.settled", ...run, outcome: completed },
    { type: "settle-run", id: "run_a", settledAt: 7, outcome: completed },
  ],
  "turn.requested": [{ type: "turn.requested", ...turn }, undefined],
  "inbox.taken": [{ type: "inbox.taken", ...turn, items: [] }, undefined],
  "turn.extended": [{ type: "turn.extended", ...turn, text: "x" }, undefined],
  "turn.settled": [{ type: "turn.settled", ...turn, outcome: completed, next: "end" }, undefined],
  "question.asked": [
    { type: "question.asked", ...run, questionId: "ask_a.1", owner: "turn_a.1", about: plainQuestion },
    undefined,
  ],
  "question.settled": [
    { type: "question.settled", ...run, questionId: "ask_a.1", ending: { kind: "expired", limitMs: 1 } },
    undefined,
  ],
  "call.requested": [{ type: "call.requested", ...call, name: "tool", input: null }, undefined],
  "call.cancel_requested": [{ type: "call.cancel_requested", ...call, reason: user }, undefined],
  "call.settled": [
    { type: "call.settled", ...call, outcome: completed, result: 1 },
    { type: "insert-call", id: "call_a.1", settledAt: 7, outcome: completed },
  ],
  "process.requested": [
    { type: "process.requested", ...one, owner: "ses_1", command: "make", feedback: "wake" },
    { type: "insert-process", id: "proc_1.1", requestedAt: 7 },
  ],
  "process.started": [{ type: "process.started", ...one, pid: 7, tier: "A", profile: "open" }, undefined],
  "process.detached": [{ type: "process.detached", ...one, owner: "ses_1", feedback: "wake" }, undefined],
  "process.cancel_requested": [{ type: "process.cancel_requested", ...one, reason: user }, undefined],
  "process.settled": [
    { type: "process.settled", ...one, outcome: completed, exit: { code: 0 } },
    { type: "settle-process", id: "proc_1.1", settledAt: 7, outcome: completed },
  ],
};

test.each(Object.entries(changes))("%s", (_, [event, expected]) => {
  expect(rowChange(event, 7)).toEqual(expected);
});

test("absent fields stay absent", () => {
  expect(rowChange({ type: "session.created", sessionId: "ses_1" }, 1)).toEqual({
    type: "create-session",
    title: undefined,
    cwd: undefined,
  });
  expect(rowChange({ type: "run.accepted", ...run, prompt, delivery: "steer" }, 2)).toEqual({
    type: "insert-run",
    id: "run_a",
    acceptedAt: 2,
    key: undefined,
    content: undefined,
  });
});

test("the keys of a batch are those of its prompts and of its memos of prompts, each once", () => {
  const accepted = (key?: string): Event => ({
    ...{ type: "run.accepted", runId: "run_a", prompt, delivery: "queue" },
    ...(key === undefined ? {} : { key }),
  });
  const kept = (key: string): MemoChange => ({ type: "keep", memo: { kind: "prompt", key, actor: "", reason: user } });
  const answer: MemoChange = { type: "keep", memo: { kind: "answer", key: "answered", content: "c", answer: null } };
  const answered: Event = { type: "request.answered", key: "request", content: "c", answer: null };
  expect(keysOf([accepted("k"), accepted(), answered])).toEqual(["k"]);
  expect(keysOf([accepted("k")], [kept("k"), kept("m"), answer, { type: "drop", name: "n" }])).toEqual(["k", "m"]);
  expect(keysOf([])).toEqual([]);
});
