import { expect, test } from "vitest";
import type { ProcessId } from "../core/model/ids.ts";
import { Gate } from "./gate.ts";
import { manualClock, settled } from "./manual-clock.ts";
import { type ChildScript, scriptedSpawner } from "./scripted-spawner.ts";

const request = (id: ProcessId = "proc_1.1") => ({ id, sessionId: "ses_1", command: "true" }) as const;

async function started(script: ChildScript = {}) {
  const clock = manualClock();
  const spawner = scriptedSpawner({ clock });
  spawner.plan(script);
  return { clock, spawner, child: await spawner.spawn(request()) };
}

test("a child that exits was not stopped", async () => {
  const { clock, child } = await started();
  await clock.advance(20);
  child.exit(3);
  expect(await child.ended).toEqual({
    ...{ code: 3, signal: undefined, durationMs: 20 },
    ...{ stopped: false, signals: [], left: 0, escaped: [] },
  });
  expect(child.alive).toBe(false);
  expect(() => child.exit()).toThrow("it has ended");
});

test("a child that crashes reports the signal, and was not stopped", async () => {
  const { child } = await started();
  child.die("SIGSEGV");
  expect(await child.ended).toMatchObject({ code: undefined, signal: "SIGSEGV", stopped: false });
});

test("a child dies of SIGTERM, in the tick in which it is stopped", async () => {
  const { child } = await started();
  child.stop();
  expect(child.alive).toBe(false);
  expect(child.stops).toEqual([1_500]);
  expect(await child.ended).toMatchObject({ signal: "SIGTERM", stopped: true, signals: ["SIGTERM"] });
});

test("a child that ignores SIGTERM is killed after its grace period", async () => {
  const { clock, child } = await started({ whenStopped: "ignores" });
  child.stop(100);
  child.stop(5_000);
  await clock.advance(99);
  expect(child.alive).toBe(true);
  await clock.advance(1);
  expect(await child.ended).toMatchObject({ signal: "SIGKILL", stopped: true, signals: ["SIGTERM", "SIGKILL"] });
  expect(clock.pending).toEqual([]);
});

test("a second stop with a shorter grace period kills it sooner, and without one at once", async () => {
  const { clock, child } = await started({ whenStopped: "ignores" });
  child.stop(1_000);
  child.stop(100);
  await clock.advance(50);
  expect(child.alive).toBe(true);
  child.stop(0);
  expect(child.alive).toBe(false);
  expect(child.stops).toEqual([1_000, 100, 0]);
});

test("a child that ignores SIGTERM can still exit, and was stopped", async () => {
  const { clock, child } = await started({ whenStopped: "ignores" });
  child.stop();
  child.exit(0);
  expect(await child.ended).toMatchObject({ code: 0, stopped: true, signals: ["SIGTERM"] });
  expect(clock.pending).toEqual([]);
});

test("a child that exits in the tick of its stop was stopped; one that had exited before was not", async () => {
  const exits = await started({ whenStopped: "exits" });
  exits.child.stop();
  expect(await exits.child.ended).toMatchObject({ code: 0, stopped: true, signals: ["SIGTERM"] });
  const exited = await started({ whenStopped: "exited" });
  exited.child.stop();
  expect(await exited.child.ended).toMatchObject({ code: 0, stopped: false, signals: [] });
});

test("a child that survives SIGKILL is reported as escaped, and stays alive", {
  meta: { id: "testing/scripted-child-escapes" },
}, async () => {
  const { clock, child } = await started({ whenStopped: "escapes" });
  child.stop(100);
  await clock.advance(100);
  expect(child.end).toBeUndefined();
  await clock.advance(10_000);
  expect(await child.ended).toMatchObject({ stopped: true, escaped: [child.pid] });
  expect(child.alive).toBe(true);
});

test("with a late verification a child is dying until then, and exists", async () => {
  const { clock, child } = await started({ deathVerified: { afterMs: 700 } });
  child.stop(1_500);
  expect([child.signals, child.dying, child.alive]).toEqual([["SIGTERM"], true, true]);
  expect(() => child.exit()).toThrow("it is dying");
  expect(() => child.say("x")).toThrow("it is dying");
  await clock.advance(699);
  expect([child.end, child.alive]).toEqual([undefined, true]);
  await clock.advance(1);
  expect(await child.ended).toMatchObject({ signal: "SIGTERM", stopped: true, durationMs: 700, escaped: [] });
  expect([child.dying, child.alive, child.dyingSince]).toEqual([false, false, 0]);
  expect(clock.pending).toEqual([]);
});

test("a child that ignores SIGTERM dies of SIGKILL, and its verification counts from there", async () => {
  const { clock, child } = await started({ whenStopped: "ignores", deathVerified: { afterMs: 700 } });
  child.stop(1_000);
  await clock.advance(999);
  expect(child.dying).toBe(false);
  await clock.advance(1);
  expect([child.dying, child.signals]).toEqual([true, ["SIGTERM", "SIGKILL"]]);
  await clock.advance(699);
  expect(child.end).toBeUndefined();
  await clock.advance(1);
  expect(await child.ended).toMatchObject({ signal: "SIGKILL", durationMs: 1_700 });
});

test("with a verification after the grace period, SIGKILL follows and does not restart the time", async () => {
  const { clock, child } = await started({ deathVerified: { afterMs: 700 } });
  child.stop(100);
  await clock.advance(100);
  expect([child.signals, child.end]).toEqual([["SIGTERM", "SIGKILL"], undefined]);
  await clock.advance(600);
  expect(await child.ended).toMatchObject({ signal: "SIGTERM", signals: ["SIGTERM", "SIGKILL"], durationMs: 700 });
});

test("with a verification that never comes, `ended` settles only when the test verifies it", async () => {
  const { clock, child } = await started({ deathVerified: "never" });
  expect(() => child.verifyDeath()).toThrow("it is not dying");
  child.stop(1_500);
  await clock.advance(3_600_000);
  expect([child.signals, child.dying, child.alive, child.end]).toEqual([["SIGTERM", "SIGKILL"], true, true, undefined]);
  expect(clock.pending).toEqual([]);
  let ended = false;
  void child.ended.then(() => {
    ended = true;
  });
  await settled();
  expect(ended).toBe(false);
  child.verifyDeath();
  expect(await child.ended).toMatchObject({ signal: "SIGTERM", stopped: true, durationMs: 3_600_000 });
  expect(child.alive).toBe(false);
  expect(() => child.verifyDeath()).toThrow("it is not dying");
});

test("a child that exits is verified at once, whatever was planned for its death", async () => {
  const { child } = await started({ deathVerified: "never" });
  child.exit(0);
  expect(await child.ended).toMatchObject({ code: 0, stopped: false });
});

test("a child that escapes is reported as late as the test says, or never", async () => {
  const late = await started({ whenStopped: "escapes", deathVerified: { afterMs: 500 } });
  late.child.stop(0);
  await late.clock.advance(499);
  expect([late.child.end, late.child.dying]).toEqual([undefined, false]);
  await late.clock.advance(1);
  expect(await late.child.ended).toMatchObject({ escaped: [late.child.pid] });
  const never = await started({ whenStopped: "escapes", deathVerified: "never" });
  never.child.stop(0);
  await never.clock.advance(3_600_000);
  expect(never.child.end).toBeUndefined();
});

test("close() waits for a death that is not verified", async () => {
  const { spawner, child } = await started({ deathVerified: "never" });
  let closed = false;
  const closing = spawner.close().then(() => {
    closed = true;
  });
  await settled();
  expect([child.signals, closed]).toEqual([["SIGKILL"], false]);
  child.verifyDeath();
  await closing;
});

test("a child that cannot be started is not in `children`", async () => {
  const spawner = scriptedSpawner({ clock: manualClock(), script: () => ({ refused: "uncontained" }) });
  await expect(spawner.spawn(request())).rejects.toMatchObject({ code: "uncontained" });
  expect(spawner.children).toEqual([]);
});

test("a child that starts late does not start if it is stopped before", async () => {
  const clock = manualClock();
  const gates = [new Gate(), new Gate()] as const;
  const spawner = scriptedSpawner({ clock });
  spawner.plan({ startsAfter: gates[0] });
  spawner.plan({ startsAfter: gates[1] });
  const starting = new AbortController();
  const first = spawner.spawn({ ...request(), signal: starting.signal });
  const second = spawner.spawn(request("proc_1.2"));
  starting.abort();
  await expect(first).rejects.toMatchObject({ code: "not_started" });
  gates[1].open();
  expect((await second).request.id).toBe("proc_1.2");
  expect(await spawner.next()).toBe(await second);
});

test("close() ends every child, and none starts afterwards", async () => {
  const { spawner, child } = await started({ whenStopped: "ignores" });
  const late = new Gate();
  spawner.plan({ startsAfter: late });
  const starting = spawner.spawn(request("proc_1.2"));
  await spawner.close();
  expect(child.alive).toBe(false);
  await expect(starting).rejects.toMatchObject({ code: "not_started" });
  await expect(spawner.spawn(request("proc_1.3"))).rejects.toMatchObject({ code: "not_started" });
});

test("the output of a child is counted, read by offset on character boundaries, and kept after its end", async () => {
  const { spawner, child } = await started();
  child.say("grün\n");
  child.say("rot", "stderr");
  expect(child.output.counts.bytes).toEqual({ stdout: 6, stderr: 3, all: 9 });
  expect(child.output.counts.lines).toBe(1);
  expect(await child.output.read({ stream: "stdout", bytesMax: 3 })).toMatchObject({ from: 0, to: 2, text: "gr" });
  expect(await child.output.read({ offset: 2, bytesMax: 1 })).toMatchObject({ from: 2, to: 6 });
  child.exit();
  const kept = await spawner.output("proc_1.1");
  expect(await kept?.read({ offset: 6 })).toEqual({
    ...{ stream: "all", from: 6, to: 9, text: "rot", missing: 0, end: true },
  });
  expect(await spawner.output("proc_1.9")).toBeUndefined();
});

test("an excerpt is complete if it fits, and otherwise reports how much it omits", async () => {
  const { child } = await started();
  child.say(`\u001b[31m${"a".repeat(10)}${"z".repeat(10)}\u001b[0m`);
  expect(child.output.excerpt({ plain: true })).toEqual({ head: "aaaaaaaaaazzzzzzzzzz", tail: "", omitted: 0 });
  const { head, tail, omitted } = child.output.excerpt({ bytesMax: 12 });
  expect(head.length + tail.length + omitted).toBe(29);
  expect(omitted).toBe(17);
});

test("a follower receives all output, and its end", async () => {
  const { child } = await started();
  const heard: string[] = [];
  const following = (async () => {
    for await (const page of child.output.follow()) heard.push(page.text);
  })();
  child.say("one");
  await Promise.resolve();
  child.say("two");
  child.exit();
  await following;
  expect(heard.join("")).toBe("onetwo");
});

test("input and resizing are refused unless the child has open input or a terminal", async () => {
  const { spawner, child } = await started();
  await expect(child.write("x")).rejects.toMatchObject({ code: "conflict" });
  await expect(child.resize({ columns: 1, rows: 1 })).rejects.toMatchObject({ code: "invalid" });
  const open = await spawner.spawn({ ...request("proc_1.2"), stdin: "open", terminal: { columns: 80, rows: 24 } });
  await open.write("x");
  await open.resize({ columns: 100, rows: 30 });
  open.endInput();
  expect([open.input, open.size, open.inputEnded]).toEqual(["x", { columns: 100, rows: 30 }, true]);
  await expect(open.write("y")).rejects.toMatchObject({ code: "conflict" });
});
