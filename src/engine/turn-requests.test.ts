// The requests of a turn to the engine: what it receives, what it can read, and the results.
import { describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import { live, neighbour, testEngine } from "../../test/fixtures/engine.ts";
import { SUMMARY_CHARS_MAX } from "../core/limits.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Agent, Turn } from "../ports/agent.ts";
import type { BelayOptions } from "../sdk/belay-options.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { sequentialIds } from "../testing/sequential-ids.ts";
import { Engine } from "./engine.ts";

async function stage(agent: Agent, options: Partial<BelayOptions> = {}) {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const { belay } = await openTestBelay({}, { agent, clock, store, graceMs: 1_000, ...options });
  const session = await belay.createSession();
  const run = session.prompt("go");
  for (let round = 0; round < 4; round += 1) await settled();
  return { belay, clock, store, session, run };
}

/** A turn that the test ends. */
async function held() {
  const end = Promise.withResolvers<string | undefined>();
  let turn: Turn | undefined;
  const one = await stage((given) => {
    turn = given;
    return end.promise;
  });
  if (turn === undefined) throw new Error("The turn has not begun.");
  return { ...one, turn: turn as Turn, end: end.resolve };
}

test("a turn receives its ids, its prompt, its grace, and the usage before it", async () => {
  const seen: unknown[] = [];
  const usage = { inputTokens: 3, outputTokens: 4, estimated: false };
  const clock = manualClock();
  const agent: Agent = ({ sessionId, runId, turnId, prompt, attempt, spent, graceMs, cwd, mode, clock: time }) => {
    seen.push({ sessionId, runId, turnId, prompt, attempt, spent, graceMs, cwd, mode, sameClock: time === clock });
    return spent.turns === 0 ? { next: "turn", usage } : "done";
  };
  const { session, run } = await stage(agent, { clock, graceMs: 1_234 });
  await run.outcome;
  const always = { sessionId: session.id, runId: run.id, prompt: { text: "go" }, attempt: 1, graceMs: 1_234 };
  const place = { cwd: undefined, mode: undefined, sameClock: true };
  const turnId = (number: number): string => `turn_${run.id.slice(4)}.${number}`;
  const nothing = { inputTokens: 0, outputTokens: 0, estimated: false };
  expect(seen).toEqual([
    { ...always, ...place, turnId: turnId(1), spent: { ...nothing, turns: 0 } },
    { ...always, ...place, turnId: turnId(2), spent: { ...usage, turns: 1 } },
  ]);
});

describe("the transcript of a turn", () => {
  test("is everything before it, and of the turn itself only the calls it has made", async () => {
    const read: string[][] = [];
    const agent: Agent = async (turn) => {
      const look = async (): Promise<void> =>
        void read.push(
          (await turn.transcript()).map((message) =>
            "text" in message ? `${message.role} ${message.text}` : message.role,
          ),
        );
      turn.emit("thinking aloud");
      await look();
      if (turn.prompt.text === "again") return "done";
      await turn.call("tool", null, () => "x");
      await look();
      return "first";
    };
    const { session, run } = await stage(agent);
    await run.outcome;
    await session.prompt("again").outcome;
    expect(read).toEqual([
      ["user go"],
      ["user go", "assistant thinking aloud", "tool"],
      ["user go", "assistant thinking aloud", "tool", "assistant first", "user again"],
    ]);
  });
});

describe("progress during a call", () => {
  test("is sent to followers unchanged, unless it is not JSON", async () => {
    const heard: unknown[] = [];
    const { session, turn, run } = await held();
    const stop = new AbortController();
    const listening = (async () => {
      for await (const event of session.events({ deltas: "with", signal: stop.signal })) {
        if (event.type === "progress") heard.push(event);
      }
    })();
    await settled();
    const { callId } = await turn.call("tool", null, ({ progress }) => {
      progress({ done: 1 });
      expect(() => progress(Number.NaN)).toThrow("The progress of tool contains NaN, which JSON does not have.");
    });
    await settled();
    stop.abort();
    await listening;
    expect(heard).toEqual([{ type: "progress", runId: run.id, callId, data: { done: 1 } }]);
  });
});

describe("a turn whose session was lost to another worker", () => {
  test("sends no deltas and no progress", async () => {
    const clock = manualClock();
    const turns: Turn[] = [];
    const progress: ((data: Json) => void)[] = [];
    const agent: Agent = async (turn) => {
      turns.push(turn);
      if (turns.length > 1) return new Promise<undefined>(() => {});
      await turn.call("tool", null, (one) => {
        progress.push(one.progress);
        return new Promise(() => {});
      });
      return "done";
    };
    const store = faultyStore(new MemoryStore({ clock }));
    const engine = new Engine({
      ...{ store, clock, ids: sequentialIds(), agent, hooks: {}, notify: () => {} },
      ...{
        graceMs: 60_000,
        liveRunsMax: 1,
        resume: "resume",
        tap: undefined,
        spawner: undefined,
        runLimitMs: undefined,
      },
    });
    await engine.start();
    const { id } = await engine.create(undefined, {});
    await engine.prompt(id, { prompt: { text: "go" }, delivery: "queue", key: undefined }).accepted;
    for (let round = 0; round < 4; round += 1) await settled();
    // The store is silent for so long that the worker gives up its lease; then it recovers, and the run is recovered.
    const well = new Gate();
    for (const verb of ["renew", "claim", "load"] as const) store.always(verb, { kind: "delay", until: well });
    await clock.advance(8_000);
    store.heal();
    well.open();
    await clock.advance(3_000);
    const stop = new AbortController();
    const heard: string[] = [];
    const following = (async () => {
      for await (const event of engine.follow(id, { after: 0, signal: stop.signal, deltas: "with" })) {
        if (event.type === "delta" || event.type === "progress") heard.push(event.type);
      }
    })();
    for (let round = 0; round < 4; round += 1) await settled();
    expect(turns.length).toBeGreaterThan(1);
    turns[0]?.emit("late");
    progress[0]?.("late");
    for (let round = 0; round < 4; round += 1) await settled();
    expect(heard).toEqual([]);
    turns.at(-1)?.emit("in time");
    for (let round = 0; round < 4; round += 1) await settled();
    expect(heard).toEqual(["delta"]);
    stop.abort();
    await following;
  });
});

test("G25: the recorded work of a run is read when its turn is repeated after a crash, and only then", async () => {
  const first = testEngine();
  let reads = 0;
  const read = first.log.read.bind(first.log);
  first.log.read = (...asked) => {
    reads += 1;
    return read(...asked);
  };
  const { sessionId, turn } = await live(first);
  const before = turn.call("build");
  before.complete("built");
  await before.result;
  expect(reads).toBe(0);
  await first.log.release(sessionId, first.engine.worker);
  const house = neighbour(first);
  await house.engine.start();
  const again = await house.agent.nextTurn();
  reads = 0;
  expect(await again.given.call("build", null, () => "built twice")).toMatchObject({ value: "built" });
  expect(reads).toBeGreaterThan(0);
  again.askAgain();
  for (const _ of [1, 2]) {
    const later = await house.agent.nextTurn();
    reads = 0;
    expect(await later.given.call("build", null, () => "anew")).toMatchObject({ value: "anew" });
    expect(reads).toBe(0);
    later.askAgain();
  }
});

describe("a summary", () => {
  test("replaces the conversation before it, cut to its limit on a character boundary", async () => {
    const { turn, session, end, run } = await held();
    for (const none of ["", "  \n", 7]) {
      await expect(turn.compact(none as string)).rejects.toThrow("compact() takes a summary.");
    }
    await turn.compact(`${"x".repeat(SUMMARY_CHARS_MAX - 1)}\u{1f600}`);
    end(undefined);
    await run.outcome;
    const compacted = (await logOf(session)).flatMap((event) => ("summary" in event ? [event.summary] : []));
    expect(compacted).toEqual([`${"x".repeat(SUMMARY_CHARS_MAX - 1)}\ufffd`]);
  });
});

describe("a question of a turn", () => {
  test("gets the answer of a user", async () => {
    const { turn, belay, session } = await held();
    await expect(turn.ask({ text: "" })).rejects.toThrow("A question has a `text`.");
    const answer = turn.ask({ text: "Which?", options: ["this", "that"] });
    await settled();
    const [question] = await session.questions();
    expect(question?.owner).toBe(turn.turnId);
    await belay.questions.answer(question?.id ?? "", "that", { by: "bob" });
    expect(await answer).toEqual({ kind: "answered", value: "that", by: "bob" });
  });
});

test("a refused request that the turn does not await is not an unhandled rejection", async () => {
  const { turn, store, end, run } = await held();
  const refused: unknown[] = [];
  const heed = (reason: unknown): unknown => refused.push(reason);
  process.on("unhandledRejection", heed);
  store.always("append", { kind: "fail", code: "store_full" });
  store.always("read", { kind: "fail", code: "store_full" });
  void turn.takeSteers();
  void turn.transcript();
  void turn.compact("in short");
  void turn.call("tool", null, () => null);
  void turn.ask({ text: "Which?" });
  await settled();
  store.heal();
  void turn.call("", null, () => null);
  void turn.stop("enough");
  await settled();
  process.off("unhandledRejection", heed);
  expect(refused).toEqual([]);
  end(undefined);
  await run.outcome;
});

describe("a turn that stops its own run", () => {
  test("gives its note as the reason, and refuses a note above the limit", async () => {
    const { turn, run, end } = await held();
    await expect(turn.stop("x".repeat(9_999))).rejects.toThrow("A note is a string of at most 4096 characters.");
    await turn.stop("It goes round in circles.");
    expect(turn.signal.aborted).toBe(true);
    end(undefined);
    const reason = { kind: "policy", note: "It goes round in circles." };
    expect(await run.outcome).toEqual({ kind: "cancelled", reason });
  });
});

describe("calls that a turn requests at its end", () => {
  test("are not recorded if its run was stopped before, and no run waits for them", async () => {
    const begun: string[] = [];
    const asked = gate();
    const { session, run, belay } = await stage(async ({ signal }) => {
      asked.open();
      await untilAborted(signal).catch(() => {});
      return { calls: [{ name: "tool", input: null, execute: () => void begun.push("tool") }] };
    });
    await asked.passed;
    await run.cancel();
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    expect(begun).toEqual([]);
    expect((await logOf(session)).map(({ type }) => type)).not.toContain("call.requested");
    expect(await belay.close()).toEqual({ unfinished: [] });
  });

  test("G28: that are cancelled before they are durable end as cancelled, and never begin", async () => {
    const begun: string[] = [];
    const goOn = gate();
    const { store, run, belay, session } = await stage(async ({ spent }) => {
      if (spent.turns > 0) return "done";
      await goOn.passed;
      return { calls: [{ name: "tool", input: null, execute: () => void begun.push("tool") }] };
    });
    const [asked, cancelled] = [new Gate(), new Gate()];
    store.plan("append", 1, { kind: "delay", until: asked });
    store.plan("append", 2, { kind: "delay", until: cancelled });
    goOn.open();
    await settled();
    belay.cancel(`call_${run.id.slice(4)}.1`).catch(() => {});
    await settled();
    asked.open();
    for (let round = 0; round < 4; round += 1) await settled();
    cancelled.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    const ends = (await logOf(session)).flatMap((event) => (event.type === "call.settled" ? [event.outcome] : []));
    expect(ends).toEqual([{ kind: "cancelled", reason: { kind: "user" } }]);
    expect(begun).toEqual([]);
  });

  test("G28: begin once their request is durable, however long that takes", async () => {
    const begun: string[] = [];
    const goOn = gate();
    const { store, run } = await stage(async ({ spent }) => {
      if (spent.turns > 0) return "done";
      await goOn.passed;
      return { calls: [{ name: "tool", input: null, execute: () => void begun.push("tool") }] };
    });
    const stalled = new Gate();
    store.always("append", { kind: "delay", until: stalled });
    goOn.open();
    await settled();
    expect(begun).toEqual([]);
    store.heal();
    stalled.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["tool"]);
  });
});
