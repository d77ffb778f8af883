import childProcess, { type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import type { LaunchPlan, Wrapped } from "../containment/containment.ts";
import { childrenOf, identityOf, isStill } from "../tree/proc.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { type Pipe, PipePool } from "./pipe-pool.ts";
import {
  abandon,
  type Exit,
  reachGate,
  START_MS_MAX,
  type Started,
  type Starting,
  Status,
  start,
  toLeader,
} from "./start.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-start-")));
const pipes = new PipePool(join(home, "pipes"));
afterAll(() => {
  pipes.close();
  rmSync(home, { recursive: true, force: true });
});

const plan: LaunchPlan = {
  ...{ id: "proc_start.1", cookie: "proc_start.1:x", argv: ["/bin/sh", "-c", "echo begun"], cwd: home },
  workspace: home,
  ...{ env: { PATH: "/usr/bin:/bin" }, profile: "none", limits: { processesMax: 100 }, terminal: false },
};

const starting = (wrapped: Wrapped, more: Partial<LaunchPlan> = {}): Starting => ({
  ...{ plan: { ...plan, ...more }, wrapped, openInput: false, pipes, clock: systemClock },
});

const ordinary: Wrapped = { file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] };

describe("a start", () => {
  test("of a leader that does not exist fails with the system's error", async () => {
    await expect(start(starting({ file: "/no/such/leader", args: [] }))).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: spawn /no/such/leader ENOENT.',
      cause: { code: "ENOENT" },
    });
  });

  test("that fails closes the pipes it has taken", async () => {
    const pool = new PipePool(join(home, "taken"));
    onTestFinished(() => pool.close());
    await pool.fill();
    const taken: (Pipe | undefined)[] = [];
    const take = (pipe: Pipe | undefined): Pipe | undefined => {
      taken.push(pipe);
      return pipe;
    };
    const pipes = { fromChild: () => take(pool.fromChild()), toChild: () => take(pool.toChild()) };
    const request = { ...starting({ file: "/no/such/leader", args: [] }), openInput: true };
    await expect(start({ ...request, pipes: pipes as unknown as PipePool })).rejects.toThrow("ENOENT");
    expect(taken.map((pipe) => pipe?.stream.destroyed)).toEqual([true, true, true]);
  });

  test("passes on a refusal from its parts unchanged", async () => {
    const refusal = new ControlError("shutting_down", "No pipes are made any more.");
    const fromChild = (): never => {
      throw refusal;
    };
    const pipes = { fromChild } as unknown as PipePool;
    await expect(start({ ...starting(ordinary), pipes })).rejects.toBe(refusal);
  });

  test("in a directory that has vanished fails", { meta: { id: "process/vanished-directory-refused" } }, async () => {
    const gone = starting(ordinary, { cwd: join(home, "gone") });
    await expect(start(gone)).rejects.toMatchObject({ code: "not_started" });
  });

  test("with arguments that are too long for the system is invalid", {
    meta: { id: "process/oversized-arguments-refused" },
  }, async () => {
    const long = starting({
      file: SHELL,
      args: [
        "-c",
        ":",
        ..."x"
          .repeat(64)
          .split("")
          .map((x) => x.repeat(120_000)),
      ],
    });
    await expect(start(long)).rejects.toMatchObject({
      code: "invalid",
      message: '"/bin/sh" was not started: its arguments and environment are too long.',
      hint: "Put the long ones into a file, and pass the file's name.",
    });
  });

  test("of a leader that fails quotes its stderr", async () => {
    const request = starting({
      file: SHELL,
      args: ["-c", "echo '  it   is'; echo 'it  is' >&2; echo broken >&2; exit 1"],
    });
    const started = await start(request);
    await expect(reachGate(started, request)).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: its leader has failed with "it is broken".',
    });
  });

  test("of a leader that fails silently reports its exit code", async () => {
    const request = starting({ file: SHELL, args: ["-c", "exit 1"] });
    const message = '"/bin/sh" was not started: its leader has failed (it exited with code 1).';
    await expect(reachGate(await start(request), request)).rejects.toMatchObject({ message });
  });

  test("that is abandoned before the gate leaves no process, and the command has not begun", async () => {
    const request = starting(ordinary);
    const started = await start(request);
    await reachGate(started, request);
    const [gate] = childrenOf(started.child.pid);
    const identity = identityOf(gate ?? 0);
    let output = "";
    started.stdout.on("data", (data: Buffer) => {
      output += data.toString();
    });
    await abandon(started, systemClock);
    // The kernel closes the files of a process a moment before it is gone.
    await expect.poll(() => identity !== undefined && isStill(identity)).toBe(false);
    expect(output).toBe("");
  });

  test("from a worker is refused, because the tree would end with the worker", {
    meta: { id: "process/start-in-worker-refused" },
  }, async () => {
    const module = new URL("../spawner.ts", import.meta.url).href;
    const code = `import(${JSON.stringify(module)})
      .then(({ openSpawner }) => openSpawner({ dir: "unused", workspace: "unused" }))
      .catch((error) => require("node:worker_threads").parentPort.postMessage(error.code));`;
    const worker = new Worker(code, { eval: true });
    const answer = await new Promise((resolve) => worker.once("message", resolve));
    await worker.terminate();
    expect(answer).toBe("uncontained");
  });
});

describe("a started leader", () => {
  const bare = new PipePool(join(home, "bare"), true);

  test("uses Node's own pipes where there are no named ones, and reports its exit", async () => {
    const script = 'echo noise >&5; exec 5>&-; read -r code; echo "read $code"; exit "$code"';
    const request = { ...starting({ file: SHELL, args: ["-c", script] }), openInput: true, pipes: bare };
    const started = await start(request);
    let output = "";
    started.stdout.on("data", (data: Buffer) => {
      output += data.toString();
    });
    // Data on the liveness pipe is discarded, and its end is noticed all the same.
    await expect.poll(() => started.liveness.closed).toBe(true);
    started.stdin?.write("3\n");
    expect(await started.exited).toEqual({ code: 3, signal: undefined });
    await expect.poll(() => output).toBe("read 3\n");
    await abandon(started, systemClock);
  });

  test("that was killed reports the signal", async () => {
    const started = await start(starting({ file: SHELL, args: ["-c", "exec sleep 8000302"] }));
    await abandon(started, systemClock);
    expect(await started.exited).toEqual({ code: undefined, signal: "SIGKILL" });
  });

  test("may die during a write, and may be out of reach of a signal: neither is an error", async () => {
    const request = { ...starting({ file: SHELL, args: ["-c", "exec sleep 8000303"] }), openInput: true, pipes: bare };
    const started = await start(request);
    for (const one of [started.child, ...started.child.stdio]) {
      expect(() => one?.emit("error", new Error("EPIPE"))).not.toThrow();
    }
    await abandon(started, systemClock);
  });
});

/** A leader made of streams: only the order of events is real here. */
function fakeLeader() {
  const clock = manualClock();
  const exited = Promise.withResolvers<Exit>();
  const [stdin, stdout, stderr, control, liveness, status] = Array.from({ length: 6 }, () => new PassThrough());
  if (!stdin || !stdout || !stderr || !control || !liveness || !status) throw new Error("six were made");
  liveness.resume();
  const signals: string[] = [];
  const child = { pid: 4_194_305, kill: (signal: string) => void signals.push(signal) };
  const streams = { stdin, stdout, stderr, control, liveness };
  const started = { ...streams, child, status: new Status(status), exited: exited.promise } as unknown as Started;
  const request: Starting = { ...starting(ordinary), clock };
  return {
    ...streams,
    clock,
    status,
    signals,
    started,
    request,
    exits: () => exited.resolve({ code: 1, signal: undefined }),
  };
}

describe("a leader that has failed", () => {
  test("is quoted with output that arrives a moment after its exit", async () => {
    const { clock, started, request, stderr, liveness, signals, exits } = fakeLeader();
    const message = '"/bin/sh" was not started: its leader has failed with "too late".';
    const refused = expect(reachGate(started, request)).rejects.toMatchObject({ message });
    exits();
    await clock.advance(24);
    expect(signals).toEqual([]);
    stderr.end("too late\n");
    liveness.end();
    await refused;
    expect(signals).toEqual(["SIGKILL"]);
  });

  test("does not delay the error if another process holds its stderr", async () => {
    const { clock, started, request, stderr, liveness, exits } = fakeLeader();
    const message = '"/bin/sh" was not started: its leader has failed with "in time".';
    const refused = expect(reachGate(started, request)).rejects.toMatchObject({ message });
    stderr.write("in time\n");
    exits();
    liveness.end();
    await clock.advance(25);
    await refused;
    expect(stderr.destroyed).toBe(true);
  });

  test("is quoted up to 4 KiB", async () => {
    const { clock, started, request, stderr, liveness, exits } = fakeLeader();
    const words = "x".repeat(4 * 1024);
    const message = `"/bin/sh" was not started: its leader has failed with "${words}".`;
    const refused = expect(reachGate(started, request)).rejects.toMatchObject({ message });
    stderr.write(words);
    await settled();
    stderr.end("and more");
    exits();
    liveness.end();
    await clock.advance(25);
    await refused;
  });

  test("is over when it has ended and no process holds its pipe, and at the latest after a second", async () => {
    const one = fakeLeader();
    const over = abandon(one.started, one.clock);
    await settled();
    expect(one.signals).toEqual(["SIGKILL"]);
    one.exits();
    await settled();
    expect(await Promise.race([over, "pending"])).toBe("pending");
    one.liveness.end();
    expect(await over).toBe(true);
    expect(one.clock.elapsed()).toBe(0);

    const other = fakeLeader();
    const late = abandon(other.started, other.clock);
    await other.clock.advance(999);
    expect([await Promise.race([late, "pending"]), other.liveness.destroyed]).toEqual(["pending", false]);
    await other.clock.advance(1);
    expect(await late).toBe(false);
    expect(other.liveness.destroyed).toBe(false);
  });

  test("is no longer read once its command waits at the gate, because later output is the command's", async () => {
    const { started, request, status, stderr } = fakeLeader();
    const reached = reachGate(started, request);
    expect(stderr.listenerCount("data")).toBe(1);
    status.write("ready\n");
    await reached;
    expect(stderr.listenerCount("data")).toBe(0);
  });
});

describe("a start without enough resources", () => {
  test("is reported as such, even if the pipes are missing", async () => {
    const { spawn } = childProcess;
    const system = (instead: unknown): void => {
      Object.assign(childProcess, { spawn: instead });
      syncBuiltinESMExports();
    };
    onTestFinished(() => system(spawn));
    // A child as Node returns it then: without a pid, and without any streams.
    system(() => {
      const child = new EventEmitter();
      process.nextTick(() => child.emit("error", Object.assign(new Error("spawn EMFILE"), { code: "EMFILE" })));
      return child;
    });
    const clock = manualClock();
    const refused = expect(start({ ...starting(ordinary), clock })).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: the machine has no room for it (EMFILE).',
    });
    await clock.advance(775);
    await refused;
  });

  /** A pool in which the first `times` pipes fail. */
  const short = (code: string, times: number): { readonly pipes: PipePool; readonly tries: () => number } => {
    let tries = 0;
    const fromChild = (): undefined => {
      tries += 1;
      if (tries <= times) throw Object.assign(new Error(code), { code });
    };
    return { pipes: { fromChild, toChild: () => undefined } as unknown as PipePool, tries: () => tries };
  };

  test.each(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"])("is retried with increasing pauses: %s", async (code) => {
    const clock = manualClock();
    const { pipes: scarce, tries } = short(code, 2);
    const started = start({ ...starting(ordinary), pipes: scarce, clock });
    await settled();
    expect([tries(), clock.pending]).toEqual([1, [{ inMs: 25, idle: false }]]);
    await clock.advance(25);
    expect([tries(), clock.pending]).toEqual([2, [{ inMs: 50, idle: false }]]);
    await clock.advance(50);
    await abandon(await started, systemClock);
  });

  test("is given up in the end, with a hint", async () => {
    const clock = manualClock();
    const { pipes: scarce, tries } = short("EAGAIN", 100);
    const refused = expect(start({ ...starting(ordinary), pipes: scarce, clock })).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: the machine has no room for it (EAGAIN).',
      hint: "Wait until other processes have ended, or raise the limits on processes, open files and memory.",
    });
    await clock.advance(775);
    await refused;
    expect(tries()).toBe(6);
  });

  test("is not retried for any other reason", async () => {
    const { pipes: scarce, tries } = short("EACCES", 100);
    await expect(start({ ...starting(ordinary), pipes: scarce, clock: manualClock() })).rejects.toMatchObject({
      ...{ code: "not_started", message: '"/bin/sh" was not started: EACCES.' },
    });
    expect(tries()).toBe(1);
  });
});

describe("the status of a command", () => {
  const endAfter = async (...texts: readonly string[]) => {
    const stream = new PassThrough();
    const status = new Status(stream);
    for (const text of texts) stream.write(text);
    await settled();
    stream.destroy();
    return status.ended;
  };

  test.each([
    [["exit 0\n"], { code: 0, signal: undefined }],
    [["exit 128\n"], { code: 128, signal: undefined }],
    [["exit 129\n"], { code: undefined, signal: "SIGHUP" }],
    [["exit 137\n"], { code: undefined, signal: "SIGKILL" }],
    [["exit 159\n"], { code: undefined, signal: "SIGSYS" }],
    [["exit 160\n"], { code: 160, signal: undefined }],
    [["exit 255\n"], { code: 255, signal: undefined }],
    [["code 137\n"], { code: 137, signal: undefined }],
    [["signal 9\n"], { code: undefined, signal: "SIGKILL" }],
    [["ready\nexi", "t 1", "2\n"], { code: 12, signal: undefined }],
    [["exit 1\nexit 2\n"], { code: 1, signal: undefined }],
    [["exit 1"], undefined],
    [["exit 1234\n"], undefined],
    [["exit x\n", "exit\n", "exit 1x\n", "exit x1\n", "word 1\n"], undefined],
    [[`${"x".repeat(300)}exit 1\n`], undefined],
    [[], undefined],
  ])("is its exit status, or none: %j", async (texts, end) => {
    expect(await endAfter(...texts)).toEqual(end);
  });

  test("is ready at the gate, whatever was written before", async () => {
    const stream = new PassThrough();
    const status = new Status(stream);
    let ready = false;
    void status.ready.then(() => {
      ready = true;
    });
    stream.write("readyish\nread");
    await settled();
    expect(ready).toBe(false);
    stream.write("y\n");
    await settled();
    expect(ready).toBe(true);
  });

  test("that never becomes ready ends the leader and fails the start", async () => {
    const clock = manualClock();
    const request = { ...starting({ file: SHELL, args: ["-c", "echo  wait  >&2; exec sleep 8000301"] }), clock };
    const started = await start(request);
    const refused = expect(reachGate(started, request)).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: its leader was not ready within 15 s.',
      hint: "Run `belay doctor`: it tests the containment of processes, and recommends fixes.",
    });
    await clock.advance(START_MS_MAX - 1);
    expect(started.child.killed).toBe(false);
    await clock.advance(1);
    expect(started.child.killed).toBe(true);
    await started.exited;
    await clock.advance(1_000);
    await refused;
  });
});

const IDENTITY = { pid: 7, startTime: 8, bootId: "boot" };

function led(command: string) {
  const child = childProcess.spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  // After its end it stays open until it is closed, so that the two can be distinguished.
  const liveness = new PassThrough({ autoDestroy: false });
  const started = { child: child as ChildProcess & { pid: number }, liveness, control: child.stdin as Writable };
  return { child, liveness, leader: toLeader(started, IDENTITY) };
}

describe("the leader for a containment", () => {
  test("a leader reads its control pipe, and its exit has a code", async () => {
    const { child, leader } = led("read word; exit $word");
    expect([leader.identity, leader.exit]).toEqual([IDENTITY, undefined]);
    leader.write("5\n");
    await once(child, "exit");
    expect(leader.exit).toEqual({ code: 5, signal: null });
  });

  test("a leader receives the given signal, and its exit then has no code", async () => {
    const { child, leader } = led("echo up; read word");
    await once(child.stdout, "data");
    leader.kill("SIGUSR1");
    await once(child, "exit");
    expect(leader.exit).toEqual({ code: null, signal: "SIGUSR1" });
  });

  test("a tree is released once the liveness pipe has ended, or was closed by us", async () => {
    const [one, other] = [led("exit"), led("exit")];
    expect([one.leader.released, other.leader.released]).toEqual([false, false]);
    one.liveness.resume().end();
    await once(one.liveness, "end");
    expect([one.liveness.closed, one.leader.released]).toEqual([false, true]);
    other.liveness.destroy();
    await once(other.liveness, "close");
    expect([other.liveness.readableEnded, other.leader.released]).toEqual([false, true]);
  });
});
