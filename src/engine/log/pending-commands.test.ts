// Commands in flight: which are kept, the errors of callers, and which are handed over or renamed.
import { describe, expect, test } from "vitest";
import { accept, edit, keyed, readyLane } from "../../../test/fixtures/commit.ts";
import { ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Command } from "../../core/model/command.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { Coverage } from "../../core/policy/covers.ts";
import {
  exactStops,
  isCancel,
  isLasting,
  notRecorded,
  renamed,
  withKnownKey,
  withProcessId,
} from "./pending-commands.ts";
import type { Flight, Pending } from "./session-state.ts";

const user: CancelReason = { kind: "user" };

function entryOf(command: Command | undefined, more: Partial<Pending> = {}): Pending {
  const caller = { resolve: () => {}, reject: () => {}, decided: undefined };
  return { command, ...caller, events: [], memos: [], answer: undefined, ...more };
}

/**
 * `stop`: carried out at once, and kept. `end`: a fact about the world, kept. `refusable`: rejected while the store
 * fails.
 */
const KINDS: Readonly<Record<Command["type"], "stop" | "end" | "refusable">> = {
  ...{ "cancel-session": "stop", "cancel-run": "stop", "cancel-key": "stop", "cancel-call": "stop" },
  ...{ "cancel-process": "stop", close: "stop" },
  ...{ "settle-turn": "end", "settle-call": "end", "settle-process": "end", "detach-process": "end" },
  ...{ expire: "end", recover: "end", park: "end", "keep-answer": "end" },
  ...{ create: "refusable", accept: "refusable", edit: "refusable", move: "refusable", withdraw: "refusable" },
  ...{ steer: "refusable", "cancel-question": "refusable", answer: "refusable", "set-mode": "refusable" },
  ...{ post: "refusable", start: "refusable", take: "refusable", extend: "refusable", compact: "refusable" },
  ...{
    "admit-call": "refusable",
    call: "refusable",
    ask: "refusable",
    "begin-process": "refusable",
    "note-process": "refusable",
  },
};

test.each(Object.entries(KINDS))("while the store fails, %s is: %s", (type, kind) => {
  const command = { type } as Command;
  expect(isCancel(command)).toBe(kind === "stop");
  expect(isLasting({ command })).toBe(kind !== "refusable");
});

test("a barrier is neither a stop nor kept", () => {
  expect([isCancel(undefined), isLasting({ command: undefined })]).toEqual([false, false]);
});

test("notRecorded() rejects the caller of a stop once, with the store's error; later answers are dropped", () => {
  const answers: unknown[] = [];
  const entry = entryOf(
    { type: "cancel-run", runId: "run_1", reason: user },
    { resolve: (answer) => answers.push(answer), reject: (error) => answers.push(error) },
  );
  entry.covered = { runs: ["run_1"], work: [], processes: [] };
  const full = new ControlError("store_full", "The disk is full.");
  notRecorded(entry, full);
  notRecorded(entry, new ControlError("unavailable", "No answer."));
  entry.resolve({ kind: "withdrawn" });
  expect(answers).toHaveLength(1);
  expect(answers[0]).toMatchObject({
    ...{ code: "store_full", retryable: true, hint: STOP_UNRECORDED, cause: full },
    message: "The stop was carried out here, but could not be recorded yet: The disk is full.",
  });
});

describe("exactStops(): the stops of what a stop covered when it was decided", () => {
  const covered: Coverage = {
    ...{ runs: ["run_1", "run_2"], work: ["turn_1.1", "call_1.1"], processes: ["proc_1.1", "proc_1.2"] },
  };
  const all: readonly Command[] = [
    { type: "cancel-run", runId: "run_1", reason: user },
    { type: "cancel-run", runId: "run_2", reason: user },
    { type: "cancel-process", processId: "proc_1.1", reason: user },
    { type: "cancel-process", processId: "proc_1.2", reason: user },
  ];
  const once = { key: "stop", content: "stop" };

  test.each<Command>([
    { type: "cancel-session", reason: user },
    { type: "cancel-session", reason: user, background: "keep" },
  ])("G7: %j names its runs and processes, background ones included, and keeps the answer of its key", (command) => {
    expect(exactStops(entryOf(command, { covered }))).toEqual(all);
    const answer = { kind: "stopping", runs: [] };
    const kept = { type: "keep-answer", answer, once };
    expect(exactStops(entryOf({ ...command, once }, { covered, answer }))).toEqual([...all, kept]);
  });

  test("G7: the prompts that a lost cancel named are named again, each by its key", () => {
    const named: Command = { type: "cancel-session", reason: user, prompts: ["k"], actor: "ann" };
    const again: Command = { type: "cancel-key", key: "k", prompts: ["k"], actor: "ann", reason: user };
    expect(exactStops(entryOf(named, { covered }))).toEqual([...all, again]);
  });

  test.each<Command>([
    { type: "close", reason: user },
    { type: "cancel-key", key: "k", reason: user },
    { type: "cancel-run", runId: "run_1", reason: user },
    { type: "cancel-call", callId: "call_1.1", reason: user, remind: true },
    { type: "cancel-process", processId: "proc_1.1", reason: user },
  ])("%j is kept unchanged: it names its target, and a retry with its key must get the same answer", (command) => {
    expect(exactStops(entryOf({ ...command, once }, { covered }))).toEqual([{ ...command, once }]);
  });

  test("of a command that was not decided here, covered nothing, or is not a stop are none", () => {
    const stop: Command = { type: "cancel-session", reason: user };
    expect(exactStops(entryOf(stop))).toEqual([]);
    expect(exactStops(entryOf(stop, { covered: { runs: [], work: [], processes: [] } }))).toEqual([]);
    expect(exactStops(entryOf({ type: "start" }))).toEqual([]);
    expect(exactStops(entryOf(undefined))).toEqual([]);
  });

  test("of a time limit are none: the next driver measures its own", () => {
    const reason: CancelReason = { kind: "timeout", limitMs: 100 };
    expect(exactStops(entryOf({ type: "cancel-run", runId: "run_1", reason }, { covered }))).toEqual([]);
  });
});

describe("withKnownKey(): a prompt with the key of one that is not durable yet", () => {
  const accepted = (runId: RunId, key: string): Pending =>
    entryOf(keyed(runId, key), {
      events: [
        { type: "session.mode_set", mode: "plan" },
        { type: "run.accepted", runId, prompt: { text: "" }, delivery: "queue", key, content: key },
      ],
    });

  test("is a repetition of that one, with its future position", () => {
    const lane = readyLane();
    lane.flight = { entries: [accepted("run_1", "k1")] } as Partial<Flight> as Flight;
    lane.pending = [accepted("run_2", "k2")];
    const earlierOf = (key: string) => withKnownKey(lane, keyed("run_9", key));
    expect(earlierOf("k1")).toMatchObject({ earlier: { runId: "run_1", acceptedAt: 2, content: "k1" } });
    expect(earlierOf("k2")).toMatchObject({ earlier: { runId: "run_2", acceptedAt: 4, content: "k2" } });
    expect(earlierOf("k3")).toEqual(keyed("run_9", "k3"));
  });

  test("G12: reads each entry once, however many prompts come in one tick", () => {
    const lane = readyLane();
    let reads = 0;
    for (let index = 0; index < 1_000; index += 1) {
      const entry = accepted(`run_${index}`, `k${index}`);
      const { events } = entry;
      Object.defineProperty(entry, "events", { get: () => ++reads && events });
      withKnownKey(lane, keyed(`run_${index}`, `k${index}`));
      lane.pending.push(entry);
    }
    expect(withKnownKey(lane, keyed("run_x", "k0"))).toMatchObject({ earlier: { runId: "run_0", acceptedAt: 2 } });
    expect(reads).toBe(1_000);
  });

  test("is new again once the earlier ones are decided again, or the list was emptied", () => {
    const lane = readyLane();
    lane.pending.push(accepted("run_1", "k"));
    expect(withKnownKey(lane, keyed("run_9", "k"))).toHaveProperty("earlier");
    const [entry] = lane.pending.splice(0);
    expect(withKnownKey(lane, keyed("run_9", "k"))).not.toHaveProperty("earlier");
    lane.pending.push(accepted("run_2", "k2"));
    expect(withKnownKey(lane, keyed("run_9", "k"))).not.toHaveProperty("earlier");
    expect(withKnownKey(lane, keyed("run_9", "k2"))).toMatchObject({ earlier: { runId: "run_2", acceptedAt: 2 } });
    lane.pending = entry === undefined ? [] : [entry];
    expect(withKnownKey(lane, keyed("run_9", "k"))).toMatchObject({ earlier: { runId: "run_1", acceptedAt: 2 } });
  });

  test("is unchanged without a key, and if its earlier run is known", () => {
    const lane = readyLane();
    lane.pending = [accepted("run_1", "k")];
    expect(withKnownKey(lane, accept("run_9"))).toEqual(accept("run_9"));
    expect(withKnownKey(lane, edit("run_1"))).toEqual(edit("run_1"));
    const known = { ...keyed("run_9", "k"), earlier: { runId: "run_0", acceptedAt: 1, content: "k" } } as const;
    expect(withKnownKey(lane, known)).toBe(known);
  });
});

test("withProcessId(): each request gets the next id once, and keeps it when it is decided again", () => {
  const lane = readyLane();
  const begin = { type: "begin-process", owner: "ses_1", command: "make", feedback: "silent" } as const;
  const [first, second] = [withProcessId(lane, begin), withProcessId(lane, begin)];
  expect([first.processId, second.processId]).toEqual(["proc_1.1", "proc_1.2"]);
  expect(withProcessId(lane, first)).toBe(first);
  lane.decided = { ...lane.decided, processes: { live: [], count: 7 } };
  expect(withProcessId(lane, begin).processId).toBe("proc_1.8");
});

describe("renamed(): a provisional run id stands for the earlier run", () => {
  const aliases = new Map<RunId, RunId>([["run_2", "run_1"]]);
  test.each<readonly [Command, object]>([
    [{ type: "cancel-run", runId: "run_2", reason: user }, { runId: "run_1" }],
    [{ type: "edit", runId: "run_2", prompt: { text: "x" } }, { runId: "run_1" }],
    [{ type: "withdraw", runId: "run_2", reason: user }, { runId: "run_1" }],
    [{ type: "steer", runId: "run_2" }, { runId: "run_1" }],
    [
      { type: "move", runId: "run_2", to: "front" },
      { runId: "run_1", to: "front" },
    ],
    [
      { type: "move", runId: "run_3", to: { before: "run_2" } },
      { runId: "run_3", to: { before: "run_1" } },
    ],
    [
      { type: "move", runId: "run_2", to: { before: "run_3" } },
      { runId: "run_1", to: { before: "run_3" } },
    ],
  ])("%j", (command, changed) => {
    expect(renamed(command, aliases)).toEqual({ ...command, ...changed });
  });

  test("the prompt itself, other runs and other commands are unchanged", () => {
    const others: readonly Command[] = [
      ...([accept("run_2"), edit("run_3"), { type: "start" }, { type: "cancel-session", reason: user }] as const),
      { type: "cancel-call", callId: "call_2.1", reason: user },
    ];
    for (const command of others) expect(renamed(command, aliases)).toEqual(command);
  });
});
