// How a lane changes with each event, and what it does with a log that contradicts itself.
import { describe, expect, test } from "vitest";
import { approval, completed, plainQuestion, user } from "../../../test/fixtures/commands.ts";
import { Bug } from "../bug.ts";
import { ANSWERS_KEPT } from "../limits.ts";
import type { Event } from "./event.ts";
import type { RunId, TurnId } from "./ids.ts";
import { emptyLane, evolve, type Lane, leadingInterrupts, placeFor } from "./lane.ts";
import { NO_MEMOS } from "./memo-set.ts";
import type { Delivery } from "./prompt.ts";

const created: Event = { type: "session.created", sessionId: "ses_1" };
const accepted = (runId: RunId, delivery: Delivery = "queue"): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: "hello" },
  delivery,
});
const started = (runId: RunId): Event => ({ type: "run.started", runId });
const settled = (runId: RunId): Event => ({ type: "run.settled", runId, outcome: completed });
const parked = (runId: RunId): Event => ({ type: "run.parked", runId });

const fold = (...events: readonly Event[]): Lane => events.reduce(evolve, emptyLane("ses_1"));
const ids = (runs: readonly { readonly id: RunId }[]) => runs.map((run) => run.id);

describe("the session", () => {
  test("an empty log means that the session is absent", () => {
    expect(emptyLane("ses_1")).toStrictEqual({
      id: "ses_1",
      phase: "absent",
      head: 0,
      cwd: undefined,
      mode: undefined,
      live: undefined,
      queue: [],
      steers: [],
      answered: [],
      inbox: [],
      grants: [],
      processes: { live: [], count: 0 },
      memos: NO_MEMOS,
      contextFrom: 1,
    });
  });

  test("the next request to a model reads the log from the oldest prompt that is open at the last summary", () => {
    const compacted = (turnId: TurnId): Event => ({ type: "session.compacted", turnId, summary: "in short" });
    const first = fold(created, accepted("run_a"), started("run_a"));
    expect(first.contextFrom).toBe(1);
    const past = [created, accepted("run_a"), started("run_a"), settled("run_a"), accepted("run_b"), accepted("run_c")];
    expect(fold(...past, started("run_b"), compacted("turn_b.1")).contextFrom).toBe(5);
    // Taken out of its order: the waiting run is older.
    expect(fold(...past, started("run_c"), compacted("turn_c.1")).contextFrom).toBe(5);
    const later = [...past, started("run_b"), compacted("turn_b.1"), settled("run_b"), started("run_c")];
    expect(fold(...later).contextFrom).toBe(5);
    expect(fold(...later, compacted("turn_c.1")).contextFrom).toBe(6);
    // A log that contradicts itself does not produce an invalid position.
    expect(fold(created, compacted("turn_x.1")).contextFrom).toBe(2);
  });

  test("idle lanes share their empty lists", () => {
    const idle = fold(created, accepted("run_a"), started("run_a"), settled("run_a"));
    expect(idle.queue).toBe(emptyLane("ses_2").queue);
    expect(idle.steers).toBe(emptyLane("ses_2").steers);
    expect(idle.answered).toBe(emptyLane("ses_2").answered);
    const cancelled = evolve(idle, { type: "session.cancel_requested", reason: user, covers: [] });
    expect(cancelled.inbox).toBe(emptyLane("ses_2").inbox);
  });

  test("it is open once created, and closed once closed", () => {
    expect(fold(created)).toEqual({ ...emptyLane("ses_1"), phase: "open", head: 1 });
    expect(fold(created, { type: "session.closed", reason: user })).toMatchObject({ phase: "closed", head: 2 });
  });

  test("a cancel of the session moves the head and nothing else; its effects are separate events", () => {
    const before = fold(created, accepted("run_a"));
    const event: Event = { type: "session.cancel_requested", reason: user, covers: ["run_a"] };
    expect(evolve(before, event)).toEqual({ ...before, head: 3 });
  });
});

describe("items in the inbox", () => {
  const x = { kind: "result", text: "x" } as const;
  const fed = (more: object = {}): Event => ({ type: "inbox.added", item: x, processId: "proc_1.1", ...more });
  const woken: Event = { type: "run.accepted", runId: "run_1.w3", prompt: { text: "" }, delivery: "queue", wake: true };
  const called = (callId: "call_a.1" | "call_a.2"): Event => ({
    type: "call.requested",
    runId: "run_a",
    callId,
    name: "tool",
    input: null,
  });
  const taken: Event = { type: "inbox.taken", runId: "run_a", turnId: "turn_a.1", items: [x] };

  test("wait with all their fields", () => {
    expect(fold(created, fed({ heldBy: "call_a.1", wake: true })).inbox).toEqual([
      { item: x, processId: "proc_1.1", heldBy: "call_a.1", wake: true },
    ]);
  });

  test("clear `wake` once a run was begun for them or the session was cancelled, and stay", () => {
    const cancelled: Event = { type: "session.cancel_requested", reason: user, covers: [] };
    for (const event of [woken, cancelled]) {
      expect(fold(created, fed({ wake: true }), event).inbox).toEqual([{ item: x, processId: "proc_1.1" }]);
    }
    for (const event of [woken, cancelled]) {
      expect(fold(created, fed(), fed({ wake: true }), event).inbox).toEqual([
        { item: x, processId: "proc_1.1" },
        { item: x, processId: "proc_1.1" },
      ]);
    }
    const { wake: _, ...plain } = woken;
    expect(fold(created, fed({ wake: true }), plain).inbox).toEqual([{ item: x, processId: "proc_1.1", wake: true }]);
  });

  test("keep `wake` when the session is compacted", () => {
    const compacted: Event = { type: "session.compacted", turnId: "turn_a.1", summary: "in short" };
    const before = fold(created, accepted("run_a"), started("run_a"), fed({ wake: true }));
    expect(evolve(before, compacted)).toEqual({ ...before, head: 5, contextFrom: 2 });
  });

  test("are taken, unless a live call holds them", () => {
    const live = [created, accepted("run_a"), started("run_a"), called("call_a.1")];
    const held = fold(...live, fed({ heldBy: "call_a.1" }), fed(), taken);
    expect(held.inbox).toEqual([{ item: x, processId: "proc_1.1", heldBy: "call_a.1" }]);
    const gone = fold(...live, fed({ heldBy: "call_a.2" }), fed(), taken);
    expect(gone.inbox).toBe(emptyLane("ses_2").inbox);
  });

  test("are removed once a call has returned them", () => {
    const live = [created, accepted("run_a"), started("run_a"), called("call_a.1")];
    const settled: Event = { type: "call.settled", runId: "run_a", callId: "call_a.1", outcome: completed };
    const other: Event = { type: "inbox.added", item: x };
    expect(fold(...live, fed(), other, settled).inbox).toHaveLength(2);
    expect(fold(...live, fed(), other, { ...settled, heard: ["proc_1.1"] }).inbox).toEqual([{ item: x }]);
    expect(fold(...live, fed(), { ...settled, heard: ["proc_1.1"] }).inbox).toBe(emptyLane("ses_2").inbox);
  });
});

describe("processes", () => {
  const requested: Event = {
    type: "process.requested",
    processId: "proc_1.1",
    owner: "call_a.1",
    command: ["make", "-j"],
    feedback: "silent",
  };
  const base = { id: "proc_1.1", owner: "call_a.1", feedback: "silent", title: "make -j" };

  test("are requested, detached, stopped and settled; their number stays", () => {
    const begun = fold(created, requested, {
      type: "process.started",
      processId: "proc_1.1",
      pid: 1,
      tier: "A",
      profile: "open",
    });
    expect(begun.processes).toEqual({ live: [{ phase: "running", ...base }], count: 1 });
    const detached = evolve(begun, {
      type: "process.detached",
      processId: "proc_1.1",
      owner: "ses_1",
      feedback: "wake",
    });
    const moved = { ...base, owner: "ses_1", feedback: "wake" };
    expect(detached.processes.live).toEqual([{ phase: "running", ...moved }]);
    const stopping = evolve(detached, { type: "process.cancel_requested", processId: "proc_1.1", reason: user });
    expect(stopping.processes.live).toEqual([{ phase: "stopping", ...moved, reason: user, since: 5 }]);
    const over = evolve(stopping, { type: "process.settled", processId: "proc_1.1", outcome: completed });
    expect(over).toMatchObject({ head: 6, processes: { live: [], count: 1 } });
  });
});

describe("answered requests", () => {
  const answer = (index: number): Event => ({
    type: "request.answered",
    key: `k${index}`,
    content: "c",
    answer: index,
  });

  test("are kept with their answers, the latest last", () => {
    expect(fold(created, answer(1), answer(2))).toMatchObject({
      head: 3,
      answered: [
        { key: "k1", content: "c", answer: 1 },
        { key: "k2", content: "c", answer: 2 },
      ],
    });
  });

  test("G33: are bounded, and the oldest are dropped first", () => {
    const many = Array.from({ length: ANSWERS_KEPT + 2 }, (_, index) => answer(index));
    const { answered } = fold(created, ...many);
    expect(answered).toHaveLength(ANSWERS_KEPT);
    expect(answered[0]?.key).toBe("k2");
    expect(answered.at(-1)?.key).toBe(`k${ANSWERS_KEPT + 1}`);
    expect(fold(created, ...many.slice(0, ANSWERS_KEPT)).answered[0]?.key).toBe("k0");
  });
});

describe("waiting runs", () => {
  test("an accepted run waits with all its fields", () => {
    const event: Event = {
      type: "run.accepted",
      runId: "run_a",
      prompt: { text: "hé" },
      delivery: "queue",
      key: "k",
      content: "c",
    };
    expect(fold(created, event).queue).toEqual([
      {
        id: "run_a",
        prompt: { text: "hé" },
        delivery: "queue",
        acceptedAt: 2,
        key: "k",
        content: "c",
        bytes: 3,
      },
    ]);
  });

  test("G4: the queue is in the order of acceptance", () => {
    expect(ids(fold(created, accepted("run_a"), accepted("run_b", "reject"), accepted("run_c")).queue)).toEqual([
      "run_a",
      "run_b",
      "run_c",
    ]);
  });

  test.each([
    ["steer", "running", "steers"],
    ["steer", "parked", "back"],
    ["steer", "idle", "back"],
    ["queue", "running", "back"],
    ["reject", "idle", "back"],
    ["interrupt", "idle", "front"],
    ["interrupt", "running", "front"],
  ] as const)("G5: a %s that arrives when the lane is %s goes to the %s", (delivery, phase, place) => {
    const live = fold(created, accepted("run_a"), started("run_a"));
    const lanes = { idle: fold(created), running: live, parked: evolve(live, parked("run_a")) };
    expect(placeFor(lanes[phase], delivery)).toBe(place);
  });

  test("interrupts at the front are counted up to the first run that is not one", () => {
    const queue = (...deliveries: readonly Delivery[]) =>
      deliveries.map((delivery, index) => ({
        id: `run_${index}` as const,
        prompt: { text: "" },
        delivery,
        acceptedAt: index,
        key: undefined,
        content: undefined,
        bytes: 0,
      }));
    expect(leadingInterrupts([])).toBe(0);
    expect(leadingInterrupts(queue("queue", "interrupt"))).toBe(0);
    expect(leadingInterrupts(queue("interrupt", "interrupt", "queue", "interrupt"))).toBe(2);
    expect(leadingInterrupts(queue("interrupt", "interrupt"))).toBe(2);
  });

  test("a moved run has the index of the event", () => {
    const before = [created, accepted("run_a"), accepted("run_b"), accepted("run_c")];
    for (const [index, order] of [
      [0, ["run_b", "run_a", "run_c"]],
      [1, ["run_a", "run_b", "run_c"]],
      [2, ["run_a", "run_c", "run_b"]],
    ] as const) {
      const lane = fold(...before, { type: "run.moved", runId: "run_b", index });
      expect(ids(lane.queue)).toEqual(order);
      expect(lane.head).toBe(5);
    }
  });

  test("a steered run waits behind earlier steers, and a requeued one where its acceptance puts it", () => {
    const lane = fold(
      created,
      accepted("run_a"),
      started("run_a"),
      accepted("run_b"),
      accepted("run_s", "steer"),
      accepted("run_c"),
      { type: "run.steered", runId: "run_b" },
    );
    expect(lane).toMatchObject({ head: 7, queue: [{ id: "run_c" }] });
    expect(new Set(ids(lane.steers))).toEqual(new Set(["run_b", "run_s"]));
    const back = evolve(evolve(lane, { type: "run.requeued", runId: "run_s" }), {
      type: "run.requeued",
      runId: "run_b",
    });
    expect(back).toMatchObject({ head: 9, steers: [] });
    expect(ids(back.queue)).toEqual(["run_b", "run_s", "run_c"]);
  });

  test("a requeued run goes behind interrupts, even later ones", () => {
    const lane = fold(
      created,
      accepted("run_a"),
      started("run_a"),
      accepted("run_s", "steer"),
      accepted("run_c"),
      accepted("run_i", "interrupt"),
      settled("run_a"),
      { type: "run.requeued", runId: "run_s" },
    );
    expect(ids(lane.queue)).toEqual(["run_i", "run_s", "run_c"]);
  });

  test("a requeued run that was accepted last goes to the end", () => {
    const lane = fold(
      created,
      accepted("run_a"),
      started("run_a"),
      accepted("run_b"),
      accepted("run_s", "steer"),
      settled("run_a"),
      { type: "run.requeued", runId: "run_s" },
    );
    expect(ids(lane.queue)).toEqual(["run_b", "run_s"]);
  });

  test("taking in a steer is two events; the first gives its text to the live run", () => {
    const lane = fold(created, accepted("run_a"), started("run_a"), accepted("run_s", "steer"));
    const event: Event = { type: "run.taken", runId: "run_s", into: "run_a", turnId: "turn_a.1" };
    expect(evolve(lane, event)).toEqual({ ...lane, head: 5, live: { ...lane.live, taken: [{ text: "hello" }] } });
  });
});

describe("the live run", () => {
  test("a started run leaves the queue and is live, and owns nothing yet", () => {
    const lane = fold(created, accepted("run_a"), accepted("run_b"), started("run_a"));
    expect(ids(lane.queue)).toEqual(["run_b"]);
    expect(lane.live).toEqual({
      phase: "running",
      id: "run_a",
      prompt: { text: "hello" },
      acceptedAt: 2,
      key: undefined,
      content: undefined,
      attempt: 1,
      recoveries: 0,
      textChars: 0,
      taken: [],
      turns: 0,
      calls: 0,
      turn: undefined,
      live: [],
      questions: [],
      asked: 0,
      spent: { inputTokens: 0, outputTokens: 0, estimated: false },
      meter: undefined,
    });
  });

  test("its events change it alone, each with its own position in the log", () => {
    const lane = fold(created, accepted("run_a"), accepted("run_b"), started("run_a"), {
      type: "run.cancel_requested",
      runId: "run_a",
      reason: user,
    });
    expect(lane).toMatchObject({ head: 5, live: { phase: "stopping", since: 5 }, queue: [{ id: "run_b" }] });
  });

  test("a settled run is removed, wherever it was", () => {
    const events = [
      created,
      accepted("run_a"),
      started("run_a"),
      accepted("run_b"),
      accepted("run_c"),
      accepted("run_s", "steer"),
      accepted("run_t", "steer"),
    ];
    expect(fold(...events, settled("run_a"))).toMatchObject({ live: undefined, queue: [{}, {}], steers: [{}, {}] });
    const queued = fold(...events, settled("run_b"));
    expect(queued).toMatchObject({ live: { id: "run_a" }, queue: [{ id: "run_c" }], steers: [{}, {}], head: 8 });
    const steered = fold(...events, settled("run_s"));
    expect(steered).toMatchObject({ live: { id: "run_a" }, queue: [{}, {}], steers: [{ id: "run_t" }] });
  });
});

describe("a log that contradicts itself is a bug", () => {
  const events = [created, accepted("run_a"), started("run_a"), accepted("run_b")];
  const granted: Event = {
    type: "question.settled",
    runId: "run_a",
    questionId: "ask_a.1",
    ending: { kind: "allowed", remember: "session" },
  };

  test.each([
    ["starts", started("run_x")],
    ["moves", { type: "run.moved", runId: "run_x", index: 0 }],
    ["steers", { type: "run.steered", runId: "run_x" }],
    ["requeues", { type: "run.requeued", runId: "run_b" }],
  ] satisfies [string, Event][])("if it %s a run which does not wait there", (_, event) => {
    expect(() => fold(...events, event)).toThrow(Bug);
    expect(() => fold(...events, event)).toThrow(/is not waiting where the log says it is$/);
  });

  test("if it refers to the work of a run which is not live", () => {
    const event: Event = { type: "turn.requested", runId: "run_b", turnId: "turn_b.1" };
    expect(() => fold(...events, event)).toThrow(new Bug("run_b is not live in ses_1"));
    expect(() => fold(created, event)).toThrow(new Bug("run_b is not live in ses_1"));
    const allowed: Event = { ...granted, runId: "run_b", questionId: "ask_b.1" };
    for (const past of [events, [created]]) {
      expect(() => fold(...past, allowed)).toThrow(new Bug("run_b is not live in ses_1"));
    }
  });

  test("an approval of a question that was not asked, or is not an approval, grants nothing", () => {
    const owner = "turn_a.1";
    const asked: Event = { type: "question.asked", runId: "run_a", questionId: "ask_a.1", owner, about: plainQuestion };
    expect(fold(...events, granted).grants).toEqual([]);
    expect(fold(...events, asked, granted).grants).toEqual([]);
    expect(fold(...events, { ...asked, about: approval() }, granted).grants).toEqual(["tool"]);
  });
});
