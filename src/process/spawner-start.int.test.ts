// Starts that fail, at each possible step: they leave nothing, and the id is free again.
import { spawn as spawnProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../ports/clock.ts";
import type { Child, SpawnRequest } from "../ports/spawner.ts";
import { systemClock } from "../system/system-clock.ts";
import { lookAtMachine } from "./containment/machine.ts";
import { type OpenSpawner, openSpawner, type SpawnerOptions } from "./spawner.ts";
import { listProcesses } from "./tree/proc.ts";
import { PROC_PROCESS_TABLE } from "./tree/proc-process-table.ts";
import type { ProcessTable } from "./tree/process-table.ts";

let home: string;
let dir: string;
let count = 0;

beforeAll(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "belay-start-")));
  dir = join(home, "state");
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

async function open(more: Partial<SpawnerOptions> = {}): Promise<OpenSpawner> {
  const spawner = await openSpawner({ dir, workspace: home, clock: systemClock, mechanism: "group", ...more });
  onTestFinished(() => spawner.close());
  return spawner;
}

function request(more: Partial<SpawnRequest> = {}): SpawnRequest {
  count += 1;
  return { id: `proc_start.${count}`, sessionId: "ses_test", command: "echo done", ...more };
}

/** A signal that becomes aborted at the given check, and not before. */
function abortedAtCheck(
  number: number,
  then: () => void = () => {},
): { readonly signal: AbortSignal; readonly looks: () => number } {
  let looks = 0;
  const signal = new AbortController().signal;
  Object.defineProperty(signal, "aborted", {
    get: () => {
      looks += 1;
      if (looks === number) then();
      return looks >= number;
    },
  });
  return { signal, looks: () => looks };
}

async function carriersOf(id: string): Promise<readonly number[]> {
  const all = await listProcesses({ cookies: true });
  return all.filter(({ cookies }) => cookies.some((one) => one.startsWith(`${id}:`))).map(({ pid }) => pid);
}

/** No process has its cookie, no file its id, and the id can be used again. */
async function leavesNothing(spawner: OpenSpawner, { id }: SpawnRequest): Promise<void> {
  expect(await carriersOf(id)).toEqual([]);
  expect([join(dir, "output", id), join(dir, "ledger", `${id}.json`)].filter((path) => existsSync(path))).toEqual([]);
  const again = await spawner.spawn(request({ id }));
  expect(await again.ended).toMatchObject({ code: 0 });
}

const STOPPED = {
  code: "not_started",
  message: '"/bin/sh" was not started: it was stopped before it could begin.',
};

describe("a start that is stopped", () => {
  test("before its first step creates nothing, and its signal is checked once", async () => {
    const spawner = await open();
    const { signal, looks } = abortedAtCheck(1);
    const wanted = request({ signal });
    await expect(spawner.spawn(wanted)).rejects.toMatchObject(STOPPED);
    expect(looks()).toBe(1);
    await leavesNothing(spawner, wanted);
  });

  test("G11: in the tick in which its command would begin leaves nothing, although its leader ran", async () => {
    const begun = join(home, "begun");
    const spawner = await open();
    const wanted = request({ command: `touch '${begun}'`, signal: abortedAtCheck(2).signal });
    await expect(spawner.spawn(wanted)).rejects.toMatchObject(STOPPED);
    expect(existsSync(begun)).toBe(false);
    await leavesNothing(spawner, wanted);
  });

  test("G20: stays in the ledger until its leader is dead, even if the start has given up on it before", async () => {
    // The timeout for the death of the leader expires at once.
    const after: Clock["after"] = (ms, call, kind) => {
      if (ms !== 1_000) return systemClock.after(ms, call, kind);
      queueMicrotask(call);
      return () => {};
    };
    const spawner = await open({ clock: { ...systemClock, after } });
    const wanted = request({ signal: abortedAtCheck(2).signal });
    await expect(spawner.spawn(wanted)).rejects.toMatchObject(STOPPED);
    const file = join(dir, "ledger", `${wanted.id}.json`);
    expect(existsSync(file)).toBe(true);
    await expect.poll(() => existsSync(file)).toBe(false);
    await leavesNothing(spawner, wanted);
  });

  // Only where the machine allows control groups.
  test.skipIf(lookAtMachine().cgroup === undefined)("leaves no control group either", async () => {
    const before = new Set(belays());
    const spawner = await open({ mechanism: "cgroup", dir: join(home, "cgroup") });
    await expect(spawner.spawn(request({ signal: abortedAtCheck(2).signal }))).rejects.toMatchObject(STOPPED);
    expect(belays().filter((name) => name.includes("proc_start.") && !before.has(name))).toEqual([]);
  });

  test.skipIf(lookAtMachine().cgroup === undefined)(
    "G20: leaves no control group even if a member of it is still exiting",
    async () => {
      const before = new Set(belays());
      const spawner = await open({ mechanism: "cgroup", dir: join(home, "cgroup") });
      const member = spawnProcess("sleep", ["1000"]);
      const atCheck = abortedAtCheck(2, () => {
        const [own] = belays().filter((name) => name.includes("proc_start.") && !before.has(name));
        writeFileSync(join(lookAtMachine().cgroup ?? "/", String(own), "cgroup.procs"), String(member.pid));
      });
      await expect(spawner.spawn(request({ signal: atCheck.signal }))).rejects.toMatchObject(STOPPED);
      expect(belays().filter((name) => name.includes("proc_start.") && !before.has(name))).toEqual([]);
    },
  );
});

const belays = (): readonly string[] => readdirSync(lookAtMachine().cgroup ?? "/");

describe("a start whose leader", () => {
  test("has died before it was held fails, and leaves nothing", async () => {
    let blind = false;
    const identityOf: ProcessTable["identityOf"] = (pid) =>
      blind && pid !== process.pid ? undefined : PROC_PROCESS_TABLE.identityOf(pid);
    const spawner = await open({ processTable: { ...PROC_PROCESS_TABLE, identityOf } });
    blind = true;
    const wanted = request();
    await expect(spawner.spawn(wanted)).rejects.toMatchObject({
      code: "not_started",
      message: "The leader of the process has died.",
    });
    blind = false;
    await leavesNothing(spawner, wanted);
  });

  test("has no command fails with the reason, and leaves nothing", async () => {
    let blind = false;
    const childrenOf: ProcessTable["childrenOf"] = (pid) => (blind ? [] : PROC_PROCESS_TABLE.childrenOf(pid));
    const spawner = await open({ processTable: { ...PROC_PROCESS_TABLE, childrenOf } });
    blind = true;
    const wanted = request();
    await expect(spawner.spawn(wanted)).rejects.toMatchObject({
      code: "not_started",
      message: '"/bin/sh" was not started: The tree has ended before it was held.',
      cause: new Error("The tree has ended before it was held."),
    });
    blind = false;
    await leavesNothing(spawner, wanted);
  });

  test("is found by a scan that began after it was ready, where answers come from a cached scan", async () => {
    let looks = 0;
    let seen: number[] = [];
    const refresh = async (): Promise<void> => {
      looks += 1;
    };
    const childrenOf: ProcessTable["childrenOf"] = (pid) => {
      seen.push(looks);
      return PROC_PROCESS_TABLE.childrenOf(pid);
    };
    const spawner = await open({ processTable: { ...PROC_PROCESS_TABLE, refresh, childrenOf } });
    [looks, seen] = [0, []];
    await (await spawner.spawn(request())).ended;
    expect(seen[0]).toBe(1);
  });
});

describe("a successful start", () => {
  test("is in the ledger with its identity while it runs, and not after its end", async () => {
    const spawner = await open();
    const wanted = request({ command: "read x", stdin: "open" });
    const child: Child = await spawner.spawn(wanted);
    const file = join(dir, "ledger", `${wanted.id}.json`);
    const leader = PROC_PROCESS_TABLE.statOf(child.pid);
    if (typeof leader === "string") throw new Error("It is there.");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      ...{ id: wanted.id, sessionId: "ses_test", mechanism: "group", phase: "spawned" },
      child: PROC_PROCESS_TABLE.identityOf(leader.parent),
    });
    child.endInput();
    await child.ended;
    expect(existsSync(file)).toBe(false);
  });

  // As above.
  test.skipIf(lookAtMachine().cgroup === undefined)("is in the ledger with its control group", async () => {
    const state = join(home, "cgroup");
    const spawner = await open({ mechanism: "cgroup", dir: state });
    const wanted = request({ command: "read x", stdin: "open" });
    const child = await spawner.spawn(wanted);
    const { cgroup } = JSON.parse(readFileSync(join(state, "ledger", `${wanted.id}.json`), "utf8"));
    const members = readFileSync(join(cgroup, "cgroup.procs"), "utf8").split("\n");
    expect(members).toContain(String(child.pid));
    child.endInput();
    await child.ended;
    expect(existsSync(cgroup)).toBe(false);
  });

  test("is awaited by `close`, and stopped before that resolves", async () => {
    const spawner = await open();
    const wanted = request({ command: "sleep 8000128" });
    const starting = spawner.spawn(wanted);
    await spawner.close();
    expect(existsSync(join(dir, "ledger", `${wanted.id}.json`))).toBe(false);
    expect(await carriersOf(wanted.id)).toEqual([]);
    expect((await (await starting).ended).stopped).toBe(true);
  });
});

describe("where processes are listed by ps", () => {
  test("no named pipes are made, and a terminal is refused with a hint", async () => {
    const spawner = await open({ dir: join(home, "ps"), processTable: { ...PROC_PROCESS_TABLE, kind: "ps" } });
    const pipes = readdirSync(join(home, "ps")).filter((name) => name.startsWith("pipes-"));
    expect(pipes.flatMap((name) => readdirSync(join(home, "ps", name)))).toEqual([]);
    await expect(spawner.spawn(request({ terminal: { columns: 80, rows: 24 } }))).rejects.toMatchObject({
      code: "not_started",
      message: "A terminal was requested, but they are supported on Linux only.",
      hint: "Start it without a terminal.",
    });
  });
});

test("on an unsupported platform no process is started, and no file is created", async () => {
  const real = Object.getOwnPropertyDescriptor(process, "platform");
  if (real === undefined) throw new Error("There is a platform.");
  onTestFinished(() => void Object.defineProperty(process, "platform", real));
  Object.defineProperty(process, "platform", { ...real, value: "sunos" });
  await expect(open({ dir: join(home, "nowhere") })).rejects.toMatchObject({
    code: "uncontained",
    message: "Processes cannot be held on sunos, so none are started.",
    hint: expect.stringContaining("Run the server on Linux"),
  });
  expect(existsSync(join(home, "nowhere"))).toBe(false);
});
