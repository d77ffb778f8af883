import childProcess from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import type { LaunchPlan, Wrapped } from "../containment/containment.ts";
import { childrenOf, identityOf, isStill } from "../tree/proc.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { type Pipe, PipePool } from "./pipe-pool.ts";
import { abandon, type Exit, reachGate, START_MS_MAX, type Started, type Starting, Status, start } from "./start.ts";

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
  test("of a leader that is not there says so", async () => {
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
    const wish = { ...starting({ file: "/no/such/leader", args: [] }), openInput: true };
    await expect(start({ ...wish, pipes: pipes as unknown as PipePool })).rejects.toThrow("ENOENT");
    expect(taken.map((pipe) => pipe?.stream.destroyed)).toEqual([true, true, true]);
  });

  test("that was refused on the way is refused as it was", async () => {
    const refusal = new ControlError("shutting_down", "No pipes are made any more.");
    const fromChild = (): never => {
      throw refusal;
    };
    const pipes = { fromChild } as unknown as PipePool;
    await expect(start({ ...starting(ordinary), pipes })).rejects.toBe(refusal);
  });

  test("in a directory that has vanished says so", { meta: { id: "process/vanished-directory-refused" } }, async () => {
    const gone = starting(ordinary, { cwd: join(home, "gone") });
    await expect(start(gone)).rejects.toMatchObject({ code: "not_started" });
  });

  test("with more than the system takes is invalid", {
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

  test("of a leader that fails tells its words", async () => {
    const wish = starting({
      file: SHELL,
      args: ["-c", "echo '  it   is'; echo 'it  is' >&2; echo broken >&2; exit 1"],
    });
    const started = await start(wish);
    await expect(reachGate(started, wish)).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: what holds it has failed and says "it is broken".',
    });
  });

  test("of a leader that fails without a word says that it has failed", async () => {
    const wish = starting({ file: SHELL, args: ["-c", "exit 1"] });
    const message = '"/bin/sh" was not started: what holds it has failed (it exited with code 1).';
    await expect(reachGate(await start(wish), wish)).rejects.toMatchObject({ message });
  });

  test("that is given up before the gate leaves nobody, and the command has not begun", async () => {
    const wish = starting(ordinary);
    const started = await start(wish);
    await reachGate(started, wish);
    const [gate] = childrenOf(started.child.pid);
    const identity = identityOf(gate ?? 0);
    let said = "";
    started.stdout.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await abandon(started, systemClock);
    // The kernel closes the files of a process a moment before it is gone.
    await expect.poll(() => identity !== undefined && isStill(identity)).toBe(false);
    expect(said).toBe("");
  });

  test("from a worker is refused: the tree would end with the worker", {
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

describe("a leader that was started", () => {
  const bare = new PipePool(join(home, "bare"), true);

  test("reads and speaks by what Node has, where there are no pipes with names, and tells how it ended", async () => {
    const script = 'echo noise >&5; exec 5>&-; read -r code; echo "read $code"; exit "$code"';
    const wish = { ...starting({ file: SHELL, args: ["-c", script] }), openInput: true, pipes: bare };
    const started = await start(wish);
    let said = "";
    started.stdout.on("data", (data: Buffer) => {
      said += data.toString();
    });
    // Nobody listens to what is said on the liveness pipe, and its end is heard all the same.
    await expect.poll(() => started.liveness.closed).toBe(true);
    started.stdin?.write("3\n");
    expect(await started.exited).toEqual({ code: 3, signal: undefined });
    await expect.poll(() => said).toBe("read 3\n");
    await abandon(started, systemClock);
  });

  test("and was killed says by what", async () => {
    const started = await start(starting({ file: SHELL, args: ["-c", "exec sleep 8000302"] }));
    await abandon(started, systemClock);
    expect(await started.exited).toEqual({ code: undefined, signal: "SIGKILL" });
  });

  test("may die under whoever writes to it, and may be out of reach of a signal: neither is an error", async () => {
    const wish = { ...starting({ file: SHELL, args: ["-c", "exec sleep 8000303"] }), openInput: true, pipes: bare };
    const started = await start(wish);
    for (const one of [started.child, ...started.child.stdio]) {
      expect(() => one?.emit("error", new Error("EPIPE"))).not.toThrow();
    }
    await abandon(started, systemClock);
  });
});

/** A leader that is a few streams: only the order of things is real here. */
function staged() {
  const clock = manualClock();
  const exited = Promise.withResolvers<Exit>();
  const [stdin, stdout, stderr, control, liveness, status] = Array.from({ length: 6 }, () => new PassThrough());
  if (!stdin || !stdout || !stderr || !control || !liveness || !status) throw new Error("six were made");
  liveness.resume();
  const signals: string[] = [];
  const child = { pid: 4_194_305, kill: (signal: string) => void signals.push(signal) };
  const streams = { stdin, stdout, stderr, control, liveness };
  const started = { ...streams, child, status: new Status(status), exited: exited.promise } as unknown as Started;
  const wish: Starting = { ...starting(ordinary), clock };
  return {
    ...streams,
    clock,
    status,
    signals,
    started,
    wish,
    exits: () => exited.resolve({ code: 1, signal: undefined }),
  };
}

describe("a leader that has failed", () => {
  test("has said what arrives a moment after its end", async () => {
    const { clock, started, wish, stderr, liveness, signals, exits } = staged();
    const message = '"/bin/sh" was not started: what holds it has failed and says "too late".';
    const refused = expect(reachGate(started, wish)).rejects.toMatchObject({ message });
    exits();
    await clock.advance(24);
    expect(signals).toEqual([]);
    stderr.end("too late\n");
    liveness.end();
    await refused;
    expect(signals).toEqual(["SIGKILL"]);
  });

  test("is not waited for by whoever holds its stderr", async () => {
    const { clock, started, wish, stderr, liveness, exits } = staged();
    const message = '"/bin/sh" was not started: what holds it has failed and says "in time".';
    const refused = expect(reachGate(started, wish)).rejects.toMatchObject({ message });
    stderr.write("in time\n");
    exits();
    liveness.end();
    await clock.advance(25);
    await refused;
    expect(stderr.destroyed).toBe(true);
  });

  test("is quoted with its first 4 KiB", async () => {
    const { clock, started, wish, stderr, liveness, exits } = staged();
    const words = "x".repeat(4 * 1024);
    const message = `"/bin/sh" was not started: what holds it has failed and says "${words}".`;
    const refused = expect(reachGate(started, wish)).rejects.toMatchObject({ message });
    stderr.write(words);
    await settled();
    stderr.end("and more");
    exits();
    liveness.end();
    await clock.advance(25);
    await refused;
  });

  test("is over when it has ended and nobody holds its pipe, and at the latest after a second", async () => {
    const one = staged();
    const over = abandon(one.started, one.clock);
    await settled();
    expect(one.signals).toEqual(["SIGKILL"]);
    one.exits();
    await settled();
    expect(await Promise.race([over, "goes on"])).toBe("goes on");
    one.liveness.end();
    expect(await over).toBe(true);
    expect(one.clock.elapsed()).toBe(0);

    const other = staged();
    const late = abandon(other.started, other.clock);
    await other.clock.advance(999);
    expect([await Promise.race([late, "goes on"]), other.liveness.destroyed]).toEqual(["goes on", false]);
    await other.clock.advance(1);
    expect(await late).toBe(false);
    expect(other.liveness.destroyed).toBe(false);
  });

  test("is no longer listened to once its command waits at the gate: what comes then is the command's", async () => {
    const { started, wish, status, stderr } = staged();
    const reached = reachGate(started, wish);
    expect(stderr.listenerCount("data")).toBe(1);
    status.write("ready\n");
    await reached;
    expect(stderr.listenerCount("data")).toBe(0);
  });
});

describe("a start for which the machine has no room", () => {
  test("also not for its pipes, is told as what it is", async () => {
    const { spawn } = childProcess;
    const system = (instead: unknown): void => {
      Object.assign(childProcess, { spawn: instead });
      syncBuiltinESMExports();
    };
    onTestFinished(() => system(spawn));
    // As Node has a child then: without a pid, and without any streams.
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

  /** Pipes of which the first `times` cannot be had. */
  const short = (code: string, times: number): { readonly pipes: PipePool; readonly tries: () => number } => {
    let tries = 0;
    const fromChild = (): undefined => {
      tries += 1;
      if (tries <= times) throw Object.assign(new Error(code), { code });
    };
    return { pipes: { fromChild, toChild: () => undefined } as unknown as PipePool, tries: () => tries };
  };

  test.each(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"])(
    "is tried again, with more and more patience: %s",
    async (code) => {
      const clock = manualClock();
      const { pipes: scarce, tries } = short(code, 2);
      const started = start({ ...starting(ordinary), pipes: scarce, clock });
      await settled();
      expect([tries(), clock.pending]).toEqual([1, [{ inMs: 25, idle: false }]]);
      await clock.advance(25);
      expect([tries(), clock.pending]).toEqual([2, [{ inMs: 50, idle: false }]]);
      await clock.advance(50);
      await abandon(await started, systemClock);
    },
  );

  test("is given up in the end, and says what to do", async () => {
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

  test("is not tried again for any other reason", async () => {
    const { pipes: scarce, tries } = short("EACCES", 100);
    await expect(start({ ...starting(ordinary), pipes: scarce, clock: manualClock() })).rejects.toMatchObject({
      ...{ code: "not_started", message: '"/bin/sh" was not started: EACCES.' },
    });
    expect(tries()).toBe(1);
  });
});

describe("what a leader says of its command", () => {
  const heard = async (...texts: readonly string[]) => {
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
  ])("is its end, or no word of it: %j", async (texts, end) => {
    expect(await heard(...texts)).toEqual(end);
  });

  test("is that it waits at its gate, whatever comes before", async () => {
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

  test("is not heard from a leader that never gets there: it is ended, and told as what it is", async () => {
    const clock = manualClock();
    const wish = { ...starting({ file: SHELL, args: ["-c", "echo  wait  >&2; exec sleep 8000301"] }), clock };
    const started = await start(wish);
    const refused = expect(reachGate(started, wish)).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: what holds it was not ready within 15 s.',
      hint: "Run `belay doctor`: it tests what holds processes, and says how to mend it.",
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
