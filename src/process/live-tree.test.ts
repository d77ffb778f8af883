// A tree that is going on, with a leader that is a few streams and a hold that is a script: only the order of things is
// real here.
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

/** Somebody of the tree, besides the command. */
const other = (pid: number, asked = false): Leftover => ({ pid, asked });

interface Staging extends Partial<Omit<LiveTreeOptions, "held" | "processTable">> {
  readonly held?: Partial<HeldTree>;
  readonly processTable?: Partial<ProcessTable>;
  readonly openSink?: OpenSink;
}

function staged(more: Staging = {}) {
  const dir = mkdtempSync(join(tmpdir(), "belay-live-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const clock = manualClock();
  // It is not the first thing that this clock sees.
  clock.tick(70);
  const began = clock.elapsed();
  const exited = Promise.withResolvers<Exit>();
  const [stdin, stdout, stderr, control, liveness, status] = Array.from({ length: 6 }, () => new PassThrough());
  if (!stdin || !stdout || !stderr || !control || !liveness || !status) throw new Error("six were made");
  liveness.resume();
  const told: string[] = [];
  const left: Leftover[] = [];
  const waits: number[] = [];
  const at = (what: string): void => void told.push(`${what} at ${clock.elapsed() - began}`);
  const held: HeldTree = {
    pid: PID,
    identity: { pid: PID, startTime: 1, bootId: "boot" },
    ask: () => at("asked"),
    force: () => at("forced"),
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
    ...{ hear: undefined, resize: undefined, onEnded: () => at("over") },
    ...more,
    ...{ held, processTable },
  });
  return {
    ...{ child, clock, told, left, waits, stdin, stdout, stderr, control, liveness, capture },
    say: (line: string) => status.write(`${line}\n`),
    leaderDies: () => {
      exited.resolve({ code: undefined, signal: "SIGKILL" });
    },
    /** Nobody holds the pipes any more. */
    hangUp: () => {
      for (const stream of [stdout, stderr, liveness]) stream.end();
    },
  };
}

describe("a tree that ends by itself", () => {
  test("was let through its gate at once, and its end is told with how long it took", async () => {
    const { child, clock, told, say, hangUp, control, liveness } = staged();
    expect(control.read()?.toString()).toBe("go\n");
    expect([child.pid, child.tier, child.mechanism, child.profile, child.startedAt]).toEqual([
      ...[PID, "group", "group", "none", 1_000_070],
    ]);
    await clock.advance(40);
    hangUp();
    say("exit 7");
    expect(await child.ended).toEqual({
      ...{ code: 7, signal: undefined, durationMs: 40, stopped: false, signals: [], left: 0, escaped: [] },
    });
    // What might be left is ended with it, and whoever is told of the end is told last.
    expect(told).toEqual(["forced at 40", "over at 40"]);
    expect([control.destroyed, liveness.destroyed]).toEqual([true, true]);
  });

  test("has ended with what the leader says last, if that is a moment behind the leader's end", async () => {
    const { child, clock, say, hangUp, leaderDies } = staged();
    leaderDies();
    await clock.advance(49);
    say("exit 3");
    hangUp();
    expect(await child.ended).toMatchObject({ code: 3, signal: undefined });
  });

  test("whose leader has died without a word was killed, and what is left of it is ended now", async () => {
    const { child, clock, told, left, hangUp, leaderDies } = staged();
    left.push(other(1), other(2));
    hangUp();
    leaderDies();
    await clock.advance(50);
    expect(await child.ended).toMatchObject({ code: undefined, signal: "SIGKILL", stopped: false, left: 0 });
    expect(told).toEqual(["forced at 50", "over at 50"]);
  });

  test("ends with it whom it has left, at once if nobody hears them, and they are counted", async () => {
    const { child, told, left, say, hangUp } = staged({ held: { verify: async () => ({ killed: 3, left: [] }) } });
    left.push(other(1, true), other(2));
    hangUp();
    say("exit 0");
    expect(await child.ended).toMatchObject({ code: 0, signals: ["SIGKILL"], stopped: false, left: 5 });
    expect(told).toEqual(["forced at 0", "over at 0"]);
  });

  test("lets those it has left finish what they are saying, but not for long", async () => {
    const asked: (readonly [number, readonly string[]])[] = [];
    const hasOpen = (pid: number, files: readonly string[]): boolean => {
      asked.push([pid, files]);
      return true;
    };
    const { child, clock, told, left, say, hangUp } = staged({ processTable: { hasOpen } });
    left.push(other(12));
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    expect(told).toEqual([]);
    await clock.advance(1);
    expect(told).toEqual([`forced at ${EXIT_DRAIN_MS}`]);
    hangUp();
    expect(await child.ended).toMatchObject({ left: 1, signals: ["SIGKILL"] });
    expect(asked[0]).toEqual([12, ["pipe:1", "pipe:2"]]);
  });

  test("whose others leave by themselves has left nobody", async () => {
    const { child, clock, told, left, say, hangUp } = staged({ processTable: { hasOpen: () => true } });
    left.push(other(12));
    say("exit 0");
    await clock.advance(100);
    left.length = 0;
    await clock.advance(EXIT_DRAIN_MS);
    hangUp();
    expect(await child.ended).toMatchObject({ left: 0, signals: [] });
    expect(told[0]).toMatch(/^forced at 1\d\d$/);
  });

  test("where files cannot be seen lets others speak for as long as anybody holds the pipes", async () => {
    for (const last of ["stdout", "stderr"] as const) {
      const stage = staged({ processTable: { kind: "ps" } });
      const { child, clock, told, left, say } = stage;
      left.push(other(12));
      say("exit 0");
      stage[last === "stdout" ? "stderr" : "stdout"].end();
      await clock.advance(100);
      expect(told).toEqual([]);
      stage[last].end();
      await clock.advance(EXIT_DRAIN_MS);
      stage.hangUp();
      await child.ended;
      expect(told[0]).toMatch(/^forced at 1\d\d$/);
    }
  });

  test("looks again first, where what is seen is of the past, and does not wait long for that", async () => {
    const { child, clock, told, left, say, hangUp } = staged({ held: { look: () => new Promise(() => undefined) } });
    left.push(other(1));
    hangUp();
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    expect(told).toEqual([]);
    await clock.advance(1);
    expect(await child.ended).toMatchObject({ left: 1 });
    const failing = staged({ held: { look: () => Promise.reject(new Error("no ps")) } });
    failing.hangUp();
    failing.say("exit 0");
    expect(await failing.child.ended).toMatchObject({ left: 0 });
  });

  test("is looked at again when its pipe is released, and when its leader has ended", async () => {
    const woken: string[] = [];
    const verify: HeldTree["verify"] = async (_, wakes) => {
      await Promise.all(wakes.map((wake) => wake.then(() => woken.push("woken"))));
      return { killed: 0, left: [] };
    };
    const { child, say, hangUp, leaderDies } = staged({ held: { verify } });
    say("exit 0");
    await settled();
    expect(woken).toEqual([]);
    hangUp();
    leaderDies();
    await child.ended;
    expect(woken).toEqual(["woken", "woken"]);
  });

  test("is told as escaped by those that outlive everything", async () => {
    const { child, say, hangUp } = staged({ held: { verify: async () => ({ killed: 0, left: [12, 13] }) } });
    hangUp();
    say("exit 0");
    expect((await child.ended).escaped).toEqual([12, 13]);
  });
});

describe("a stop", () => {
  test("asks in the same tick, and an end within the grace is an end like any other, but stopped", async () => {
    const { child, clock, told, waits, say, hangUp } = staged();
    child.stop();
    expect(told).toEqual(["asked at 0"]);
    await clock.advance(10);
    hangUp();
    say("exit 143");
    expect(await child.ended).toMatchObject({
      code: undefined,
      signal: "SIGTERM",
      stopped: true,
      signals: ["SIGTERM"],
    });
    expect(waits).toEqual([ESCAPED_AFTER_MS]);
    await clock.advance(10_000);
    expect(told).toEqual(["asked at 0", "forced at 10", "over at 10"]);
  });

  test("after its grace forces, and what outlives that too has escaped, unnamed how it ended", async () => {
    const { child, clock, told, waits } = staged({
      held: { verify: async () => ({ killed: 0, left: [PID] }) },
    });
    child.stop(100);
    await clock.advance(100 + ESCAPED_AFTER_MS + EXIT_DRAIN_MS);
    expect(await child.ended).toMatchObject({
      ...{ code: undefined, signal: undefined, stopped: true, signals: ["SIGTERM", "SIGKILL"], escaped: [PID] },
    });
    expect(told.slice(0, 2)).toEqual(["asked at 0", "forced at 100"]);
    expect(waits).toEqual([]);
  });

  test("that is forced gives the look at it what is left of the wait, and one look in any case", async () => {
    const quick = staged();
    quick.child.stop(0);
    await quick.clock.advance(200);
    quick.hangUp();
    quick.leaderDies();
    await quick.clock.advance(0);
    expect(await quick.child.ended).toMatchObject({ signal: "SIGKILL", left: 0, signals: ["SIGKILL"] });
    expect([quick.told, quick.waits]).toEqual([["forced at 0", "over at 200"], [ESCAPED_AFTER_MS - 200]]);
    const slow = staged();
    slow.child.stop(0);
    await slow.clock.advance(ESCAPED_AFTER_MS - 10);
    slow.hangUp();
    slow.leaderDies();
    await slow.clock.advance(0);
    await slow.child.ended;
    expect(slow.waits).toEqual([100]);
  });

  test("waits for a tree that dies together before anybody looks for its members", async () => {
    let looks = 0;
    const { child, clock, say, hangUp } = staged({
      held: {
        left: () => {
          looks += 1;
          return [];
        },
      },
    });
    child.stop();
    say("exit 143");
    await clock.advance(1);
    expect(looks).toBe(0);
    hangUp();
    await child.ended;
    expect(looks).toBe(1);
  });

  test("G40: looks once, and at a few, if a storm is left, which then has its grace", async () => {
    const looks: (number | undefined)[] = [];
    const storm = Array.from({ length: LEFTOVERS_MAX }, (_, index) => other(index + 1));
    const held: Partial<HeldTree> = {
      left: (max) => {
        looks.push(max);
        return storm;
      },
    };
    const { child, clock, told, say, hangUp } = staged({ held });
    child.stop(500);
    say("exit 143");
    await clock.advance(500);
    hangUp();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"], left: LEFTOVERS_MAX });
    expect(told).toEqual(["asked at 0", "forced at 500", "over at 500"]);
    expect(looks).toEqual([LEFTOVERS_MAX]);
  });

  test("gives the grace to those below a command that has ended, if they were asked", async () => {
    const { child, clock, told, left, say, hangUp } = staged();
    left.push(other(12, true));
    child.stop(500);
    say("exit 143");
    await clock.advance(499);
    expect(told).toEqual(["asked at 0"]);
    await clock.advance(1);
    hangUp();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"], left: 1 });
    expect(told[1]).toBe("forced at 500");
  });

  test("gives none to those whom it could not ask, also if they speak", async () => {
    const { child, clock, told, left, say, hangUp } = staged({ processTable: { hasOpen: () => true } });
    left.push(other(12, false));
    child.stop(500);
    say("exit 143");
    await clock.advance(10);
    hangUp();
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"] });
    expect(told[1]).toBe("forced at 2");
  });

  test("that is hurried while those below tidy up ends them at once", async () => {
    const { child, clock, told, left, say, hangUp } = staged();
    left.push(other(12, true));
    child.stop(10_000);
    say("exit 143");
    await clock.advance(100);
    child.stop(0);
    hangUp();
    await clock.advance(0);
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"] });
    expect(told).toEqual(["asked at 0", "forced at 100", "over at 100"]);
  });

  test("of a tree that has ended does nothing", async () => {
    const { child, clock, told, say, hangUp } = staged();
    hangUp();
    say("exit 0");
    await child.ended;
    child.stop();
    await clock.advance(10_000);
    expect(told).toEqual(["forced at 0", "over at 0"]);
  });
});

describe("the streams of a tree", () => {
  test("are kept apart, and stdout is heard as it comes", async () => {
    const pieces: string[] = [];
    const { child, say, hangUp, stdout, stderr } = staged({ hear: (piece) => void pieces.push(piece.toString()) });
    stdout.write("out");
    stderr.write("err");
    await settled();
    expect(pieces).toEqual(["out"]);
    hangUp();
    say("exit 0");
    await child.ended;
    expect(child.output.counts.bytes).toEqual({ stdout: 3, stderr: 3, all: 6 });
  });

  test("are read for a moment after the end, and then closed, whoever still holds them", async () => {
    const { child, clock, say, stdout, stderr, told, liveness } = staged();
    say("exit 0");
    await clock.advance(EXIT_DRAIN_MS - 1);
    stdout.write("late");
    await settled();
    expect([stdout.destroyed, stderr.destroyed]).toEqual([false, false]);
    await clock.advance(1);
    expect(await child.ended).toMatchObject({ code: 0 });
    expect([stdout.destroyed, stderr.destroyed, liveness.destroyed]).toEqual([true, true, true]);
    expect(child.output.counts.bytes.stdout).toBe(4);
    expect(told.at(-1)).toBe(`over at ${EXIT_DRAIN_MS}`);
  });

  test("are paused together while the disk is behind, and flow again when it is not", async () => {
    const { child, capture, say, hangUp, stdout, stderr } = staged();
    // More than may wait for the disk; it has had no turn yet to take any of it.
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    expect(capture.counts.bytes.stdout).toBe(1024 * 1024);
    expect([stdout.isPaused(), stderr.isPaused()]).toEqual([true, true]);
    await expect.poll(() => [stdout.isPaused(), stderr.isPaused()]).toEqual([false, false]);
    hangUp();
    say("exit 0");
    await child.ended;
  });

  test("that were paused flow again when the command ends, also if the disk takes nothing", async () => {
    const openSink: OpenSink = async () => ({
      writev: () => new Promise(() => undefined),
      close: async () => undefined,
    });
    const { child, clock, say, hangUp, stdout, stderr } = staged({ openSink });
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    stderr.write("last words");
    expect([stdout.isPaused(), stderr.isPaused()]).toEqual([true, true]);
    say("exit 0");
    hangUp();
    await clock.advance(EXIT_DRAIN_MS + FLUSH_MS_MAX);
    await child.ended;
    expect(child.output.counts.bytes.stderr).toBe(10);
  });

  test("are not paused any more once the command has ended: what is in the pipes is read", async () => {
    const { child, clock, say, hangUp, stdout } = staged();
    say("exit 0");
    await clock.advance(0);
    stdout.write(Buffer.alloc(1024 * 1024, "x"));
    expect(stdout.isPaused()).toBe(false);
    hangUp();
    await child.ended;
    expect(child.output.counts.bytes.stdout).toBe(1024 * 1024);
  });

  test("take input until it is ended, and nobody's after the end", async () => {
    const { child, say, hangUp, stdin } = staged();
    await child.write("one");
    expect(stdin.read()?.toString()).toBe("one");
    child.endInput();
    expect(stdin.writableEnded).toBe(true);
    const another = staged();
    another.hangUp();
    another.say("exit 0");
    await another.child.ended;
    await expect(another.child.write("x")).rejects.toMatchObject({ code: "closed" });
    hangUp();
    say("exit 0");
    await child.ended;
  });

  test("have a size only at a terminal", async () => {
    const size = { columns: 80, rows: 24 };
    const sizes: unknown[] = [];
    const at = staged({ resize: async (wish) => void sizes.push(wish) });
    await at.child.resize(size);
    expect(sizes).toEqual([size]);
    await expect(staged().child.resize(size)).rejects.toMatchObject({
      ...{ code: "invalid", message: "This process has no terminal, so it has no size." },
    });
  });
});
