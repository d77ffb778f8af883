// One turn: its output and when that is recorded, its calls, and what is recorded however it ends.
import { describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted } from "../../../test/fixtures/belay.ts";
import { running } from "../../../test/fixtures/commands.ts";
import { eventsOf, live, testEngine } from "../../../test/fixtures/engine.ts";
import { EXTEND_EVERY_MS, TURN_CHARS_MAX } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Agent, Turn, TurnResult } from "../../ports/agent.ts";
import type { BelayOptions } from "../../sdk/belay-options.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { faultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { given } from "../../testing/given.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { scriptedSpawner } from "../../testing/scripted-spawner.ts";
import { SessionState } from "../log/session-state.ts";
import type { LoopWatch } from "../loop-watch.ts";
import { LoopBudget } from "../yield-gate.ts";
import { LiveTurn } from "./live-turn.ts";
import type { WorkHost } from "./run-work.ts";

type Of<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;

/** A run whose turns do this. */
async function run(agent: Agent, options: Partial<BelayOptions> = {}) {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  // The follower subscribes before the turn begins.
  const begun: Agent = async (turn) => {
    await settled();
    return agent(turn);
  };
  const { belay, notices } = await openTestBelay({}, { agent: begun, clock, store, graceMs: 1_000, ...options });
  const session = await belay.createSession();
  const heard: Delta[] = [];
  const stop = new AbortController();
  const listening = (async () => {
    for await (const event of session.events({ deltas: "with", signal: stop.signal }))
      if (event.type === "delta") heard.push(event);
  })();
  const started = session.prompt("go");
  for (let round = 0; round < 3; round += 1) await settled();
  const events = async <T extends Recorded["type"]>(type: T): Promise<readonly Of<T>[]> =>
    (await logOf(session)).filter((event): event is Of<T> => event.type === type);
  /** The deltas of its output that followers received. */
  const deltas = async (): Promise<readonly Delta[]> => {
    await settled();
    stop.abort();
    await listening;
    return heard;
  };
  return { belay, clock, store, notices, session, run: started, events, deltas };
}

test("G33: a turn that is stopped while it waits for the event loop is not watched as live", async () => {
  const watched = new Set<unknown>();
  const watch = {
    began: (work: unknown) => void watched.add(work),
    ended: (work: unknown) => void watched.delete(work),
    entered: () => {},
  };
  let begun = 0;
  const host = {
    agent: () => {
      begun += 1;
    },
    budget: new LoopBudget(manualClock(), watch as unknown as LoopWatch),
    ...{ drive: { ended: () => false }, notify: () => {} },
  } as unknown as WorkHost;
  const run = given(...running("run_1")).lane.live;
  if (run === undefined) throw new Error("There is no live run.");
  const turn = new LiveTurn(host, new SessionState("ses_1"), run, "turn_1.1");
  turn.scope.cancel({ kind: "user" });
  turn.begin();
  for (let round = 0; round < 3; round += 1) await new Promise<void>((resolve) => void setImmediate(resolve));
  expect([begun, watched.size]).toEqual([0, 0]);
});

describe("the output of a turn", () => {
  test("must be a string, of one of the two kinds", async () => {
    const refusals: string[] = [];
    const refused = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        refusals.push((error as Error).message);
      }
    };
    const one = await run((turn) => {
      refused(() => turn.emit(7 as never));
      refused(() => turn.emit("x", "shout" as never));
      refused(() => turn.meter("x" as never));
    });
    expect(await one.run.text()).toBe("");
    expect(refusals).toEqual([
      "emit() takes a string.",
      'emit() takes "text" or "reasoning" as its kind.',
      "meter() takes a function.",
    ]);
  });

  test("has its position in its kind, and reasoning is not part of the answer", async () => {
    const one = await run(({ emit }) => {
      emit("ab");
      emit("thinking", "reasoning");
      emit("cde", "text");
      emit("on", "reasoning");
      emit("\ud800");
    });
    expect(await one.run.text()).toBe("abcde\ufffd");
    const told = (await one.deltas()).map((delta) => ("text" in delta ? [delta.text, delta.from, delta] : []));
    expect(told.map(([text, from]) => [text, from])).toEqual([
      ["ab", 0],
      ["thinking", 0],
      ["cde", 2],
      ["on", 8],
      ["\ufffd", 5],
    ]);
    expect(told.map(([, , delta]) => (delta as { kind?: string }).kind)).toEqual([
      ...[undefined, "reasoning", undefined, "reasoning", undefined],
    ]);
  });

  test("has whole characters, for followers and in the log, even around a call", async () => {
    const one = await run(async (turn) => {
      turn.emit("a\ud83d");
      turn.emit("", "text");
      turn.emit("\ud83d", "reasoning");
      await turn.call("look", null, () => null);
      turn.emit("\ude00b");
      turn.emit("\ude01c", "reasoning");
      turn.emit("\ud83d");
      turn.emit("\ud83d");
      turn.emit("\ude02");
    });
    expect(await one.run.text()).toBe("a\u{1f600}b\ufffd\u{1f602}");
    expect((await one.events("turn.extended")).map(({ text }) => text)).toEqual(["a"]);
    expect((await one.deltas()).map((delta) => "text" in delta && [delta.text, delta.from])).toEqual([
      ...[
        ["a", 0],
        ["\u{1f600}b", 1],
        ["\u{1f601}c", 0],
        ["\ufffd", 4],
        ["\u{1f602}", 5],
      ],
    ]);
  });

  test("has a replacement character for a lone surrogate, whichever way the turn ends", async () => {
    for (const ends of ["well", "badly", "stopped"]) {
      const one = await run(async ({ emit, signal }) => {
        emit("x\ud83d");
        emit("y\ud83d", "reasoning");
        if (ends === "badly") throw new Error("broken");
        if (ends === "stopped") await untilAborted(signal);
      });
      if (ends === "stopped") await one.run.cancel();
      await one.run.outcome;
      expect((await one.events("turn.settled"))[0]?.text).toBe("x\ufffd");
      expect((await one.deltas()).map((delta) => "text" in delta && [delta.text, delta.from])).toEqual([
        ...[
          ["x", 0],
          ["y", 0],
          ["\ufffd", 1],
          ["\ufffd", 1],
        ],
      ]);
      expect(one.clock.pending.map(({ inMs }) => inMs)).not.toContain(EXTEND_EVERY_MS);
    }
  });

  test("is counted once when the limit splits a surrogate pair", async () => {
    const one = await run(({ emit }) => {
      emit(`${"x".repeat(TURN_CHARS_MAX - 1)}\ud83d`);
      emit("\ude00more");
      emit("\ud83d");
    });
    expect((await one.run.text()).slice(TURN_CHARS_MAX - 1)).toBe("\ufffd\n[6 more characters were not kept]");
  });

  test("is kept up to a limit, with a note of the number of omitted characters", async () => {
    const one = await run(({ emit }) => {
      emit("x".repeat(TURN_CHARS_MAX - 1));
      emit("yz!");
      emit("more");
    });
    expect((await one.run.text()).slice(TURN_CHARS_MAX - 2)).toBe("xy\n[6 more characters were not kept]");
    const whole = await run(({ emit }) => emit("x".repeat(TURN_CHARS_MAX)));
    expect(await whole.run.text()).toBe("x".repeat(TURN_CHARS_MAX));
    expect((await one.deltas()).map((delta) => "from" in delta && delta.from).slice(-2)).toEqual([
      ...[TURN_CHARS_MAX - 1, TURN_CHARS_MAX + 2],
    ]);
  });

  test("is kept if the turn fails, with that note, and without a lone surrogate", async () => {
    const one = await run(({ emit }) => {
      emit("x".repeat(TURN_CHARS_MAX - 1));
      emit("\u{1f600}more");
      throw new Error("broken");
    });
    expect(await one.run.outcome).toMatchObject({ kind: "failed", message: "broken" });
    const [end] = await one.events("turn.settled");
    expect(end?.text?.slice(TURN_CHARS_MAX - 1)).toBe("\ufffd\n[5 more characters were not kept]");
  });

  test("is dropped after the turn has ended", async () => {
    let late: Turn | undefined;
    const one = await run((turn) => {
      late = turn;
      turn.emit("in time");
    });
    await one.run.outcome;
    late?.emit("too late");
    expect((await one.deltas()).map((delta) => "text" in delta && delta.text)).toEqual(["in time"]);
    expect(one.clock.pending.map(({ inMs }) => inMs)).not.toContain(EXTEND_EVERY_MS);
  });

  test("is kept while the turn is being stopped", async () => {
    const one = await run(async ({ emit, signal }) => {
      await untilAborted(signal).catch(() => {});
      emit("last words");
    });
    await one.run.cancel();
    await one.run.outcome;
    expect(await one.run.text()).toBe("last words");
  });
});

describe("while a turn is live, its output is recorded", () => {
  const talking = async (options: Partial<BelayOptions> = {}) => {
    let turn: Turn | undefined;
    const end = Promise.withResolvers<TurnResult>();
    const one = await run((given) => {
      turn = given;
      return end.promise;
    }, options);
    const pieces = async (): Promise<readonly string[]> => (await one.events("turn.extended")).map(({ text }) => text);
    return { ...one, emit: (text: string) => turn?.emit(text), turn: () => turn, end, pieces };
  };

  test("at intervals, each piece once, and nothing without output", async () => {
    const { clock, emit, pieces } = await talking();
    emit("");
    await clock.advance(10_000);
    expect(await pieces()).toEqual([]);
    emit("one ");
    await clock.advance(EXTEND_EVERY_MS - 1);
    emit("two ");
    expect(await pieces()).toEqual([]);
    await clock.advance(1);
    expect(await pieces()).toEqual(["one two "]);
    await clock.advance(10_000);
    emit("three");
    await clock.advance(EXTEND_EVERY_MS);
    expect(await pieces()).toEqual(["one two ", "three"]);
  });

  test("with its cost so far, if its meter returns it", async () => {
    const { clock, emit, events, turn } = await talking();
    const usage = { inputTokens: 3, outputTokens: 4, estimated: true };
    emit("one");
    await clock.advance(EXTEND_EVERY_MS);
    turn()?.meter(() => ({ usage }));
    emit("two");
    await clock.advance(EXTEND_EVERY_MS);
    turn()?.meter(() => {
      throw new Error("no idea");
    });
    emit("three");
    await clock.advance(EXTEND_EVERY_MS);
    expect((await events("turn.extended")).map((event) => ("usage" in event ? event.usage : "none"))).toEqual([
      ...["none", usage, "none"],
    ]);
  });

  test("G28: with the next piece if a failing store refuses one", async () => {
    const { clock, store, emit, pieces } = await talking();
    emit("one ");
    store.plan("append", 1, { kind: "fail", code: "store_full" });
    await clock.advance(EXTEND_EVERY_MS);
    expect(await pieces()).toEqual([]);
    emit("two");
    await clock.advance(EXTEND_EVERY_MS);
    expect(await pieces()).toEqual(["one two"]);
  });

  test("before the calls that come after it", async () => {
    const { emit, turn, session } = await talking();
    emit("I will look. ");
    await turn()?.call("look", null, () => null);
    const types = (await logOf(session)).map(({ type }) => type);
    expect(types.slice(-3)).toEqual(["turn.extended", "call.requested", "call.settled"]);
  });

  test("and no more once it has ended, whichever way", async () => {
    for (const ends of ["well", "badly"]) {
      const { clock, emit, end, run: started, pieces } = await talking();
      emit("said");
      if (ends === "well") end.resolve({});
      else end.reject(new Error("broken"));
      await started.outcome;
      expect(clock.pending.map(({ inMs }) => inMs)).not.toContain(EXTEND_EVERY_MS);
      await clock.advance(10_000);
      expect(await pieces()).toEqual([]);
      expect(await started.text()).toBe("said");
    }
  });
});

describe("the end of a turn", () => {
  const ends: readonly (readonly [string, TurnResult | string | undefined, object, object])[] = [
    ["nothing: what it has said", undefined, { text: "said" }, {}],
    ["a text instead of what it has said", "other", { text: "other" }, {}],
    ["by itself", { finish: "stop" }, { text: "said", finish: "stop" }, {}],
    ["for its calls", { finish: "calls" }, { text: "said", finish: "calls" }, {}],
    ["at its limit", { finish: "length" }, { text: "said", finish: "length" }, { finish: "length" }],
    ["with a refusal", { text: "", finish: "refusal" }, { text: "", finish: "refusal" }, { finish: "refusal" }],
    [
      "with what it has cost, and in pieces",
      { usage: { inputTokens: 1, outputTokens: 2, estimated: false }, parts: [{ kind: "text", text: "said" }] },
      {
        text: "said",
        usage: { inputTokens: 1, outputTokens: 2, estimated: false },
        parts: [{ kind: "text", text: "said" }],
      },
      {},
    ],
    ["with half a character", { text: "\ud800" }, { text: "\ufffd" }, {}],
    [
      "with more than is kept, cut in the middle of a character",
      { text: `${"x".repeat(TURN_CHARS_MAX - 1)}\u{1f600}` },
      { text: `${"x".repeat(TURN_CHARS_MAX - 1)}\ufffd\n[1 more characters were not kept]` },
      {},
    ],
    [
      "with more than is kept, and that is said",
      "x".repeat(TURN_CHARS_MAX + 7),
      { text: `${"x".repeat(TURN_CHARS_MAX)}\n[7 more characters were not kept]` },
      {},
    ],
    ["with as much as is kept", "x".repeat(TURN_CHARS_MAX), { text: "x".repeat(TURN_CHARS_MAX) }, {}],
  ];
  test.each(ends)("%s", async (_, result, recorded, outcome) => {
    const one = await run(({ emit }) => {
      emit("said");
      return result;
    });
    expect(await one.run.outcome).toEqual({ kind: "completed", ...outcome });
    const [{ seq: _seq, at: _at, runId: _run, turnId: _turn, ...end } = {} as Of<"turn.settled">] =
      await one.events("turn.settled");
    expect(end).toEqual({ type: "turn.settled", outcome: { kind: "completed", ...outcome }, next: "end", ...recorded });
  });

  test("has no finish if another turn follows, whatever the model's finish is", async () => {
    const one = await run(({ spent }) => (spent.turns === 0 ? { next: "turn", finish: "length" } : "done"));
    expect(await one.run.outcome).toEqual({ kind: "completed" });
    const [first] = await one.events("turn.settled");
    expect(first).toMatchObject({ outcome: { kind: "completed" }, next: "turn", finish: "length" });
    expect(first?.outcome).not.toHaveProperty("finish");
  });

  test("has the meter's values if it has no result", async () => {
    const usage = { inputTokens: 5, outputTokens: 6, estimated: true };
    const fails = await run(({ emit, meter }) => {
      meter(() => ({ usage, parts: [{ kind: "text", text: "said" }] }));
      emit("said");
      throw new Error("broken");
    });
    await fails.run.outcome;
    expect((await fails.events("turn.settled"))[0]).toMatchObject({
      ...{ outcome: { kind: "failed", code: "error", message: "broken" }, next: "end", text: "said", usage },
      parts: [{ kind: "text", text: "said" }],
    });
    const none = await run(() => Promise.reject(new Error("broken")));
    await none.run.outcome;
    expect((await none.events("turn.settled"))[0]).not.toHaveProperty("usage");
  });

  test("differs for a turn that never began and one that ignored its stop", async () => {
    const deaf = await run(() => new Promise(() => {}));
    const receipt = deaf.run.cancel({ waitMs: 0 });
    await deaf.clock.advance(1_000);
    await receipt;
    const abandoned = { kind: "cancelled", reason: { kind: "user" }, abandoned: ["turn"] };
    expect(await deaf.run.outcome).toEqual(abandoned);
    expect((await deaf.events("turn.settled"))[0]?.outcome).toEqual(abandoned);
    const one = await run(() => "done");
    await one.run.outcome;
    const unbegun = one.session.prompt("again");
    const stopped = unbegun.cancel();
    expect(await unbegun.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    await stopped;
  });
});

describe("the calls of a turn", () => {
  test("have unique ids, even in one tick, and across turns", async () => {
    const ids: string[] = [];
    const one = await run(async (turn) => {
      const calls = ["a", "b"].map((name) => turn.call(name, null, () => null));
      for (const call of calls) ids.push((await call).callId);
      if (turn.spent.turns > 0) return "done";
      return {
        calls: ["c", "d"].map((name) => ({ name, input: null, execute: ({ callId }) => void ids.push(callId) })),
      };
    });
    await one.run.outcome;
    const suffix = one.run.id.slice("run_".length);
    expect(ids).toEqual([1, 2, 3, 4, 5, 6].map((number) => `call_${suffix}.${number}`));
    expect((await one.events("turn.settled"))[1]).not.toHaveProperty("calls");
  });

  test("are cancelled before they begin once the turn was stopped, with its reason", async () => {
    const begun: string[] = [];
    const results: unknown[] = [];
    const one = await run(async (turn) => {
      await untilAborted(turn.signal).catch(() => {});
      results.push(await turn.call("late", null, () => void begun.push("late")));
    });
    await one.run.cancel({ reason: "enough" });
    await one.run.outcome;
    const reason = { kind: "user", note: "enough" };
    const callId = expect.stringMatching(/^call_/);
    const stopped = { kind: "cancelled", callId, reason, begun: false };
    expect(results).toEqual([{ ...stopped, partial: undefined, abandoned: false }]);
    expect(begun).toEqual([]);
    expect(await one.events("call.requested")).toEqual([]);
  });

  test("are cancelled before they begin even by an interrupt that is not durable yet", async () => {
    let turn: Turn | undefined;
    const one = await run((given) => {
      turn = given;
      return untilAborted(given.signal);
    });
    const stalled = new Gate();
    one.store.always("append", { kind: "delay", until: stalled });
    const urgent = one.session.prompt("urgent", { delivery: "interrupt" });
    await settled();
    expect(turn?.signal.aborted).toBe(false);
    expect(await turn?.call("late", null, () => null)).toMatchObject({
      ...{ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } },
    });
    stalled.open();
    await one.run.outcome;
    expect((await one.events("turn.settled"))[0]?.outcome).toEqual({
      ...{ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } },
    });
  });

  test("G25: that ended before a crash return their recorded results, unless `again` is `begin`", async () => {
    const store = new MemoryStore({ clock: manualClock() });
    store.close = async () => {};
    const begun: string[] = [];
    let lives = 1;
    const agent: Agent = async (turn) => {
      for (const again of ["recorded", "begin"] as const) {
        await turn.call(again, null, () => void begun.push(`${again} ${lives}`), { again });
      }
      return lives === 1 ? untilAborted(turn.signal) : "done";
    };
    const first = await run(agent, { store });
    first.run.outcome.catch(() => {});
    await expect.poll(() => begun).toEqual(["recorded 1", "begin 1"]);
    await first.belay.close();
    lives = 2;
    const second = await openTestBelay({}, { agent, store });
    expect(await (await second.belay.run(first.run.id)).text()).toBe("done");
    expect(begun).toEqual(["recorded 1", "begin 1", "begin 2"]);
  });

  test("G25: that an earlier turn had made too are made again by each turn, even after a crash", async () => {
    const store = new MemoryStore({ clock: manualClock() });
    store.close = async () => {};
    const found: unknown[] = [];
    let looks = 0;
    let lives = 1;
    const agent: Agent = async (turn) => {
      const look = await turn.call("look", null, () => ++looks);
      found.push(look.kind === "completed" ? look.value : look.kind);
      if (found.length === 2 && lives === 1) return untilAborted(turn.signal);
      return found.length < 4 ? { next: "turn" } : "done";
    };
    const first = await run(agent, { store });
    first.run.outcome.catch(() => {});
    await expect.poll(() => found).toEqual([1, 2]);
    await first.belay.close();
    lives = 2;
    const second = await openTestBelay({}, { agent, store });
    expect(await (await second.belay.run(first.run.id)).text()).toContain("done");
    // The turn that was cut off gets its earlier results again; the next one begins new calls.
    expect(found).toEqual([1, 2, 2, 3]);
  });

  test("are refused once the turn has ended", async () => {
    let late: Turn | undefined;
    const goOn = gate();
    const one = await run(async (turn) => {
      if (turn.prompt.text === "next") await goOn.passed;
      else late = turn;
    });
    await one.run.outcome;
    const next = one.session.prompt("next");
    for (let round = 0; round < 4; round += 1) await settled();
    // The run that is live now does not matter here.
    next.cancel().catch(() => {});
    await settled();
    await expect(late?.call("late", null, () => null)).rejects.toMatchObject({
      code: "busy",
      message: `${late?.turnId} has ended and begins no new calls.`,
    });
    goOn.open();
  });
});

test("a turn that has ended starts no process, although it was not stopped", async () => {
  const spawner = scriptedSpawner({ clock: manualClock() });
  let late: Turn | undefined;
  const one = await run(
    async (turn) => {
      late = turn;
      await turn.processes.start("in time");
    },
    { processes: { spawner } },
  );
  await one.run.outcome;
  await expect(late?.processes.start("too late")).rejects.toThrow("This turn begins nothing new.");
  expect(spawner.children).toHaveLength(1);
});

describe("the steers of a run", () => {
  test("G5: first those taken in with the turn, then later ones, each once", async () => {
    const first = gate();
    const second = gate();
    const taken: string[][] = [];
    const one = await run(async (turn) => {
      const take = async (): Promise<void> => void taken.push((await turn.takeSteers()).map(({ text }) => text));
      if (turn.spent.turns === 0) {
        await first.passed;
        return { next: "turn" };
      }
      await second.passed;
      await take();
      await take();
      return "done";
    });
    await one.session.prompt("before the turn", { delivery: "steer" }).accepted;
    first.open();
    await settled();
    await one.session.prompt("in the turn", { delivery: "steer" }).accepted;
    second.open();
    await one.run.outcome;
    expect(taken).toEqual([["before the turn", "in the turn"], []]);
  });
});

test("G17: a piece of text whose answer was lost is in the log once, even if the turn is then cut off", async () => {
  const here = testEngine();
  await here.engine.start();
  const { sessionId, turn } = await live(here);
  turn.say("one ");
  here.store.plan("append", 1, { kind: "lose-answer" });
  await here.clock.advance(EXTEND_EVERY_MS);
  turn.say("two");
  await here.clock.advance(EXTEND_EVERY_MS);
  const pieces = (await eventsOf(here, sessionId)).flatMap((event) =>
    event.type === "turn.extended" ? event.text : [],
  );
  expect(pieces).toEqual(["one ", "two"]);
});
