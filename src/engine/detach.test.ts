// A command that is moved to the background, and a stop of the run that started it, in every order.
import { expect, test } from "vitest";
import { logOf } from "../../test/fixtures/belay.ts";
import { calls, stage } from "../../test/fixtures/engine-processes.ts";
import { verify, verifyAtRest } from "../core/read/verify.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";

const AFTER_MS = 1_000;

/** A run whose command is moved to the background after a second, and begins a run when it ends. */
async function running() {
  const here = await stage({
    go: calls((call) => call.processes.run("work", { backgroundAfterMs: AFTER_MS, feedback: "wake" })),
  });
  const session = await here.belay.createSession();
  const run = session.prompt("go");
  const child = await here.spawner.next();
  await settled();
  const types = async (): Promise<readonly string[]> => (await logOf(session)).map(({ type }) => type);
  const runs = async (): Promise<number> => (await types()).filter((type) => type === "run.accepted").length;
  const ended = async () => (await logOf(session)).find((event) => event.type === "process.settled");
  return { ...here, session, run, child, types, runs, ended };
}

test.each(["decided and not durable", "recorded"] as const)(
  "G10: a stop of the run does not stop a command whose move to the background is %s, and begins no new run",
  async (moved) => {
    const { clock, store, session, run, child, runs, ended } = await running();
    const stalled = new Gate();
    if (moved === "decided and not durable") store.plan("append", 1, { kind: "delay", until: stalled });
    await clock.advance(AFTER_MS);
    const receipt = run.cancel({ reason: "enough" });
    await settled();
    expect(child.signals).toEqual([]);
    stalled.open();
    // The call may have returned before it was stopped: then it and its run have ended by themselves.
    expect(["stopping", "settled"]).toContain((await receipt).kind);
    await run.outcome;
    await clock.advance(10_000);
    expect(child.signals).toEqual([]);
    expect(await ended()).toBeUndefined();
    expect(await runs()).toBe(1);
    expect(verify(await logOf(session))).toEqual([]);
    // Only its own end is a result, and begins the run.
    child.exit();
    await settled();
    expect(await ended()).toMatchObject({ outcome: { kind: "completed" }, exit: { code: 0 } });
    expect(await runs()).toBe(2);
  },
);

test.each(["not durable", "recorded"] as const)(
  "G9: a command whose run was stopped before it was moved to the background ends with it (the stop is %s)",
  async (stop) => {
    const { clock, store, session, run, child, types, runs, ended } = await running();
    const stalled = new Gate();
    await clock.advance(AFTER_MS - 1);
    if (stop === "not durable") store.plan("append", 1, { kind: "delay", until: stalled });
    const receipt = run.cancel({ reason: "enough" });
    if (stop === "recorded") await settled();
    expect(child.signals).toEqual(["SIGTERM"]);
    await clock.advance(1);
    stalled.open();
    expect(await receipt).toMatchObject({ kind: "stopping" });
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    await settled();
    expect(await ended()).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "user", note: "enough" } } });
    expect(await types()).not.toContain("process.detached");
    expect(await runs()).toBe(1);
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  },
);
