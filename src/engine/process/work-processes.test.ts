// The processes of tools and turns, with scripted children.
import { describe, expect, test } from "vitest";
import { gate, logOf, untilAborted } from "../../../test/fixtures/belay.ts";
import { watch } from "../../../test/fixtures/commit.ts";
import { calls, notes, stage } from "../../../test/fixtures/engine-processes.ts";
import { OUTPUT_TAIL_CHARS, STORE_WAIT_MS } from "../../core/limits.ts";
import { verify, verifyAtRest } from "../../core/read/verify.ts";
import type { LiveCall } from "../../ports/agent.ts";
import type { TurnProcesses } from "../../ports/spawner.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

/** The result of a call, as the `calls` fixture returns it. */
const answerOf = (text: string): unknown => JSON.parse(text).value;

describe("a command that is run", () => {
  test("returns its outcome, its duration, and the end of its output", async () => {
    const { belay, clock, spawner } = await stage({ go: calls((call) => call.processes.run(["make", "all"])) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    expect(child.request).toMatchObject({ command: ["make", "all"], sessionId: session.id });
    child.say("\u001b[31mred\u001b[0m\n");
    child.say("!", "stderr");
    await clock.advance(1_234.4);
    child.exit(2);
    expect(answerOf(await run.text())).toEqual({
      ...{ kind: "ended", processId: child.request.id, outcome: { kind: "completed" }, exit: { code: 2 } },
      durationMs: 1_234,
      output: { bytes: 14, stdoutBytes: 13, stderrBytes: 1, tail: "red\n!", dir: child.output.dir },
    });
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  });

  test.each([
    ["of some pages", "0123456789\n", 4_000],
    ["of a little more than is told", "0123456789\n", 500],
    ["of longer characters", "€uro ☃\n", 4_000],
    ["of pairs", "😀", 4_000],
    ["with colours", "\u001b[32mok\u001b[0m\n", 4_000],
  ])("returns nothing but the end of output %s", async (_, line, lines) => {
    const { belay, spawner } = await stage({ go: calls((call) => call.processes.run("work")) });
    const run = (await belay.createSession()).prompt("go");
    const child = await spawner.next();
    const said = `first words\n${line.repeat(lines)}last words`;
    child.say(said);
    child.exit();
    const { tail } = (answerOf(await run.text()) as { output: { tail: string } }).output;
    const plain = (await child.output.read({ plain: true, bytesMax: said.length * 4 })).text;
    expect(plain.endsWith(tail)).toBe(true);
    expect(tail.length).toBeLessThanOrEqual(OUTPUT_TAIL_CHARS);
    expect(tail.length).toBeGreaterThan(OUTPUT_TAIL_CHARS / 5);
  });

  test("that another program's signal has ended has the signal in its result", async () => {
    const { belay, spawner } = await stage({ go: calls((call) => call.processes.run("work")) });
    const run = (await belay.createSession()).prompt("go");
    (await spawner.next()).die("SIGSEGV");
    const ended = answerOf(await run.text());
    expect(ended).toMatchObject({ outcome: { kind: "completed" }, exit: { signal: "SIGSEGV" } });
    expect(ended).not.toHaveProperty("exit.code");
    expect(ended).not.toHaveProperty("escaped");
  });

  test("that is stopped separately leaves its call running", async () => {
    const { belay, spawner } = await stage({ go: calls((call) => call.processes.run("work")) });
    const run = (await belay.createSession()).prompt("go");
    const child = await spawner.next();
    await belay.cancel(child.request.id, { reason: "enough" });
    expect(answerOf(await run.text())).toMatchObject({
      kind: "ended",
      outcome: { kind: "cancelled", reason: { kind: "user", note: "enough" } },
      exit: { signal: "SIGTERM" },
    });
    expect(await run.outcome).toEqual({ kind: "completed" });
  });

  test("that ends by itself just as its call is stopped has ended, and its tool gets the result", async () => {
    const told: unknown[] = [];
    const { belay, spawner } = await stage({
      go: calls(async (call) => told.push(await call.processes.run("work"))),
    });
    spawner.plan({ whenStopped: "exited" });
    const run = (await belay.createSession()).prompt("go");
    await spawner.next();
    await settled();
    await run.cancel();
    await run.outcome;
    expect(told).toMatchObject([{ kind: "ended", outcome: { kind: "completed" } }]);
  });

  test("that is stopped with its call rejects with the reason, and its output is kept", async () => {
    const told: unknown[] = [];
    let aborted: AbortSignal | undefined;
    const work = async (call: LiveCall): Promise<unknown> => {
      aborted = call.signal;
      return call.processes.run("work").catch((error: unknown) => {
        told.push(error);
        throw error;
      });
    };
    const { belay, spawner } = await stage({ go: calls(work) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    child.say("half");
    await run.cancel();
    await run.outcome;
    expect(told).toEqual([aborted?.reason]);
    expect((await logOf(session)).find(({ type }) => type === "call.settled")).toMatchObject({
      outcome: { kind: "cancelled" },
      result: { processId: child.request.id, exit: { signal: "SIGTERM" }, output: { tail: "half" } },
    });
    expect(child.stops[0]).toBe(1_500);
  });

  test("that is not awaited is not an unhandled rejection when it is refused", async () => {
    const { belay, spawner } = await stage({
      go: calls(async (call) => {
        void call.processes.run("work");
        void call.processes.start("work");
        await settled();
      }),
      turn: async (turn) => {
        void turn.processes.start("work");
        await settled();
        return "done";
      },
    });
    spawner.plan({ refused: "not_started" });
    spawner.plan({ refused: "not_started" });
    spawner.plan({ refused: "not_started" });
    const session = await belay.createSession();
    expect(await session.prompt("go").outcome).toEqual({ kind: "completed" });
    expect(await session.prompt("turn").outcome).toEqual({ kind: "completed" });
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  });

  test("ends with a call that returns without waiting for it", async () => {
    const { belay, spawner } = await stage({
      go: calls(async (call) => {
        await call.processes.start("in the background");
        void call.processes.run("work");
        await spawner.next();
        await spawner.next();
        return "left";
      }),
    });
    const session = await belay.createSession();
    expect(answerOf(await session.prompt("go").text())).toBe("left");
    expect(spawner.children.map(({ alive }) => alive)).toEqual([true, false]);
    const end = (await logOf(session)).find(({ type }) => type === "process.settled");
    expect(end).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "parent" } } });
    expect(verify(await logOf(session))).toEqual([]);
  });
});

test("G19: a call that returns before its command is recorded waits for it, and it is never started", async () => {
  const [begins, returns] = [gate(), gate()];
  const { belay, spawner, store } = await stage({
    go: calls(async (call) => {
      await begins.passed;
      call.processes.run("work").catch(() => undefined);
      await returns.passed;
    }),
  });
  const session = await belay.createSession();
  const run = session.prompt("go");
  await run.accepted;
  await settled();
  const stalled = new Gate();
  store.plan("append", 1, { kind: "delay", until: stalled });
  begins.open();
  await settled();
  const outcome = watch(run.outcome);
  returns.open();
  await settled();
  expect(outcome.is).toBe("waiting");
  stalled.open();
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect(spawner.children).toEqual([]);
  const ends = (await logOf(session)).filter(({ type }) => type === "process.settled" || type === "call.settled");
  expect(ends).toMatchObject([
    { type: "process.settled", outcome: { kind: "cancelled", reason: { kind: "parent" } } },
    { type: "call.settled", outcome: { kind: "completed" } },
  ]);
  expect(verify(await logOf(session))).toEqual([]);
});

describe("a command that outlasts `backgroundAfterMs`", () => {
  const background = (call: LiveCall): Promise<unknown> =>
    call.processes
      .run("serve", { backgroundAfterMs: 100, feedback: "wake" })
      .then((ran) => (ran.kind === "background" ? [ran.kind, ran.process.id] : ran));

  test("runs in the background, and does not end with its call", async () => {
    const moved = gate();
    const { belay, clock, spawner } = await stage({
      go: calls(async (call) => {
        const ran = await background(call);
        moved.open();
        expect(ran).toEqual(["background", spawner.children[0]?.request.id]);
        return untilAborted(call.signal);
      }),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await clock.advance(99);
    expect((await session.processes.list())[0]).toMatchObject({ owner: expect.stringMatching(/^call_/) });
    await clock.advance(1);
    await moved.passed;
    expect(await session.processes.list()).toMatchObject([
      { id: child.request.id, owner: session.id, feedback: "wake", phase: "running" },
    ]);
    await run.cancel();
    await run.outcome;
    expect(child.stops).toEqual([]);
    expect(verify(await logOf(session))).toEqual([]);
  });

  test("reports at the next turn, unless its tool sets another feedback", async () => {
    const { belay, clock, spawner } = await stage({
      go: calls(async (call) => (await call.processes.run("serve", { backgroundAfterMs: 100 })).kind),
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await clock.advance(100);
    expect(answerOf(await run.text())).toBe("background");
    expect(await session.processes.list()).toMatchObject([{ feedback: "next-turn" }]);
    child.exit();
    await settled();
    expect(JSON.parse(await session.prompt("next").text())).toHaveLength(1);
  });

  test("is still awaited if it is being stopped by then", async () => {
    const { belay, clock, spawner } = await stage({ go: calls(background) });
    spawner.plan({ whenStopped: "ignores" });
    const run = (await belay.createSession()).prompt("go");
    const child = await spawner.next();
    await settled();
    const receipt = belay.cancel(child.request.id);
    await clock.advance(100);
    expect(child.alive).toBe(true);
    await clock.advance(1_500);
    await receipt;
    expect(answerOf(await run.text())).toMatchObject({ kind: "ended", outcome: { kind: "cancelled" } });
  });
});

describe("a stop", () => {
  test("G28: of a call reaches its command in the same tick, although the store has stalled", async () => {
    const { belay, spawner, store } = await stage({ go: calls((call) => call.processes.run("work")) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("trouble").outcome.catch(() => {});
    await settled();
    run.cancel().catch(() => {});
    expect(child.signals).toEqual(["SIGTERM"]);
  });

  test("G28: that cannot be recorded reaches a command that is being started, which then never starts", async () => {
    const { belay, spawner, store } = await stage({ go: calls((call) => call.processes.run("work")) });
    const late = new Gate();
    spawner.plan({ startsAfter: late });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await run.accepted;
    await settled();
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("trouble").outcome.catch(() => {});
    await settled();
    run.cancel().catch(() => {});
    late.open();
    await settled();
    expect(spawner.children).toEqual([]);
  });

  test.each(["its request", "another one"])(
    "G11: a command is not started if its call was abandoned while %s was not durable",
    async (what) => {
      const told: unknown[] = [];
      const begins = gate();
      const { belay, clock, spawner, store } = await stage({
        go: calls(async (call) => {
          await begins.passed;
          call.processes.run("work").catch((error: unknown) => told.push(error));
          return new Promise(() => {});
        }),
      });
      const session = await belay.createSession();
      await session.processes.start("in the background");
      const run = session.prompt("go");
      await run.accepted;
      await settled();
      const stalled = new Gate();
      store.plan("append", 1, { kind: "delay", until: stalled });
      if (what === "another one") session.prompt("next");
      await settled();
      begins.open();
      await settled();
      const receipt = run.cancel({ reason: "enough" });
      await clock.advance(STORE_WAIT_MS - 1);
      stalled.open();
      await receipt;
      expect(await run.outcome).toMatchObject({ kind: "cancelled", abandoned: ["shell"] });
      await settled();
      expect(spawner.children.map(({ request }) => request.command)).toEqual(["in the background"]);
      // The tool gets the reason, although its result does not count any more.
      expect(told).toEqual([expect.objectContaining({ reason: { kind: "user", note: "enough" } })]);
      expect(verify(await logOf(session))).toEqual([]);
    },
  );

  test("of a call does not affect a command that has ended", async () => {
    const ran = gate();
    const { belay, spawner } = await stage({
      go: calls(async (call) => {
        await call.processes.run("work");
        ran.open();
        return untilAborted(call.signal);
      }),
    });
    const run = (await belay.createSession()).prompt("go");
    const child = await spawner.next();
    child.exit();
    await ran.passed;
    await run.cancel();
    await run.outcome;
    expect(child.stops).toEqual([]);
  });

  test("G11: a call that was stopped, or has returned, begins nothing", async () => {
    const refusals: unknown[] = [];
    const refuse = (error: unknown): void => void refusals.push(error);
    let kept: LiveCall["processes"] | undefined;
    const { belay, spawner } = await stage({
      go: calls(async (call) => {
        kept = call.processes;
        await untilAborted(call.signal).catch(() => undefined);
        await call.processes.run("work").catch(refuse);
        await call.processes.start("work").catch(refuse);
      }),
      short: calls(async (call) => {
        kept = call.processes;
      }),
      wait: (turn) => untilAborted(turn.signal),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await run.accepted;
    await settled();
    await run.cancel();
    await run.outcome;
    await session.prompt("short").outcome;
    await kept?.run("work").catch(refuse);
    await kept?.start("work").catch(refuse);
    const busy = expect.objectContaining({ code: "busy", message: "This call begins nothing new." });
    expect(refusals).toEqual([busy, busy, busy, busy]);
    expect(spawner.children).toEqual([]);
  });
});

describe("an interrupt that is not recorded yet", () => {
  test("prevents the run that it ends from beginning anything", async () => {
    const refusals: unknown[] = [];
    const refuse = (error: unknown): void => void refusals.push(error);
    const begins = gate();
    const { belay, spawner, store } = await stage({
      go: async (turn) => {
        await turn.call("shell", {}, async (call) => {
          await begins.passed;
          void call.processes.start("work").catch(refuse);
          void turn.processes.start("work").catch(refuse);
          return untilAborted(call.signal);
        });
        return "never";
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await run.accepted;
    await settled();
    const stalled = new Gate();
    store.plan("append", 1, { kind: "delay", until: stalled });
    const next = session.prompt("next", { delivery: "interrupt" });
    await settled();
    begins.open();
    await settled();
    stalled.open();
    expect(await next.outcome).toEqual({ kind: "completed" });
    const busy = (what: RegExp): unknown =>
      expect.objectContaining({ code: "busy", message: expect.stringMatching(what) });
    expect(refusals).toEqual([busy(/^call_.* begins nothing new\.$/), busy(/^turn_.* begins nothing new\.$/)]);
    expect(spawner.children).toEqual([]);
  });

  test("stops nothing, whatever else is decided, until it is durable", async () => {
    const { belay, spawner, store } = await stage({ go: calls((call) => call.processes.run("work")) });
    const session = await belay.createSession();
    const other = await session.processes.start("other");
    await spawner.next();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    const stalled = new Gate();
    store.plan("append", 1, { kind: "delay", until: stalled });
    const next = session.prompt("next", { delivery: "interrupt" });
    await settled();
    void other.cancel();
    await settled();
    expect(spawner.children.map(({ alive }) => alive)).toEqual([false, true]);
    stalled.open();
    expect(await next.outcome).toEqual({ kind: "completed" });
    expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded" } });
    expect(child.alive).toBe(false);
  });

  test("stops nothing if the store then refuses it", async () => {
    const { belay, spawner, store } = await stage({ go: calls((call) => call.processes.run("work")) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    store.plan("append", 1, { kind: "fail", code: "store_full" });
    const next = session.prompt("next", { delivery: "interrupt" });
    await expect(next.accepted).rejects.toMatchObject({ code: "store_full" });
    expect(child.stops).toEqual([]);
    child.exit();
    expect(await run.outcome).toEqual({ kind: "completed" });
  });
});

describe("a process that is started", () => {
  test("by a tool or a turn belongs to the session, and reports at the next turn by default", async () => {
    const start = async (processes: TurnProcesses): Promise<string> => {
      const plain = await processes.start("work");
      const loud = await processes.start("work", { feedback: "wake" });
      expect([plain.sessionId, plain.info?.id, loud.info?.id]).toEqual([plain.info?.owner, plain.id, loud.id]);
      return "started";
    };
    const { belay } = await stage({
      call: calls((call) => start(call.processes)),
      turn: (turn) => start(turn.processes),
    });
    const session = await belay.createSession();
    expect(answerOf(await session.prompt("call").text())).toBe("started");
    expect(await session.prompt("turn").text()).toBe("started");
    const { id: owner } = session;
    expect(await session.processes.list()).toMatchObject([
      { owner, feedback: "next-turn" },
      { owner, feedback: "wake" },
      { owner, feedback: "next-turn" },
      { owner, feedback: "wake" },
    ]);
  });

  test("by a turn that has ended is refused, with the reason", async () => {
    let kept: TurnProcesses | undefined;
    const { belay } = await stage({
      go: (turn) => {
        kept = turn.processes;
        return "done";
      },
    });
    await (await belay.createSession()).prompt("go").outcome;
    const refused = { code: "busy", message: "This turn begins nothing new." };
    await expect(kept?.start("work")).rejects.toMatchObject(refused);
  });
});

describe("a process is looked up", () => {
  test("by the tools and turns of its session, while it is live and afterwards", async () => {
    const { belay, spawner } = await stage({
      call: calls(async (call) => {
        const [info] = await call.processes.list();
        const found = await call.processes.get(info?.id ?? "");
        return found.info?.title;
      }),
      ended: calls(async (call) => {
        const found = await call.processes.get(spawner.children[0]?.request.id ?? "");
        return [await call.processes.list(), await found.wait()];
      }),
    });
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    expect(answerOf(await session.prompt("call").text())).toBe("work");
    (await spawner.next()).exit();
    const result = await handle.wait();
    expect(answerOf(await session.prompt("ended").text())).toEqual([[], result]);
  });

  test("although the store does not answer, if it is live here", async () => {
    const { belay, store } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    store.always("process", { kind: "fail", code: "unavailable" });
    expect((await session.processes.get(handle.id)).id).toBe(handle.id);
  });

  test("only in its own session, and only by an id of a process", async () => {
    const { belay } = await stage();
    const [one, other] = [await belay.createSession(), await belay.createSession()];
    const { id } = await one.processes.start("work");
    const none = (process: string, session: string): object => ({
      code: "not_found",
      message: `There is no process ${process} in ${session}.`,
      hint: "Use the id that starting it gave back, or list the processes of the session.",
    });
    await expect(other.processes.get(id)).rejects.toMatchObject(none(id, other.id));
    const later = id.replace(/\d+$/, "9");
    await expect(one.processes.get(later)).rejects.toMatchObject(none(later, one.id));
    for (const wrong of ["nonsense", "", 5, undefined]) {
      const refused = { code: "invalid", message: 'The id of a process begins with "proc_".' };
      await expect(one.processes.get(wrong as string)).rejects.toMatchObject(refused);
    }
  });
});
