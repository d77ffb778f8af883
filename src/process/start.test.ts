import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, test } from "vitest";
import { systemClock } from "../engine/system-clock.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import type { Plan, Wrapped } from "./containment.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { PipePool } from "./pipe-pool.ts";
import { childrenOf, identityOf, isStill } from "./proc.ts";
import { abandon, reachGate, START_MS_MAX, type Starting, Status, start } from "./start.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-start-")));
const pipes = new PipePool(join(home, "pipes"));
afterAll(() => {
  pipes.close();
  rmSync(home, { recursive: true, force: true });
});

const plan: Plan = {
  ...{ id: "proc_start.1", cookie: "proc_start.1:x", argv: ["/bin/sh", "-c", "echo begun"], cwd: home },
  workspace: home,
  ...{ env: { PATH: "/usr/bin:/bin" }, profile: "none", limits: { processesMax: 100 }, terminal: false },
};

const starting = (wrapped: Wrapped, more: Partial<Plan> = {}): Starting => ({
  ...{ plan: { ...plan, ...more }, wrapped, openInput: false, pipes, clock: systemClock },
});

const ordinary: Wrapped = { file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] };

describe("a start", () => {
  test("of a leader that is not there says so", async () => {
    await expect(start(starting({ file: "/no/such/leader", args: [] }))).rejects.toMatchObject({ code: "not_started" });
  });

  test("in a directory that has vanished says so", async () => {
    const gone = starting(ordinary, { cwd: join(home, "gone") });
    await expect(start(gone)).rejects.toMatchObject({ code: "not_started" });
  });

  test("with more than the system takes is invalid", async () => {
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
    const message = '"/bin/sh" was not started: what holds it has failed.';
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

  test("from a worker is refused: the tree would end with the worker", async () => {
    const module = new URL("./spawner.ts", import.meta.url).href;
    const code = `import(${JSON.stringify(module)})
      .then(({ openSpawner }) => openSpawner({ dir: "unused", workspace: "unused" }))
      .catch((error) => require("node:worker_threads").parentPort.postMessage(error.code));`;
    const worker = new Worker(code, { eval: true });
    const answer = await new Promise((resolve) => worker.once("message", resolve));
    await worker.terminate();
    expect(answer).toBe("uncontained");
  });
});

describe("a start for which the machine has no room", () => {
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
