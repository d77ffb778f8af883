import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Child, ChildEnd, Mechanism, SpawnRequest } from "../ports/spawner.ts";
import { systemClock } from "../system/system-clock.ts";
import { type OpenSpawner, openSpawner, type SpawnerOptions } from "./spawner.ts";
import { openLedger } from "./tree/ledger.ts";
import { identityOf } from "./tree/proc.ts";

let home: string;
let dir: string;
let workspace: string;
let count = 0;
let spawner: OpenSpawner;

const open = (more: Partial<SpawnerOptions> = {}): Promise<OpenSpawner> =>
  openSpawner({ dir, workspace, clock: systemClock, ...more });

beforeAll(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "belay-spawner-")));
  dir = join(home, "state");
  workspace = mkdtempSync(join(home, "workspace-"));
  spawner = await open();
});

afterAll(async () => {
  await spawner.close();
  rmSync(home, { recursive: true, force: true });
});

function request(command: SpawnRequest["command"], more: Partial<SpawnRequest> = {}): SpawnRequest {
  count += 1;
  return { id: `proc_test.${count}`, sessionId: "ses_test", command, ...more };
}

const start = (command: SpawnRequest["command"], more?: Partial<SpawnRequest>): Promise<Child> =>
  spawner.spawn(request(command, more));

const stdoutOf = (child: Child): string => child.output.excerpt({ stream: "stdout" }).head;
const stderrOf = (child: Child): string => child.output.excerpt({ stream: "stderr" }).head;

async function run(
  command: SpawnRequest["command"],
  more?: Partial<SpawnRequest>,
): Promise<ChildEnd & { out: string }> {
  const child = await start(command, more);
  const end = await child.ended;
  return { ...end, out: stdoutOf(child) };
}

async function says(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

describe("a process", () => {
  test("has separate output streams and an exit code", async () => {
    const wanted = request("echo out; echo err >&2; exit 7");
    const child = await spawner.spawn(wanted);
    expect(await child.ended).toMatchObject({ code: 7, signal: undefined, stopped: false, signals: [], left: 0 });
    expect(stdoutOf(child)).toBe("out\n");
    expect(stderrOf(child)).toBe("err\n");
    expect((await spawner.output(wanted.id))?.counts.bytes).toEqual({ stdout: 4, stderr: 4, all: 8 });
  });

  test("passes its stdout on as it arrives, whatever is kept of it", async () => {
    const pieces: Buffer[] = [];
    const limits = { outputBytesMax: 1_000 };
    const hear = (piece: Uint8Array): void => void pieces.push(Buffer.from(piece));
    const child = await start("echo err >&2; head -c 200000 /dev/zero | tr '\\0' x; echo end", { limits, hear });
    await child.ended;
    expect(Buffer.concat(pieces).toString()).toBe(`${"x".repeat(200_000)}end\n`);
    expect(child.output.counts.kept.stdout).toBeLessThan(200_000);
  });

  test("gets its arguments unchanged", async () => {
    expect((await run(["printf", "%s|", "a b", "$HOME", "'", "\n"])).out).toBe("a b|$HOME|'|\n|");
  });

  test("ended by a signal reports its name", async () => {
    expect(await run(["sh", "-c", "kill -SEGV $$"])).toMatchObject({ code: undefined, signal: "SIGSEGV" });
  });

  test("may open its streams by name", async () => {
    const child = await start("echo one > /dev/stdout; echo two > /dev/stderr");
    expect(await child.ended).toMatchObject({ code: 0 });
    expect(stdoutOf(child)).toBe("one\n");
    expect(stderrOf(child)).toBe("two\n");
  });

  test("without input reads its end at once", { meta: { id: "process/no-input-means-eof" } }, async () => {
    expect((await run("cat; echo end")).out).toBe("end\n");
  });

  test("has no pipe of ours except the liveness pipe", { meta: { id: "G38/no-inherited-pipes" } }, async () => {
    const { out } = await run("for fd in 3 4 5 6 7 8; do [ -e /proc/self/fd/$fd ] && echo $fd; done; :");
    expect(out).toBe("");
  });

  test("G35: has none of the server's secrets in its environment, and cannot read them from the server", async () => {
    process.env.BELAY_TEST_SECRET = "canary-4711";
    try {
      const { out } = await run("env; cat /proc/[0-9]*/environ; echo; echo $$ $PPID");
      expect(out).not.toContain("canary-4711");
      expect(out).toContain("BELAY_PROCESS=proc_test.");
      if (spawner.tier === "namespace") expect(out.trim().split("\n").at(-1)).toMatch(/^\d{1,3} 1$/);
    } finally {
      delete process.env.BELAY_TEST_SECRET;
    }
  });

  test("is ended with its background processes, which are counted", async () => {
    expect(await run("sleep 8000123 & exit 3")).toMatchObject({ code: 3, left: 1, escaped: [], stopped: false });
  });

  test("has the output of a descendant that is written right after the end of the command", async () => {
    const { out } = await run("(while [ -d /proc/$$ ]; do :; done; echo late) & exit 0");
    expect(out).toBe("late\n");
  });
});

describe("stopping", () => {
  test("G19: lets it clean up, and reports its signals", { meta: { id: "G19/polite-stop-runs-traps" } }, async () => {
    const child = await start("trap 'echo tidied; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ code: 3, stopped: true, signals: ["SIGTERM"], escaped: [] });
    expect(stdoutOf(child)).toContain("tidied");
  });

  test("gives the grace also to descendants of a command that has ended at once", async () => {
    const slow = `trap "sleep 0.05; echo tidied; exit" TERM; echo up; while :; do sleep 0.01; done`;
    const child = await start(`sh -c '${slow}' & wait`);
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ signal: "SIGTERM", stopped: true, escaped: [] });
    expect(stdoutOf(child)).toContain("tidied");
  });

  test("kills a process that ignores SIGTERM after its grace", { meta: { id: "G19/forced-after-grace" } }, async () => {
    const child = await start("trap '' TERM; echo up; while :; do sleep 0.01; done", { graceMs: 20 });
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ signal: "SIGKILL", signals: ["SIGTERM", "SIGKILL"], escaped: [] });
  });

  test("is hurried by a second stop without grace", async () => {
    const child = await start("trap '' TERM; echo up; while :; do sleep 0.01; done", { graceMs: 30_000 });
    await says(child, "up");
    child.stop();
    child.stop(0);
    expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"], escaped: [] });
  });

  test("after the end does nothing", async () => {
    const child = await start("true");
    const end = await child.ended;
    child.stop();
    expect(await child.ended).toEqual(end);
    expect(end.signals).toEqual([]);
  });

  test("by `close` stops everything, and no process is started afterwards", async () => {
    const other = await open({ dir: join(home, "closing") });
    const child = await other.spawn(request("echo up; sleep 8000124"));
    await other.close();
    expect(readdirSync(join(home, "closing", "ledger"))).toEqual([]);
    expect((await child.ended).stopped).toBe(true);
    await expect(other.spawn(request("true"))).rejects.toMatchObject({ code: "shutting_down" });
  });
});

describe("input", () => {
  test("arrives in order, and ends when it is ended", async () => {
    const child = await start("cat", { stdin: "open" });
    await child.write("one\n");
    await child.write(Buffer.from("two\n"));
    child.endInput();
    expect(await child.ended).toMatchObject({ code: 0 });
    expect(stdoutOf(child)).toBe("one\ntwo\n");
  });

  test("is refused by a process that was started without", async () => {
    const child = await start("cat");
    await expect(child.write("x")).rejects.toMatchObject({ code: "invalid" });
    await child.ended;
  });

  test("is refused once it has ended", async () => {
    const child = await start("cat", { stdin: "open" });
    child.endInput();
    await expect(child.write("x")).rejects.toMatchObject({ code: "closed" });
    await child.ended;
  });

  test("that was not read when the process ends rejects", async () => {
    const child = await start("echo up; sleep 8000125", { stdin: "open" });
    await says(child, "up");
    // More than a pipe holds.
    const written = child.write("x".repeat(500_000));
    child.stop(0);
    await expect(written).rejects.toMatchObject({ code: "closed" });
    await child.ended;
  });
});

describe("a start that fails", () => {
  const refusals: readonly [string, Partial<SpawnRequest> & Pick<SpawnRequest, "command">, string, RegExp][] = [
    ["a missing program", { command: ["no-such-program"] }, "not_started", /no program of that name/],
    ["a missing file", { command: ["./no/such/file"] }, "not_started", /no such file/],
    ["a directory", { command: ["/tmp"] }, "not_started", /not a file/],
    ["an empty command", { command: " " }, "invalid", /empty/],
    ["a directory outside", { command: "true", cwd: "/" }, "invalid", /outside/],
    ["a terminal without columns", { command: "true", terminal: { columns: 0, rows: 1 } }, "invalid", /columns/],
  ];

  test.each(refusals)("leaves nothing: %s", async (_, wanted, code, words) => {
    const { id, ...rest } = request(wanted.command, wanted);
    await expect(spawner.spawn({ id, ...rest })).rejects.toMatchObject({ code, message: expect.stringMatching(words) });
    expect(existsSync(join(dir, "output", id))).toBe(false);
    expect(existsSync(join(dir, "ledger", `${id}.json`))).toBe(false);
    expect(await spawner.output(id)).toBeUndefined();
  });

  test("rejects a file that is not executable", async () => {
    writeFileSync(join(workspace, "text"), "echo no", { mode: 0o644 });
    await expect(start(["./text"])).rejects.toMatchObject({
      code: "not_started",
      message: expect.stringMatching(/not executable/),
    });
  });

  test("G11: that is stopped on its way never begins the command", async () => {
    const stop = new AbortController();
    const file = join(workspace, "begun");
    const wanted = request(`touch '${file}'`, { signal: stop.signal });
    const starting = spawner.spawn(wanted);
    // Its leader is starting by now; the command waits behind its gate.
    setImmediate(() => stop.abort());
    const refusal = {
      code: "not_started",
      message: '"/bin/sh" was not started: it was stopped before it could begin.',
    };
    await expect(starting).rejects.toMatchObject(refusal);
    expect([file, join(dir, "output", wanted.id), join(dir, "ledger", `${wanted.id}.json`)].filter(existsSync)).toEqual(
      [],
    );
    await expect(start("true", { signal: AbortSignal.abort() })).rejects.toMatchObject(refusal);
  });

  test("rejects an id that was used before, and keeps its output", async () => {
    const again = request("true");
    await (await spawner.spawn(again)).ended;
    await expect(spawner.spawn(again)).rejects.toMatchObject({ code: "conflict" });
    expect(await spawner.output(again.id)).toBeDefined();
  });
});

describe("request options", () => {
  test("limits of a request override those of the server, and those the defaults", async () => {
    const other = await open({ limits: { fileBytesMax: 1024, cpuSecondsMax: 90 } });
    const limitsFor = async (limits: SpawnRequest["limits"]): Promise<string> => {
      const child = await other.spawn(request("ulimit -f; ulimit -t", limits === undefined ? {} : { limits }));
      await child.ended;
      return stdoutOf(child);
    };
    expect(await limitsFor(undefined)).toBe("2\n90\n");
    expect(await limitsFor({ fileBytesMax: 512 })).toBe("1\n90\n");
    await other.close();
    expect((await run("ulimit -t")).out).toBe("unlimited\n");
  });

  test("a variable is passed on if the operator allows it", async () => {
    process.env.BELAYTEST_LET = "through";
    try {
      const other = await open({ env: { allow: ["BELAYTEST_LET"] } });
      const child = await other.spawn(request('echo "$BELAYTEST_LET"'));
      await child.ended;
      expect(stdoutOf(child)).toBe("through\n");
      await other.close();
      expect((await run('echo "$BELAYTEST_LET"')).out).toBe("\n");
    } finally {
      delete process.env.BELAYTEST_LET;
    }
  });

  test("the grace is that of the request, of the server, or the default", async () => {
    const stubborn = "trap '' TERM; echo up; while :; do sleep 0.01; done";
    // With another grace than the right one the test would time out.
    for (const [server, own] of [
      [1, undefined],
      [90_000_000, 1],
    ] as const) {
      const other = await open({ graceMs: server });
      const child = await other.spawn(request(stubborn, own === undefined ? {} : { graceMs: own }));
      await says(child, "up");
      child.stop();
      expect(await child.ended).toMatchObject({ signals: ["SIGTERM", "SIGKILL"] });
      await other.close();
    }
  });

  test("a profile that the mechanism does not support is refused, with a hint", async () => {
    const other = await open({ dir: join(home, "group"), mechanism: "group" });
    expect([other.mechanism, other.tier]).toEqual(["group", "group"]);
    await expect(other.spawn(request("true", { profile: "workspace" }))).rejects.toMatchObject({
      code: "uncontained",
      message: 'The profile "workspace" needs more than "group" can do here.',
      hint: expect.stringContaining("apt-get install bubblewrap"),
    });
    const child = await other.spawn(request("true"));
    expect(child.profile).toBe("none");
    await child.ended;
    await other.close();
  });

  test("the default profile is the strongest that the mechanism supports for every command", async () => {
    const child = await start("true");
    expect(child.profile).toBe(spawner.tier === "namespace" ? "contain" : "none");
    await child.ended;
  });

  test("the temporary directory is the given one, unless only the workspace is writable", async () => {
    const env = { TMPDIR: workspace };
    expect((await run('echo "$TMPDIR"', { env })).out).toBe(`${workspace}\n`);
    if (spawner.mechanism !== "bubblewrap") return;
    expect((await run('echo "$TMPDIR"', { env, profile: "workspace" })).out).toBe("/tmp\n");
  });

  test("a session with a directory begins there", async () => {
    const own = mkdtempSync(join(home, "own-"));
    expect((await run("pwd", { workspace: own })).out).toBe(`${own}\n`);
  });

  test("an invalid id is refused, and no output is kept under it", async () => {
    const wrong = "../test.1" as SpawnRequest["id"];
    await expect(spawner.spawn({ ...request("true"), id: wrong })).rejects.toMatchObject({
      code: "invalid",
      message: "The id of a process must begin with proc_.",
    });
    expect(await spawner.output(wrong)).toBeUndefined();
  });

  test("the output of a running process is its own, that of an ended one is read from its files", async () => {
    const wanted = request("echo up; read x", { stdin: "open" });
    const child = await spawner.spawn(wanted);
    expect(await spawner.output(wanted.id)).toBe(child.output);
    child.endInput();
    await child.ended;
    const saved = await spawner.output(wanted.id);
    expect(saved).not.toBe(child.output);
    expect(saved?.excerpt().head).toBe("up\n");
  });
});

describe("a program that exits without `close`", () => {
  test("kills everything that runs; after `close` nothing is left to do", async () => {
    const before = process.listeners("exit");
    const other = await open();
    const added = process.listeners("exit").filter((one) => !before.includes(one));
    const child = await other.spawn(request("echo up; exec sleep 8000127"));
    await says(child, "up");
    for (const act of added) Reflect.apply(act, process, [0]);
    expect(await child.ended).toMatchObject({ signal: "SIGKILL", stopped: false, escaped: [] });
    await other.close();
    expect(process.listeners("exit")).toEqual(before);
  });
});

test("the operator gets a notice of output that could not be kept", async () => {
  const notices: string[] = [];
  const other = await open({ onNotice: (text) => void notices.push(text) });
  const wanted = request("read x", { stdin: "open" });
  const child = await other.spawn(wanted);
  rmSync(join(dir, "output", wanted.id), { recursive: true });
  child.endInput();
  await child.ended;
  expect(notices).toEqual([expect.stringContaining("The counts could not be written")]);
  await other.close();
});

describe("processes of earlier servers", () => {
  test("are ended and reported, and only the pipes of dead servers are removed", async () => {
    const left = join(home, "left");
    const ledger = join(left, "ledger");
    const self = identityOf(process.pid);
    if (self === undefined) throw new Error("We are here.");
    const dead = { ...self, startTime: 1 };
    const intent = { sessionId: "ses_left", cookie: "proc_left.1:x", mechanism: "group" } as const;
    openLedger({ dir: ledger, clock: systemClock, owner: dead }).intend({ id: "proc_left.1", ...intent });
    const parent = identityOf(process.ppid);
    if (parent === undefined) throw new Error("Our parent process is there.");
    const ofDead = [`pipes-${process.pid}-1`, "pipes-4194305-7", "pipes-4194305-77"];
    const ofLiving = [`pipes-${parent.pid}-${parent.startTime}`];
    const unrelated = ["pipes-mine", "other", "pipes-4194305-7x", "xpipes-4194305-7"];
    for (const name of [...ofDead, ...ofLiving, ...unrelated]) mkdirSync(join(left, name));
    const other = await open({ dir: left });
    expect(other.swept).toMatchObject([
      { id: "proc_left.1", sessionId: "ses_left", killed: [], escaped: [], sure: true },
    ]);
    expect(readdirSync(ledger)).toEqual([]);
    const kept = readdirSync(left).filter((name) => name.includes("pipes-") || name === "other");
    const own = `pipes-${self.pid}-${self.startTime}`;
    expect(kept.toSorted()).toEqual([own, ...ofLiving, ...unrelated].toSorted());
    await other.close();
    expect(existsSync(join(left, own))).toBe(false);
  });
});

describe("the tier", () => {
  test("G20: that is required and missing refuses to open, with a hint", async () => {
    const opening = open({ dir: join(home, "tier"), mechanism: "group", requireTier: "namespace" });
    await expect(opening).rejects.toMatchObject({ code: "uncontained", message: expect.stringContaining('"group"') });
  });

  test("reports a mechanism that differs from the last start", async () => {
    const own = join(home, "changes");
    const notices: string[] = [];
    const openWith = async (mechanism: Mechanism): Promise<void> => {
      const opened = await open({ dir: own, mechanism, onNotice: (text) => notices.push(text) });
      await opened.close();
    };
    await openWith("group");
    await openWith("group");
    expect(notices).toEqual([]);
    await openWith("anchor");
    expect(notices).toEqual([
      "Processes are held by anchor (tier anchor) from now on; at the last start it was group (tier group).",
    ]);
  });

  test("has a doctor that reports every mechanism, and its limits", async () => {
    const { mechanisms, best } = await spawner.doctor();
    expect(mechanisms.map(({ mechanism }) => mechanism)).toEqual([
      "bubblewrap",
      "unshare",
      "cgroup",
      "anchor",
      "group",
    ]);
    expect(best).toBe(spawner.mechanism);
    for (const { test: result, fix, available } of mechanisms) {
      if (result.kind === "passed") expect(fix).toBeUndefined();
      expect(available || result.kind === "failed").toBe(true);
    }
    expect(mechanisms.at(-1)?.limits.join(" ")).toContain("escapes");
  });
});
