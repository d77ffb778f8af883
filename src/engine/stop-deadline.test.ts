// One deadline for each stop: covered work has the grace period to stop, and its processes 400 ms more to end. A
// process that still exists then is named as dying, belongs to the session, and is recorded when it has ended.
import { describe, expect, test } from "vitest";
import { gate, logOf, untilAborted } from "../../test/fixtures/belay.ts";
import { calls, notes, stage } from "../../test/fixtures/engine-processes.ts";
import { DEATH_MS } from "../core/limits.ts";
import { verifyAtRest } from "../core/read/verify.ts";
import type { LiveCall, Turn } from "../ports/agent.ts";
import { settled } from "../testing/manual-clock.ts";

const GRACE_MS = 1_500;
const reason = { kind: "user" } as const;

/** A command whose end takes 700 ms to be verified, in a run that is stopped; and the outcome. */
async function stoppedWithLateDeath() {
  const { belay, clock, spawner } = await stage({ go: calls((call) => call.processes.run("large")), notes });
  const session = await belay.createSession();
  spawner.plan({ whenStopped: "ignores", deathVerified: { afterMs: 700 } });
  const run = session.prompt("go");
  const child = await spawner.next();
  void run.cancel();
  await clock.advance(GRACE_MS + DEATH_MS);
  return { belay, session, clock, spawner, run, child, outcome: await run.outcome };
}

describe("a process that has not ended at the deadline", () => {
  test("G12, G15: is named as dying by the outcome, and its tool is not reported as abandoned", async () => {
    const { child, outcome } = await stoppedWithLateDeath();
    expect(child.alive).toBe(true);
    expect(outcome).toEqual({ kind: "cancelled", reason, dying: [child.request.id] });
  });

  test("G15: is settled when the kernel reports its end, and not before", async () => {
    const { session, clock, child } = await stoppedWithLateDeath();
    const settledNow = async () => (await logOf(session)).filter(({ type }) => type === "process.settled");
    expect(await settledNow()).toEqual([]);
    await clock.advance(700 - DEATH_MS);
    expect(child.alive).toBe(false);
    expect(await settledNow()).toMatchObject([{ outcome: { kind: "cancelled", reason }, exit: { signal: "SIGKILL" } }]);
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  });

  test("G22: is not fed back to the model, and begins no run", async () => {
    const { session, clock } = await stoppedWithLateDeath();
    await clock.advance(1_000);
    await settled();
    expect((await logOf(session)).filter(({ type }) => type === "run.accepted" || type === "inbox.added")).toHaveLength(
      1,
    );
    expect(await session.prompt("notes").text()).toBe("[]");
  });

  test("G12: does not block its session, and the next stop covers it", async () => {
    const { session, child } = await stoppedWithLateDeath();
    expect(await session.prompt("again").outcome).toEqual({ kind: "completed" });
    expect(await session.cancel()).toMatchObject({
      kind: "stopping",
      runs: [],
      processes: [{ processId: child.request.id }],
    });
  });

  test("of a call that returned: the call has its result, and the process belongs to the session", async () => {
    const { belay, clock, spawner } = await stage({
      go: calls(async (call) => {
        void call.processes.run("left behind").catch(() => {});
        await spawner.next();
        return "done";
      }),
    });
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores", deathVerified: "never" });
    const run = session.prompt("go");
    await settled();
    await clock.advance(GRACE_MS + DEATH_MS);
    expect(JSON.parse(await run.text())).toMatchObject({ kind: "completed", value: "done" });
    expect(await session.processes.list()).toMatchObject([
      { owner: session.id, phase: "stopping", feedback: "silent" },
    ]);
    spawner.children[0]?.verifyDeath();
    await settled();
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  });
});

describe("G12: the work reported as abandoned", () => {
  test("is not a cooperative agent whose call is recorded 300 ms late; its last text is kept", async () => {
    const { belay, clock, store } = await stage({
      go: async (turn: Turn) => {
        await turn.call("deaf", {}, () => new Promise(() => {}));
        return "my last words";
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await run.accepted;
    await settled();
    store.trouble = { kind: "slow", commitMs: 300, clock };
    void run.cancel();
    await clock.advance(GRACE_MS + 300 + 300 + 300);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason, abandoned: ["deaf"] });
    expect(await run.text()).toBe("my last words");
  });

  test("is not a tool whose process ended in time, but was recorded late", async () => {
    const { belay, clock, spawner, store } = await stage({ go: calls((call) => call.processes.run("work")) });
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores" });
    const run = session.prompt("go");
    await spawner.next();
    await settled();
    store.trouble = { kind: "slow", commitMs: 600, clock };
    void run.cancel();
    await clock.advance(GRACE_MS + 4 * 600);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason });
  });

  test("is a turn that ignores its call's end, soon after that end", async () => {
    const { belay, clock, spawner } = await stage({
      go: async (turn: Turn) => {
        void turn.call("shell", {}, async (call) => void (await call.processes.run("large")));
        return new Promise<string>(() => {});
      },
    });
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores", deathVerified: "never" });
    const run = session.prompt("go");
    const child = await spawner.next();
    void run.cancel();
    await clock.advance(GRACE_MS + 500);
    expect(await run.outcome).toMatchObject({ abandoned: ["turn"], dying: [child.request.id] });
  });
});

describe("G12: grace periods", () => {
  test("interruptible: false gives the call's command three quarters of the grace period before SIGTERM", async () => {
    const began = gate();
    const { belay, clock, spawner } = await stage({
      go: async (turn: Turn) => {
        const result = await turn.call(
          "migrate",
          {},
          async (call) => {
            began.open();
            return (await call.processes.run("two steps")).kind;
          },
          { interruptible: false },
        );
        return result.kind;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await began.passed;
    void run.cancel();
    await clock.advance(1_124);
    expect(child.signals).toEqual([]);
    child.say("step 2");
    await clock.advance(1);
    expect(child.signals).toEqual(["SIGTERM"]);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason });
  });

  test.each(["park", "cancel"] as const)("interruptible: false holds at a shutdown (%s)", async (mode) => {
    const began = gate();
    const { belay, clock, spawner } = await stage({
      go: async (turn: Turn) => {
        const migrate = async (call: LiveCall): Promise<string> => {
          began.open();
          return (await call.processes.run("two steps")).kind;
        };
        return (await turn.call("migrate", {}, migrate, { interruptible: false })).kind;
      },
    });
    (await belay.createSession()).prompt("go");
    const child = await spawner.next();
    await began.passed;
    const closed = belay.close({ mode });
    await clock.advance(1_124);
    expect(child.signals).toEqual([]);
    await clock.advance(1);
    expect(child.signals).toEqual(["SIGTERM"]);
    await clock.advance(1_000);
    expect(await closed).toEqual({ unfinished: [] });
  });

  test("interruptible: false: a command that ends within the grace period has ended by itself", async () => {
    const { belay, clock, spawner } = await stage({
      go: async (turn: Turn) =>
        (
          await turn.call("migrate", {}, async (call) => (await call.processes.run("work")).kind, {
            interruptible: false,
          })
        ).kind,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    void run.cancel();
    await clock.advance(1_000);
    child.exit(0);
    await run.outcome;
    const log = await logOf(session);
    expect(log.find(({ type }) => type === "call.settled")).toMatchObject({ outcome: { kind: "completed" } });
    expect(log.find(({ type }) => type === "process.settled")).toMatchObject({ outcome: { kind: "completed" } });
  });

  test.each([
    ["with its call, the shorter: its own", 200, "run", 200],
    ["with its call, the shorter: that of the stop", 9_000, "run", GRACE_MS],
    ["alone, its own", 9_000, "process", 9_000],
  ] as const)("a process that is stopped %s", async (_, graceMs, what, expected) => {
    const { belay, spawner } = await stage({ go: calls((call) => call.processes.run("work", { graceMs })) });
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores" });
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    void (what === "run" ? run.cancel() : belay.cancel(child.request.id, { waitMs: 0 }));
    await settled();
    expect(child.stops[0]).toBe(expected);
  });

  test("G12: a process that was stopped separately does not delay the stop of its run", async () => {
    const { belay, clock, spawner } = await stage({
      go: calls((call) => call.processes.run("work", { graceMs: 30_000 })),
    });
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores" });
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    void belay.cancel(child.request.id, { waitMs: 0 });
    await clock.advance(1_000);
    void session.prompt("more urgent", { delivery: "interrupt" });
    await clock.advance(GRACE_MS);
    expect(child.alive).toBe(false);
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  });

  test("G12: a tool that waits for its signal stops at once, and the stop waits for nothing", async () => {
    const { belay } = await stage({ go: calls((call) => untilAborted(call.signal)) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await run.accepted;
    await settled();
    await run.cancel();
    expect(await run.outcome).toEqual({ kind: "cancelled", reason });
  });
});
