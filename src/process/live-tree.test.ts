// A running tree with a leader made of streams and a scripted hold: only the order of events is real here.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { manualClock, settled } from "../testing/manual-clock.ts";
import type { HeldTree, Leftover } from "./containment/containment.ts";
import { type Exit, type Started, Status } from "./launch/start.ts";
import { ESCAPED_AFTER_MS, EXIT_DRAIN_MS, LEFTOVERS_MAX } from "./limits.ts";
import { LiveTree, type LiveTreeOptions } from "./live-tree.ts";
import { Capture } from "./output/capture.ts";
import type { OpenSink } from "./output/kept-file.ts";
import { FLUSH_MS_MAX } from "./output/limits.ts";
import { PROC_PROCESS_TABLE } from "./tree/proc-process-table.ts";
import type { ProcessTable } from "./tree/process-table.ts";

const PID = 4711;

/** A process of the tree, besides the command. */
const other = (pid: number, signalled = false): Leftover => ({ pid, signalled });

interface TreeOptions extends Partial<Omit<LiveTreeOptions, "held" | "processTable">> {
  readonly held?: Partial<HeldTree>;
  readonly processTable?: Partial<ProcessTable>;
  readonly openSink?: OpenSink;
}

function makeTree(more: TreeOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), "belay-live-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const clock = manualClock();
  // The clock does not start at zero.
  clock.tick(70);
  const began = clock.elapsed();
  const exited = Promise.withResolvers<Exit>();
  const [stdin, stdout, stderr, control, liveness, status] = Array.from({ length: 6 }, () => new PassThrough());
  if (!stdin || !stdout || !stderr || !control || !liveness || !status) throw new Error("six were made");
  liveness.resume();
  const log: string[] = [];
  const left: Leftover[] = [];
  const waits: number[] = [];
  const at = (what: string): void => void log.push(`${what} at ${clock.elapsed() - began}`);
  const held: HeldTree = {
    pid: PID,
    identity: { pid: PID, startTime: 1, bootId: "boot" },
    sendSigterm: () => at("SIGTERM"),
    force: () => at("SIGKILL"),
    left: () => left,
    verify: async (waitMs) => {
      waits.push(waitMs);
      return { killed: 0, left: [] };
    },
    ...more.held,
  };
  const processTable: ProcessTable = {
    ...PROC_PROCESS_TABLE,
    openFile: (_, fd) => `pipe:${fd}`,
    hasOpen: () => false,
    ...more.processTable,
  };
  const capture: Capture = new Capture({ dir, clock, onDrain: () => child.drained(), openSink: more.openSink });
  const started = { stdin, stdout, stderr, control, liveness, status: new Status(status), exited: exited.promise };
  const child: LiveTree = new LiveTree({
    started: started as unknown as Started,
    ...{ capture, clock, tier: "group", mechanism: "group", profile: "none", graceMs: 1_000 },
    ...{ hear: undefined, resize: undefined, onEnded: () => at("ended") },
    ...more,
    ...{ held, processTable },
  });
  return {
    ...{ child, clock, log, left, waits, stdin, stdout, stderr, control, liveness, capture },
    say: (line: string) => status.write(`${line}\n`),
    leaderDies: () => {
      exited.resolve({ code: undefined, signal: "SIGKILL" });
    },
    /** Closes the pipes as if no process held them. */
    closePipes: () => {
      for (const stream of [stdout, stderr, liveness]) stream.end();
    },
  };
}

describe("a tree that ends by itself", () => {
  test("passed its gate at once, and its end has a duration", async () => {
    const { child, clock, log, say, closePipes, control, liveness } = makeTree();
    expect(control.read()?.toString()).toBe("go\n");
    expect([child.pid, child.tier, child.mechanism, child.profile, child.startedAt]).toEqual([
      ...[PID, "group", "group", "none", 1_000_070],
    ]);
    await clock.advance(40);
    closePipes();
    say("exit 7");
    expect(await child.ended).toEqual({
      ...{ code: 7, signal: undefined, durationMs: 40, stopped: false, signals: [], left: 0, escaped: [] },
    });
    // The rest of the tree is ended with it, and `onEnded` is called last.
    expect(log).toEqual(["SIGKILL at 40", "ended at 40"]);
    expect([control.destroyed, liveness.destroyed]).toEqual([true, true]);
  });

  test("has the exit status of the leader, even if it arrives a moment after the leader's end", async () => {
    const { child, clock, say, closePipes, leaderDies } = makeTree();
    leaderDies();
    await clock.advance(49);
    say("exit 3");
    closePipes();
    expect(await child.ended).toMatchObject({ code: 3, signal: undefined });
  });

  test("whose leader died without a status counts as killed, and the rest is ended now", async () => {
    const { child, clock, log, left, closePipes, leaderDies } = makeTree();
    left.push(other(1), other(2));
    closePipes();
    leaderDies();
    await clock.advance(50);
    expect(await child.ended).toMatchObject({ code: undefined, signal: "SIGKILL", stopped: false, left: 0 });
    expect(log).toEqual(["SIGKILL at 50", "ended at 50"]);
  });

  test("is ended with the processes it left, at once if they hold no pipe, and they are counted", async () => {
    const { child, log, left, say, closePipes } = makeTree({ held: { verify: async () => ({ killed: 3, left: [] }) } });
    left.push(other(1, true), other(2));
    closePipes();
    say("exit 0");
    expect(await child.ended).toMatchObject({ code: 0, signals: ["SIGKILL"], stopped: false, left: 5 });
    expect(log).toEqual(["SIGKILL at 0", "ended at 0"]);
  });

  test("waits briefly for the output of the processes it left", async () => {
    const checked: (readonly [number, readonly string[]])[] = [];
    const hasOpen = (pid: number, files: readonly string[]): boolean => {
      checked.push([pid, files]);
      return true;
    };
    const { child, clock, log, left, say, closePipes } = makeTree({ processTable: { hasOpen } });
    left.push(other(12));
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    expect(log).toEqual([]);
    await clock.advance(1);
    expect(log).toEqual([`SIGKILL at ${EXIT_DRAIN_MS}`]);
    closePipes();
    expect(await child.ended).toMatchObject({ left: 1, signals: ["SIGKILL"] });
    expect(checked[0]).toEqual([12, ["pipe:1", "pipe:2"]]);
  });

  test("whose other processes exit by themselves has left none", async () => {
    const { child, clock, log, left, say, closePipes } = makeTree({ processTable: { hasOpen: () => true } });
    left.push(other(12));
    say("exit 0");
    await clock.advance(100);
    left.length = 0;
    await clock.advance(EXIT_DRAIN_MS);
    closePipes();
    expect(await child.ended).toMatchObject({ left: 0, signals: [] });
    expect(log[0]).toMatch(/^SIGKILL at 1\d\d$/);
  });

  test("without information on open files waits as long as any process holds the pipes", async () => {
    for (const last of ["stdout", "stderr"] as const) {
      const made = makeTree({ processTable: { kind: "ps" } });
      const { child, clock, log, left, say } = made;
      left.push(other(12));
      say("exit 0");
      made[last === "stdout" ? "stderr" : "stdout"].end();
      await clock.advance(100);
      expect(log).toEqual([]);
      made[last].end();
      await clock.advance(EXIT_DRAIN_MS);
      made.closePipes();
      await child.ended;
      expect(log[0]).toMatch(/^SIGKILL at 1\d\d$/);
    }
  });

  test("scans again first where answers come from a cached scan, with a short timeout", async () => {
    const { child, clock, log, left, say, closePipes } = makeTree({
      held: { refresh: () => new Promise(() => undefined) },
    });
    left.push(other(1));
    closePipes();
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    expect(log).toEqual([]);
    await clock.advance(1);
    expect(await child.ended).toMatchObject({ left: 1 });
    const failing = makeTree({ held: { refresh: () => Promise.reject(new Error("no ps")) } });
    failing.closePipes();
    failing.say("exit 0");
    expect(await failing.child.ended).toMatchObject({ left: 0 });
  });

  test("is checked again when its pipe is released, and when its leader has ended", async () => {
    const woken: string[] = [];
    const verify: HeldTree["verify"] = async (_, wakes) => {
      await Promise.all(wakes.map((wake) => wake.then(() => woken.push("woken"))));
      return { killed: 0, left: [] };
    };
    const { child, say, closePipes, leaderDies } = makeTree({ held: { verify } });
    say("exit 0");
    await settled();
    expect(woken).toEqual([]);
    closePipes();
    leaderDies();
    await child.ended;
    expect(woken).toEqual(["woken", "woken"]);
  });

  test("reports the processes that survive as escaped", async () => {
    const { child, say, closePipes } = makeTree({ held: { verify: async () => ({ killed: 0, left: [12, 13] }) } });
    closePipes();
    say("exit 0");
    expect((await child.ended).escaped).toEqual([12, 13]);
  });
});

describe("a stop", () => {
  test("sends SIGTERM in the same tick, and an end within the grace is an ordinary one, but stopped", async () => {
    const { child, clock, log, waits, say, closePipes } = makeTree();
    child.stop();
    expect(log).toEqual(["SIGTERM at 0"]);
    await clock.advance(10);
    closePipes();
    say("exit 143");
    expect(await child.ended).toMatchObject({
      code: undefined,
      signal: "SIGTERM",
      stopped: true,
      signals: ["SIGTERM"],
    });
    expect(waits).toEqual([ESCAPED_AFTER_MS]);
    await clock.advance(10_000);
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 10", "ended at 10"]);
  });

  test("forces after its grace, and reports survivors as escaped, without an exit status", async () => {
    const { child, clock, log, waits } = makeTree({
      held: { verify: async () => ({ killed: 0, left: [PID] }) },
    });
    child.stop(100);
    await clock.advance(100 + ESCAPED_AFTER_MS + EXIT_DRAIN_MS);
    expect(await child.ended).toMatchObject({
      ...{ code: undefined, signal: undefined, stopped: true, signals: ["SIGTERM", "SIGKILL"], escaped: [PID] },
    });
    expect(log.slice(0, 2)).toEqual(["SIGTERM at 0", "SIGKILL at 100"]);
    expect(waits).toEqual([]);
  });

  test("that is forced leaves the check the rest of the wait, and at least one scan", async () => {
    const quick = makeTree();
    quick.child.stop(0);
    await quick.clock.advance(200);
    quick.closePipes();
    quick.leaderDies();
    await quick.clock.advance(0);
    expect(await quick.child.ended).toMatchObject({ signal: "SIGKILL", left: 0, signals: ["SIGKILL"] });
    expect([quick.log, quick.waits]).toEqual([["SIGKILL at 0", "ended at 200"], [ESCAPED_AFTER_MS - 200]]);
    const slow = makeTree();
    slow.child.stop(0);
    await slow.clock.advance(ESCAPED_AFTER_MS - 10);
    slow.closePipes();
    slow.leaderDies();
    await slow.clock.advance(0);
    await slow.child.ended;
    expect(slow.waits).toEqual([100]);
  });

  test("waits for a tree that dies together before it scans for members", async () => {
    let scans = 0;
    const { child, clock, say, closePipes } = makeTree({
      held: {
        left: () => {
          scans += 1;
          return [];
        },
      },
    });
    child.stop();
    say("exit 143");
    await clock.advance(1);
    expect(scans).toBe(0);
    closePipes();
    await child.ended;
    expect(scans).toBe(1);
  });

  test("G40: scans once, and only a few, if a storm is left, which then has its grace", async () => {
    const scans: (number | undefined)[] = [];
    const storm = Array.from({ length: LEFTOVERS_MAX }, (_, index) => other(index + 1));
    const held: Partial<HeldTree> = {
      left: (max) => {
        scans.push(max);
        return storm;
      },
    };
    const { child, clock, log, say, closePipes } = makeTree({ held });
    child.stop(500);
    say("exit 143");
    await clock.advance(500);
    closePipes();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"], left: LEFTOVERS_MAX });
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 500", "ended at 500"]);
    expect(scans).toEqual([LEFTOVERS_MAX]);
  });

  test("gives the grace to descendants of a command that has ended, if they were signalled", async () => {
    const { child, clock, log, left, say, closePipes } = makeTree();
    left.push(other(12, true));
    child.stop(500);
    say("exit 143");
    await clock.advance(499);
    expect(log).toEqual(["SIGTERM at 0"]);
    await clock.advance(1);
    closePipes();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"], left: 1 });
    expect(log[1]).toBe("SIGKILL at 500");
  });

  test("gives no grace to processes that were not signalled, even if they write output", async () => {
    const { child, clock, log, left, say, closePipes } = makeTree({ processTable: { hasOpen: () => true } });
    left.push(other(12, false));
    child.stop(500);
    say("exit 143");
    await clock.advance(10);
    closePipes();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"] });
    expect(log[1]).toBe("SIGKILL at 2");
  });

  test("that is hurried while descendants clean up ends them at once", async () => {
    const { child, clock, log, left, say, closePipes } = makeTree();
    left.push(other(12, true));
    child.stop(10_000);
    say("exit 143");
    await clock.advance(100);
    child.stop(0);
    closePipes();
    await clock.advance(0);
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"] });
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 100", "ended at 100"]);
  });

  test("of a tree that has ended does nothing", async () => {
    const { child, clock, log, say, closePipes } = makeTree();
    closePipes();
    say("exit 0");
    await child.ended;
    child.stop();
    await clock.advance(10_000);
    expect(log).toEqual(["SIGKILL at 0", "ended at 0"]);
  });
});

describe("the streams of a tree", () => {
  test("are captured separately, and stdout is passed on as it arrives", async () => {
    const pieces: string[] = [];
    const { child, say, closePipes, stdout, stderr } = makeTree({
      hear: (piece) => void pieces.push(piece.toString()),
    });
    stdout.write("out");
    stderr.write("err");
    await settled();
    expect(pieces).toEqual(["out"]);
    closePipes();
    say("exit 0");
    await child.ended;
    expect(child.output.counts.bytes).toEqual({ stdout: 3, stderr: 3, all: 6 });
  });

  test("are read for a moment after the end, and then closed, even if a process holds them", async () => {
    const { child, clock, say, stdout, stderr, log, liveness } = makeTree();
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    stdout.write("late");
    await settled();
    expect([stdout.destroyed, stderr.destroyed]).toEqual([false, false]);
    await clock.advance(1);
    expect(await child.ended).toMatchObject({ code: 0 });
    expect([stdout.destroyed, stderr.destroyed, liveness.destroyed]).toEqual([true, true, true]);
    expect(child.output.counts.bytes.stdout).toBe(4);
    expect(log.at(-1)).toBe(`ended at ${EXIT_DRAIN_MS}`);
  });

  test("are paused together while the disk is behind, and resumed afterwards", async () => {
    const { child, capture, say, closePipes, stdout, stderr } = makeTree();
    // More than may be queued for the disk, which has had no turn yet to take any of it.
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    expect(capture.counts.bytes.stdout).toBe(1024 * 1024);
    expect([stdout.isPaused(), stderr.isPaused()]).toEqual([true, true]);
    await expect.poll(() => [stdout.isPaused(), stderr.isPaused()]).toEqual([false, false]);
    closePipes();
    say("exit 0");
    await child.ended;
  });

  test("that were paused are resumed when the command ends, even if the disk hangs", async () => {
    const openSink: OpenSink = async () => ({
      writev: () => new Promise(() => undefined),
      close: async () => undefined,
    });
    const { child, clock, say, closePipes, stdout, stderr } = makeTree({ openSink });
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    stderr.write("last words");
    expect([stdout.isPaused(), stderr.isPaused()]).toEqual([true, true]);
    say("exit 0");
    closePipes();
    await clock.advance(EXIT_DRAIN_MS + FLUSH_MS_MAX);
    await child.ended;
    expect(child.output.counts.bytes.stderr).toBe(10);
  });

  test("are not paused after the end of the command, so that the pipes are read completely", async () => {
    const { child, clock, say, closePipes, stdout } = makeTree();
    say("exit 0");
    await clock.advance(0);
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    expect(stdout.isPaused()).toBe(false);
    closePipes();
    await child.ended;
    expect(child.output.counts.bytes.stdout).toBe(1024 * 1024);
  });

  test("accept input until its end, and none after the end of the process", async () => {
    const { child, say, closePipes, stdin } = makeTree();
    await child.write("one");
    expect(stdin.read()?.toString()).toBe("one");
    child.endInput();
    expect(stdin.writableEnded).toBe(true);
    const another = makeTree();
    another.closePipes();
    another.say("exit 0");
    await another.child.ended;
    await expect(another.child.write("x")).rejects.toMatchObject({ code: "closed" });
    closePipes();
    say("exit 0");
    await child.ended;
  });

  test("have a size only at a terminal", async () => {
    const size = { columns: 80, rows: 24 };
    const sizes: unknown[] = [];
    const at = makeTree({ resize: async (requested) => void sizes.push(requested) });
    await at.child.resize(size);
    expect(sizes).toEqual([size]);
    await expect(makeTree().child.resize(size)).rejects.toMatchObject({
      ...{ code: "invalid", message: "This process has no terminal, so it has no size." },
    });
  });
});
