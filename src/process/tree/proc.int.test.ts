import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { COOKIE_NAME } from "../launch/environment.ts";
import { NEWBORN_ROUNDS, SCAN_SLICE } from "../limits.ts";
import {
  below,
  bootIdOf,
  carrying,
  childrenOf,
  descendantsOf,
  type Identity,
  identityOf,
  inGroup,
  inSession,
  isStill,
  listProcesses,
  namespaceOf,
  pinsGroup,
  presenceOf,
  stateOf,
  statOf,
} from "./proc.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "belay-proc-test-"));
  mkdirSync(join(root, "sys/kernel/random"), { recursive: true });
  writeFileSync(join(root, "sys/kernel/random/boot_id"), "boot-1\n");
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

interface Made {
  readonly name?: string;
  readonly state?: string;
  readonly parent?: number;
  readonly group?: number;
  readonly session?: number;
  readonly startTime?: number;
  readonly threads?: number;
  readonly environ?: string;
  /** By task; undefined for a kernel without such lists. */
  readonly children?: Readonly<Record<number, string>>;
}

/** Writes a process into the table. */
function make(pid: number, made: Made = {}): Identity {
  const { name = "sh", state = "S", parent = 1, group = pid, session = pid, startTime = pid * 10, threads = 1 } = made;
  const numbers = [parent, group, session, 0, -1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 20, 0, threads, 0, startTime, 9, 9];
  mkdirSync(join(root, `${pid}/task/${pid}`), { recursive: true });
  writeFileSync(join(root, `${pid}/stat`), `${pid} (${name}) ${state} ${numbers.join(" ")}\n`);
  writeFileSync(join(root, `${pid}/environ`), made.environ ?? "");
  for (const [task, children] of Object.entries(made.children ?? {})) {
    mkdirSync(join(root, `${pid}/task/${task}`), { recursive: true });
    writeFileSync(join(root, `${pid}/task/${task}/children`), children);
  }
  return { pid, startTime, bootId: "boot-1" };
}

const remove = (pid: number): void => rmSync(join(root, String(pid)), { recursive: true });

describe("identity", () => {
  test.each(["sh", "a b", "(a) b)", ") S 1 1 1", "x\ny", "", "((((", "é ) Z"])("is parsed past the name %j", (name) => {
    const identity = make(20, { name, parent: 7, group: 8, session: 9, startTime: 4711 });
    expect(identityOf(20, root)).toEqual(identity);
    expect(statOf(20, root)).toMatchObject({
      state: "S",
      parent: 7,
      group: 8,
      session: 9,
      startTime: 4711,
      threads: 1,
    });
  });

  test("G21: a reused pid is not the process we knew", {
    meta: { id: "G21/reused-pid-not-ours" },
  }, () => {
    const before = make(20, { startTime: 1 });
    expect(isStill(before, root)).toBe(true);
    const after = make(20, { startTime: 2 });
    expect([isStill(before, root), isStill(after, root)]).toEqual([false, true]);
  });

  test("G21: after a reboot no identity matches", () => {
    const identity = make(20);
    expect(presenceOf({ ...identity, bootId: "boot-0" }, root)).toBe("gone");
  });

  test.each(["Z", "X", "x"])(
    "a process in state %s is gone, although it is in the table",
    { meta: { id: "G19/zombie-counts-as-dead" } },
    (state) => {
      const identity = make(20, { state });
      expect([isStill(identity, root), identityOf(20, root), stateOf(20, root)]).toEqual([false, undefined, state]);
    },
  );

  test("a process whose first thread has ended is alive as long as other threads run", () => {
    const identity = make(20, { state: "Z", threads: 2 });
    expect([isStill(identity, root), identityOf(20, root)]).toEqual([true, identity]);
  });

  test("a process that has vanished is gone", () => {
    const identity = make(20);
    remove(20);
    expect([statOf(20, root), stateOf(20, root), identityOf(20, root)]).toEqual(["gone", undefined, undefined]);
    expect(presenceOf(identity, root)).toBe("gone");
  });

  test.each(["", "20 (sh", "20 (sh) S", "20 (sh) S 1 x 3", "nonsense", `20 (sh) S ${"1 ".repeat(17)}`])(
    "a stat file that cannot be parsed proves neither life nor death: %j",
    (text) => {
      const identity = make(20);
      writeFileSync(join(root, "20/stat"), text);
      expect([presenceOf(identity, root), isStill(identity, root)]).toEqual(["unknown", true]);
      expect(identityOf(20, root)).toBeUndefined();
    },
  );

  test("a stat file that cannot be read proves neither life nor death", () => {
    const identity = make(20);
    rmSync(join(root, "20/stat"));
    mkdirSync(join(root, "20/stat"));
    expect([presenceOf(identity, root), pinsGroup(identity, root)]).toEqual(["unknown", "unknown"]);
  });

  test("without a boot id no process has an identity", () => {
    const bare = mkdtempSync(join(tmpdir(), "belay-proc-test-"));
    onTestFinished(() => rmSync(bare, { recursive: true }));
    expect([bootIdOf(bare), namespaceOf(bare)]).toEqual([undefined, undefined]);
    expect(presenceOf({ pid: 20, startTime: 1, bootId: "boot-1" }, bare)).toBe("unknown");
  });

  test("G21: a leader that is dead and not reaped still pins its group; one that is reaped does not", {
    meta: { id: "G21/unreaped-leader-pins-group" },
  }, () => {
    const leader = make(20, { state: "Z" });
    expect(pinsGroup(leader, root)).toBe("there");
    make(20, { state: "X" });
    expect(pinsGroup(leader, root)).toBe("gone");
    make(20, { startTime: 1 });
    expect(pinsGroup(leader, root)).toBe("gone");
    expect(pinsGroup(make(21, { group: 20 }), root)).toBe("gone");
  });
});

describe("descent", () => {
  test("children are those of all threads, living ones only", () => {
    make(20, { children: { 20: "21 22 ", 25: "23 24 26 " } });
    for (const pid of [21, 22, 23]) make(pid, { parent: 20, children: { [pid]: "" } });
    make(24, { parent: 20, state: "Z" });
    expect(childrenOf(20, root)).toEqual([21, 22, 23]);
  });

  test("on a kernel without lists of children, all processes are searched for the parent", () => {
    make(20);
    make(21, { parent: 20 });
    make(22, { parent: 21 });
    make(23, { parent: 20, state: "Z" });
    expect(childrenOf(20, root)).toEqual([21]);
    expect(descendantsOf(20, root)).toEqual([21, 22]);
  });

  test("a thread without a list has no children, as long as another thread has one", () => {
    make(10, { children: { 10: "11" } });
    mkdirSync(join(root, "10/task/12"));
    make(11, { parent: 10 });
    make(13, { parent: 10 });
    expect(childrenOf(10, root)).toEqual([11]);
  });

  test("a process that has vanished has no children", () => {
    expect([childrenOf(99, root), descendantsOf(99, root)]).toEqual([[], []]);
  });

  test("descendants are found nearest first, and a cycle ends", () => {
    make(20, { children: { 20: "21 22" } });
    make(21, { children: { 21: "23" } });
    make(22, { children: { 22: "20 21" } });
    make(23, { children: { 23: "20" } });
    expect(descendantsOf(20, root)).toEqual([21, 22, 23]);
  });

  test("at most `max` descendants are walked", () => {
    make(20, { children: { 20: "21 22 23" } });
    make(21, { children: { 21: "24 25" } });
    for (const pid of [22, 23, 24, 25]) make(pid, { children: { [pid]: "" } });
    expect(descendantsOf(20, root)).toEqual([21, 22, 23, 24, 25]);
    expect(descendantsOf(20, root, 4)).toEqual([21, 22, 23, 24]);
  });

  test("`below` finds the descendants in one scan of all processes", async () => {
    for (const [pid, parent] of Object.entries({ 20: 1, 21: 20, 22: 21, 30: 1, 31: 30, 40: 40 })) {
      make(Number(pid), { parent });
    }
    const all = await listProcesses({ cookies: false }, root);
    const pids = (tops: readonly number[]) => below(all, tops).map((seen) => seen.pid);
    expect(pids([20]).toSorted()).toEqual([21, 22]);
    expect(pids([20, 30, 31, 40]).toSorted()).toEqual([21, 22]);
    expect(pids([99])).toEqual([]);
  });
});

describe("scans of all processes", () => {
  test("find the living members of a group and of a session, and the carriers of a cookie", async () => {
    const environ = `A=1\0${COOKIE_NAME}=proc_a.1:x proc_b.1:y\0`;
    const a = make(20, { group: 5, session: 6, environ });
    make(21, { group: 5, session: 6, environ, state: "Z" });
    make(22, { environ: `${COOKIE_NAME}=proc_a.1:xx\0B=${COOKIE_NAME}=proc_a.1:x\0` });
    const d = make(23, { group: 5 });
    expect(await inGroup(5, root)).toEqual(expect.arrayContaining([a, d]));
    expect(await inGroup(5, root)).toHaveLength(2);
    expect(await inSession(6, root)).toEqual([a]);
    expect([await carrying("proc_a.1:x", root), await carrying("proc_b.1:y", root)]).toEqual([[a], [a]]);
    expect(await carrying("proc_a.1", root)).toEqual([]);
  });

  test("find a process whose first thread has ended by the environment of its other threads", async () => {
    const identity = make(20, { state: "Z", threads: 2 });
    mkdirSync(join(root, "20/task/21"));
    writeFileSync(join(root, "20/task/21/environ"), `${COOKIE_NAME}=proc_a.1:x\0`);
    expect(await carrying("proc_a.1:x", root)).toEqual([identity]);
  });

  test("read more than one slice, and skip entries that are not processes", async () => {
    const pids = Array.from({ length: SCAN_SLICE * 3 }, (_, index) => index + 2);
    for (const pid of pids) make(pid);
    mkdirSync(join(root, "0123"));
    mkdirSync(join(root, "self"));
    // A process that vanishes between listing and reading looks like this.
    mkdirSync(join(root, "999"));
    const seen = (await listProcesses({ cookies: true }, root)).map((one) => one.pid);
    expect(seen.toSorted((a, b) => a - b)).toEqual(pids);
  });

  test("reject if the table cannot be read completely: a missing entry would look like a death", async () => {
    make(20);
    rmSync(join(root, "20/environ"));
    mkdirSync(join(root, "20/environ"));
    expect(await listProcesses({ cookies: false }, root)).toHaveLength(1);
    await expect(listProcesses({ cookies: true }, root)).rejects.toThrow(/could not be read/);
    await expect(listProcesses({ cookies: false }, join(root, "nowhere"))).rejects.toThrow();
  });

  test("include processes that were born during the scan", async () => {
    const cookie = "proc_a.1:x";
    const environ = `${COOKIE_NAME}=${cookie}\0`;
    const setLastPid = (last: number): void => writeFileSync(join(root, "loadavg"), `0.1 0.2 0.3 1/99 ${last}\n`);
    setLastPid(20);
    const first = make(20, { environ });
    const met: number[] = [];
    const found = await carrying(cookie, root, ({ pid }) => {
      met.push(pid);
      // Each one leaves a successor that no listing shows any more.
      if (pid >= 22) return;
      make(pid + 1, { environ });
      writeFileSync(join(root, `${pid + 1}/status`), `Name:\tsh\nTgid:\t${pid + 1}\nPid:\t${pid + 1}\n`);
      setLastPid(pid + 1);
    });
    expect([found[0], met]).toEqual([first, [20, 21, 22]]);
  });

  test.each([
    ["the next number", "20", "21", 21, true],
    ["the last that is read one by one", "20", "1044", 1_044, true],
    ["a storm", "20", "1045", 1_045, false],
    ["numbers that have wrapped", "20", "19", 19, false],
    ["no last pid before", "none", "21", 21, false],
    ["no last pid after", "20", "none", 21, false],
  ])("find newborn processes by the kernel's last pid: %s", async (_, before, after, pid, found) => {
    const setLastPid = (last: string): void => writeFileSync(join(root, "loadavg"), `0.1 0.2 0.3 1/99 ${last}\n`);
    setLastPid(before);
    make(20);
    let met = false;
    const meet = (): void => {
      if (met) return;
      met = true;
      make(pid);
      writeFileSync(join(root, `${pid}/status`), `Name:\tsh\nTgid:\t${pid}\nPid:\t${pid}\n`);
      setLastPid(after);
    };
    const all = await listProcesses({ cookies: false, meet }, root);
    expect(all.map((one) => one.pid)).toEqual(found ? [20, pid] : [20]);
    expect(all[0]).toMatchObject({ cookies: [], blank: false });
  });

  test("end, even if every round finds a newborn process", async () => {
    const setLastPid = (last: number): void => writeFileSync(join(root, "loadavg"), `0.1 0.2 0.3 1/99 ${last}\n`);
    setLastPid(20);
    make(20);
    const all = await listProcesses(
      {
        cookies: false,
        meet: ({ pid }) => {
          make(pid + 1);
          writeFileSync(join(root, `${pid + 1}/status`), `Tgid:\t${pid + 1}\n`);
          setLastPid(pid + 1);
        },
      },
      root,
    );
    expect(all).toHaveLength(1 + NEWBORN_ROUNDS);
  });

  test("reject without a boot id", async () => {
    make(20);
    rmSync(join(root, "sys"), { recursive: true });
    expect(identityOf(20, root)).toBeUndefined();
    await expect(listProcesses({ cookies: false }, root)).rejects.toThrow("sys/kernel/random/boot_id cannot be read");
  });

  test.each(["X", "x"])("a leader that is being removed (%s) does not pin its group", (state) => {
    expect(pinsGroup(make(20, { state }), root)).toBe("gone");
  });

  test("threads of known processes do not count as newborn", async () => {
    const environ = `${COOKIE_NAME}=proc_a.1:x\0`;
    const setLastPid = (last: number): void => writeFileSync(join(root, "loadavg"), `0.1 0.2 0.3 1/99 ${last}\n`);
    setLastPid(20);
    const first = make(20, { environ });
    const found = await carrying("proc_a.1:x", root, () => {
      make(21, { environ });
      writeFileSync(join(root, "21/status"), "Name:\tsh\nTgid:\t20\nPid:\t21\n");
      setLastPid(21);
    });
    expect(found).toEqual([first]);
  });

  test("a process in the middle of an exec is read again", async () => {
    make(19);
    let reads = 0;
    const all = await listProcesses(
      {
        cookies: true,
        meet: () => {
          reads += 1;
          make(19, { environ: `${COOKIE_NAME}=proc_a.1:x\0` });
        },
      },
      root,
    );
    expect([reads, all.map((one) => one.cookies)]).toEqual([2, [["proc_a.1:x"]]]);
  });

  test("kernel threads are omitted", async () => {
    make(20);
    const text = readFileSync(join(root, "20/stat"), "utf8");
    writeFileSync(join(root, "20/stat"), text.replace(" 0 -1 0 ", ` 0 -1 ${0x0020_8040} `));
    expect(await listProcesses({ cookies: true }, root)).toEqual([]);
  });

  test("an environment of any length is read completely", async () => {
    const identity = make(20, { environ: `A=${"x".repeat(100_000)}\0${COOKIE_NAME}=proc_a.1:x\0` });
    expect(await carrying("proc_a.1:x", root)).toEqual([identity]);
    const exact = make(21, { environ: `A=${"x".repeat(16_384 - 36)}\0${COOKIE_NAME}=proc_b.1:xxxxxxx\0` });
    expect(await carrying("proc_b.1:xxxxxxx", root)).toEqual([exact]);
  });

  test("an environment without read permission is skipped", async () => {
    make(20, { environ: `${COOKIE_NAME}=proc_a.1:x\0` });
    chmodSync(root, 0o755);
    chmodSync(join(root, "20/environ"), 0o000);
    const asAnother = process.getuid?.() === 0;
    if (asAnother) process.seteuid?.(65_534);
    try {
      expect(await carrying("proc_a.1:x", root)).toEqual([]);
      expect(await listProcesses({ cookies: true }, root)).toHaveLength(1);
    } finally {
      if (asAnother) process.seteuid?.(0);
    }
  });
});

describe("the real /proc", () => {
  test("a child is found by every query, and is gone when it has ended", async () => {
    const cookie = `proc_real${process.pid}.1:x`;
    const child = spawn("/bin/sh", ["-c", "echo up; exec cat"], {
      detached: true,
      env: { [COOKIE_NAME]: cookie, PATH: process.env.PATH },
      stdio: ["pipe", "pipe", "ignore"],
    });
    const pid = Number(child.pid);
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    await once(child.stdout, "data");
    const identity = identityOf(pid);
    if (identity === undefined) throw new Error("A child that has spoken is there.");
    expect(await inGroup(pid)).toContainEqual(identity);
    expect(await inSession(pid)).toContainEqual(identity);
    expect(await carrying(cookie)).toContainEqual(identity);
    expect(childrenOf(process.pid)).toContain(pid);
    expect(descendantsOf(process.pid)).toContain(pid);
    expect([presenceOf(identity), pinsGroup(identity)]).toEqual(["there", "there"]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect([presenceOf(identity), pinsGroup(identity), isStill(identity)]).toEqual(["gone", "gone", false]);
  });

  test("the boot id and the PID namespace are read", () => {
    expect(bootIdOf()).toMatch(/^[0-9a-f-]{36}$/);
    expect(namespaceOf()).toMatch(/^pid:\[\d+\]$/);
  });
});
