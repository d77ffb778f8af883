import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ProcessId, SessionId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { COOKIE_NAME, makeCookie } from "../launch/environment.ts";
import { LEDGER_FILE_BYTES_MAX, SCAN_AGAIN_MS } from "../limits.ts";
import { endAll } from "./kill-scan.ts";
import { type LedgerOptions, openLedger } from "./ledger.ts";
import { type Entry, type Intent, parseEntry } from "./ledger-entry.ts";
import { carrying, type Identity, identityOf, type Seen } from "./proc.ts";
import { PROC_PROCESS_TABLE } from "./proc-process-table.ts";
import type { ProcessTable } from "./process-table.ts";
import { send } from "./signal.ts";

let dir: string;

beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), "belay-ledger-test-")), "ledger");
});

afterEach(() => rmSync(join(dir, ".."), { recursive: true, force: true }));

const open = (options: Partial<LedgerOptions> = {}) => openLedger({ dir, clock: systemClock, ...options });

const session: SessionId = "ses_ledger";

function intent(name: string, more: Partial<Intent> = {}): Intent {
  const id: ProcessId = `proc_${name}.1`;
  return { id, sessionId: session, cookie: makeCookie(id, `t${process.pid}`), mechanism: "group", ...more };
}

const myself = (): Identity => livingOf(process.pid);

/**
 * The identity of a pid. For a process that has exited, as a daemon's parent does, a start time that no process has.
 */
const livingOf = (pid = 0): Identity => identityOf(pid) ?? { pid, startTime: -1, bootId: "none" };

/** A dead server of this boot of the machine: our pid with another start time. */
const dead = (): Identity => ({ ...myself(), startTime: 1 });

const fileOf = (id: ProcessId): string => join(dir, `${id}.json`);

const entryOf = (id: ProcessId): Entry | undefined => parseEntry(readFileSync(fileOf(id), "utf8"));

/** Starts a shell that carries the cookie. Its output closes when the last process of the tree has ended. */
async function tree({ cookie }: Intent, script: string) {
  const child = spawn("/bin/sh", ["-c", script], {
    env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  onTestFinished(async () => {
    // The end of stdin also ends a reader that can no longer be found.
    child.stdin.destroy();
    child.kill("SIGKILL");
    await endAll({ find: () => carrying(cookie), clock: systemClock, deadlineMs: 5_000 });
  });
  const closed = once(child.stdout, "close");
  await once(child.stdout, "data");
  return { child, identity: livingOf(child.pid), closed };
}

describe("writing", () => {
  test("an entry goes from intent to spawned to removed, readable by its owner only", () => {
    const ledger = open();
    const one = intent("a", { cgroup: "/sys/fs/cgroup/x" });
    ledger.intend(one);
    expect(entryOf(one.id)).toMatchObject({ ...one, phase: "intent", owner: myself() });
    expect([statSync(dir).mode & 0o777, statSync(fileOf(one.id)).mode & 0o777]).toEqual([0o700, 0o600]);
    const child = { pid: 4711, startTime: 5, bootId: "b" };
    expect(ledger.spawned(one.id, child)).toBe(true);
    expect(entryOf(one.id)).toMatchObject({ ...one, phase: "spawned", child });
    expect(ledger.reaped(one.id)).toBe(true);
    expect(readdirSync(dir)).toEqual([]);
    // After that, the id can be used again.
    expect(ledger.reaped(one.id)).toBe(true);
    expect(ledger.spawned(one.id, child)).toBe(false);
    expect(readdirSync(dir)).toEqual([]);
    ledger.intend(one);
    expect(entryOf(one.id)).toMatchObject({ phase: "intent" });
  });

  test("`reaped` returns false if the file cannot be removed", () => {
    const ledger = open();
    ledger.intend(intent("a"));
    rmSync(fileOf("proc_a.1"));
    mkdirSync(fileOf("proc_a.1"));
    expect(ledger.reaped("proc_a.1")).toBe(false);
  });

  test("a directory that others can read is made private", () => {
    mkdirSync(dir, { mode: 0o755 });
    open();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
  });

  test("an id that still has an entry is not started again", () => {
    const ledger = open();
    ledger.intend(intent("a"));
    expect(() => ledger.intend(intent("a"))).toThrow(expect.objectContaining({ code: "conflict" }));
    expect(() => open({ owner: dead() }).intend(intent("a"))).toThrow(expect.objectContaining({ code: "conflict" }));
  });

  test("a process whose entry cannot be written is not started; an entry that was written is kept", () => {
    const ledger = open();
    ledger.intend(intent("a"));
    rmSync(dir, { recursive: true });
    writeFileSync(dir, "in the way");
    const hint = `Make room, or make ${dir} writable.`;
    expect(() => ledger.intend(intent("b"))).toThrow(expect.objectContaining({ code: "not_started", hint }));
    expect(ledger.spawned("proc_a.1", myself())).toBe(false);
    expect(ledger.spawned("proc_unknown.1", myself())).toBe(false);
    expect(() => ledger.reaped("proc_a.1")).not.toThrow();
  });

  test("a directory that cannot be created fails with `not_started`", () => {
    writeFileSync(dir, "in the way");
    expect(() => open()).toThrow(
      expect.objectContaining({
        code: "not_started",
        message: `The ledger of processes ${dir} cannot be used.`,
        hint: "Make it a directory that the server's user can write to.",
      }),
    );
  });

  test("G21: a directory of another user is rejected", () => {
    mkdirSync(dir);
    const { getuid } = process;
    onTestFinished(() => {
      Object.assign(process, { getuid });
    });
    Object.assign(process, { getuid: () => statSync(dir).uid + 1 });
    const hint = "Its files decide which processes are ended, so it must belong to the server's user.";
    expect(() => open()).toThrow(expect.objectContaining({ code: "invalid", hint }));
  });

  test("without a process table the ledger fails with `uncontained`", () => {
    const message = "/proc cannot identify this server, so the next one could not find what it leaves behind.";
    const refusal = expect.objectContaining({
      code: "uncontained",
      message,
      hint: expect.stringMatching(/^Mount \/proc/),
    });
    expect(() => open({ root: join(dir, "nowhere") })).toThrow(refusal);
    const cause = new Error("no ps");
    const processTable: ProcessTable = {
      ...PROC_PROCESS_TABLE,
      kind: "ps",
      bootId: () => undefined,
      refreshNow: () => {
        throw cause;
      },
    };
    expect(() => open({ processTable })).toThrow(
      expect.objectContaining({ message: message.replace("/proc", "ps"), cause }),
    );
  });
});

describe("leftovers", () => {
  test("G21: entries of living servers, this one included, are not left over", async () => {
    const other = await tree(intent("server"), "echo up; exec sleep 4711");
    open({ owner: other.identity }).intend(intent("theirs"));
    const ledger = open();
    ledger.intend(intent("ours"));
    expect(ledger.leftovers()).toMatchObject({ entries: [], live: 2 });
    other.child.kill("SIGKILL");
    await once(other.child, "exit");
    expect(ledger.leftovers()).toMatchObject({ entries: [{ id: "proc_theirs.1" }], live: 1 });
  });

  test("G21: our own entries are never left over, even if we cannot see ourselves", () => {
    const ledger = open({ processTable: { ...PROC_PROCESS_TABLE, isStill: () => false } });
    ledger.intend(intent("ours"));
    expect(ledger.leftovers()).toMatchObject({ entries: [], live: 1 });
  });

  test("entries of an earlier boot are removed, because their processes ended with it", () => {
    open({ owner: { ...myself(), bootId: "earlier" } }).intend(intent("old"));
    const ledger = open();
    expect(ledger.leftovers()).toMatchObject({ entries: [], outdated: 1 });
    expect(ledger.leftovers()).toMatchObject({ entries: [], outdated: 0 });
    expect(readdirSync(dir)).toEqual([]);
  });

  test("G21: entries of another PID namespace are left alone, because its processes cannot be seen from here", () => {
    open({ owner: dead() }).intend(intent("a"));
    const entry = entryOf("proc_a.1");
    writeFileSync(fileOf("proc_a.1"), JSON.stringify({ ...entry, namespace: "pid:[1]" }));
    expect(open().leftovers()).toMatchObject({ entries: [], elsewhere: 1 });
    expect(existsSync(fileOf("proc_a.1"))).toBe(true);
  });

  test("torn and foreign files are counted and left in place", () => {
    open({ owner: dead() }).intend(intent("good"));
    const whole = readFileSync(fileOf("proc_good.1"), "utf8");
    writeFileSync(fileOf("proc_torn.1"), whole.slice(0, 40));
    writeFileSync(fileOf("proc_empty.1"), "");
    writeFileSync(fileOf("proc_misnamed.1"), whole);
    const sized = (id: ProcessId, bytes: number): void =>
      writeFileSync(fileOf(id), whole.replaceAll("proc_good.1", id).padEnd(bytes));
    sized("proc_large.1", LEDGER_FILE_BYTES_MAX + 1);
    sized("proc_largest.1", LEDGER_FILE_BYTES_MAX);
    writeFileSync(join(dir, "README"), "hello");
    writeFileSync(join(dir, "proc_good.1"), whole);
    mkdirSync(fileOf("proc_folder.1"));
    symlinkSync("nowhere", fileOf("proc_dangling.1"));
    const found = open().leftovers();
    expect(found.entries.map((entry) => entry.id).toSorted()).toEqual(["proc_good.1", "proc_largest.1"]);
    expect(found).toMatchObject({ foreign: 7, live: 0, elsewhere: 0, outdated: 0, unread: 0 });
    expect(readdirSync(dir)).toHaveLength(10);
  });

  test("a draft whose writer was killed is removed, that of a living one is kept", {
    meta: { id: "crash/abandoned-ledger-draft-removed" },
  }, () => {
    const ledger = open();
    const { pid, startTime } = myself();
    writeFileSync(join(dir, `.proc_a.1.${pid}-1.draft`), "{");
    const above = livingOf(process.ppid);
    const living = [`.proc_b.1.${pid}-${startTime}.draft`, `.proc_c.1.${above.pid}-${above.startTime}.draft`];
    for (const name of living) writeFileSync(join(dir, name), "{");
    const none = { entries: [], foreign: 0, live: 0, elsewhere: 0, outdated: 0, unread: 0 };
    expect(ledger.leftovers()).toEqual(none);
    expect(readdirSync(dir).toSorted()).toEqual(living);
  });

  const good: Entry = { ...intent("a"), phase: "spawned", owner: dead(), child: dead(), namespace: "n", cgroup: "/x" };

  test.each([
    ...[{ id: "ses_a" }, { id: "../x" }, { id: 1 }, { sessionId: "x" }, { cookie: "a b" }, { cookie: undefined }],
    ...[{ sessionId: 1 }, { owner: "me" }, { owner: null }, { owner: { pid: 1, startTime: 1, bootId: 7 } }],
    ...[
      { cgroup: `/${"x".repeat(4_095)}` },
      { mechanism: "magic" },
      { cgroup: "relative" },
      { cgroup: 1 },
      { namespace: 1 },
      { phase: "reaped" },
    ],
    ...[{ owner: undefined }, { owner: { pid: "1" } }, { owner: { pid: 1, startTime: 1.5, bootId: "b" } }],
    ...[{ child: undefined }, { child: null }, { child: { pid: 2, startTime: 1, bootId: "" } }],
  ])("%# an entry is parsed completely or rejected: %j", (wrong) => {
    expect(parseEntry(JSON.stringify(good))).toEqual(good);
    const longest = { ...good, cgroup: `/${"x".repeat(4_094)}` };
    expect(parseEntry(JSON.stringify(longest))).toEqual(longest);
    const { cgroup: _, namespace: __, ...least } = good;
    expect(Object.keys(parseEntry(JSON.stringify(least)) ?? {}).toSorted()).toEqual(Object.keys(least).toSorted());
    expect(parseEntry(JSON.stringify({ ...good, ...wrong }))).toBeUndefined();
  });

  test.each(["", "null", "[]", "1", '"x"', "{"])("%j is not an entry", (text) => {
    expect(parseEntry(text)).toBeUndefined();
  });
});

describe("G20: a sweep", () => {
  test("ends a tree by its cookie, although its pid was never recorded", async () => {
    const one = intent("intent");
    open({ owner: dead() }).intend(one);
    const { closed } = await tree(one, "(setsid sh -c 'trap \"\" TERM; (sleep 4711 & echo up; wait)' &)");
    const ledger = open();
    const [swept] = await ledger.sweep(ledger.leftovers().entries);
    await closed;
    expect(swept).toMatchObject({ id: one.id, sessionId: session, escaped: [], sure: true });
    expect(swept?.killed.length).toBeGreaterThanOrEqual(2);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("ends the recorded child and its descendants, although they have shed the cookie", async () => {
    const one = intent("spawned");
    const before = open({ owner: dead() });
    before.intend(one);
    const { identity, closed } = await tree(one, "exec 3<&0 env -i sh -c 'setsid cat <&3 & echo up; wait'");
    before.spawned(one.id, identity);
    const signals: string[] = [];
    const ledger = open({
      send: (to, signal) => {
        signals.push(signal);
        return send(to, signal);
      },
    });
    const [swept] = await ledger.sweep(ledger.leftovers().entries);
    await closed;
    expect(swept?.killed).toContain(identity.pid);
    expect(swept?.killed).toHaveLength(2);
    // Had the parent been killed at once, its child might have been reparented before it was found.
    expect(signals.slice(0, 3)).toEqual(["SIGSTOP", "SIGSTOP", "SIGKILL"]);
  });

  test("G21: does not signal another process that has the recorded pid now", {
    meta: { id: "G21/sweep-spares-reused-pid" },
  }, async () => {
    const stranger = await tree(intent("stranger"), "echo up; exec sleep 4711");
    const one = intent("reused");
    const before = open({ owner: dead() });
    before.intend(one);
    before.spawned(one.id, { ...stranger.identity, startTime: stranger.identity.startTime - 1 });
    const ledger = open();
    expect(await ledger.sweep(ledger.leftovers().entries)).toMatchObject([{ killed: [], escaped: [], sure: true }]);
    expect(identityOf(stranger.identity.pid)).toEqual(stranger.identity);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("reports each tree separately, and keeps the entry of one that survives", async () => {
    const [easy, hard] = [intent("easy"), intent("hard")];
    const before = open({ owner: dead() });
    for (const one of [easy, hard]) before.intend(one);
    const gone = await tree(easy, "echo up; exec sleep 4711");
    const stays = await tree(hard, "echo up; exec sleep 4711");
    const ledger = open({
      sweepMs: 1_000,
      send: (identity, signal) => {
        if (identity.pid === stays.identity.pid) return "refused";
        process.kill(identity.pid, signal);
        return "sent";
      },
    });
    const swept = await ledger.sweep(ledger.leftovers().entries);
    await gone.closed;
    expect(swept.find(({ id }) => id === easy.id)).toMatchObject({
      killed: [gone.identity.pid],
      escaped: [],
      sure: true,
    });
    expect(swept.find(({ id }) => id === hard.id)).toMatchObject({
      ...{ killed: [], escaped: [stays.identity.pid], sure: false },
    });
    expect(readdirSync(dir)).toEqual([`${hard.id}.json`]);
    // The next start finishes what this one could not.
    const next = open();
    await next.sweep(next.leftovers().entries);
    await stays.closed;
    expect(readdirSync(dir)).toEqual([]);
  });

  test("that was killed half-way is repeated, because the entry is removed last", async () => {
    const one = intent("half");
    open({ owner: dead() }).intend(one);
    const { closed } = await tree(one, "echo up; exec sleep 4711");
    // Its clock stops once no process is found, so it has killed and has not yet scanned a second time.
    const after: Clock["after"] = (ms, call) => (ms === SCAN_AGAIN_MS ? systemClock.after(ms, call) : () => undefined);
    const interrupted = open({ clock: { ...systemClock, after } });
    void interrupted.sweep(interrupted.leftovers().entries);
    await closed;
    expect(readdirSync(dir)).toEqual([`${one.id}.json`]);
    const next = open();
    expect(await next.sweep(next.leftovers().entries)).toMatchObject([{ id: one.id, escaped: [], sure: true }]);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("ends control groups by name, and keeps the entries of those that could not be ended", async () => {
    const before = open({ owner: dead() });
    before.intend(intent("a", { cgroup: "/good" }));
    before.intend(intent("b", { cgroup: "/bad" }));
    before.intend(intent("c", { cgroup: "/stuck" }));
    const ended: string[] = [];
    const ledger = open({
      sweepMs: 1_000,
      endCgroup: async (path) => {
        if (path === "/bad") throw new Error("EBUSY");
        if (path === "/stuck") await new Promise(() => undefined);
        ended.push(path);
      },
    });
    const swept = await ledger.sweep(ledger.leftovers().entries);
    expect(ended).toEqual(["/good"]);
    expect(Object.fromEntries(swept.map((one) => [one.id, one.sure]))).toEqual({
      ...{ "proc_a.1": true, "proc_b.1": false, "proc_c.1": false },
    });
    expect(readdirSync(dir).toSorted()).toEqual(["proc_b.1.json", "proc_c.1.json"]);
  });

  test("without `endCgroup` keeps the entries with control groups, and removes the others", async () => {
    const before = open({ owner: dead() });
    before.intend(intent("a", { cgroup: "/good" }));
    before.intend(intent("b"));
    const ledger = open();
    const swept = await ledger.sweep(ledger.leftovers().entries);
    expect(swept.map((one) => one.sure)).toEqual([false, true]);
    expect(readdirSync(dir)).toEqual(["proc_a.1.json"]);
  });

  test("that cannot read the process table removes no entry", async () => {
    const before = open({ owner: dead() });
    before.intend(intent("a"));
    const processTable: ProcessTable = {
      ...PROC_PROCESS_TABLE,
      listProcesses: () => Promise.reject(new Error("out of files")),
    };
    const clock = manualClock();
    const ledger = open({ processTable, clock });
    const swept = ledger.sweep(ledger.leftovers().entries);
    await clock.advance(10_000);
    expect(await swept).toMatchObject([{ killed: [], escaped: [], sure: false }]);
    expect(readdirSync(dir)).toEqual(["proc_a.1.json"]);
    expect(clock.pending).toEqual([]);
  });

  test.each([
    ["has been gone for long", (ms: number) => ms >= 500, true],
    ["has gone a moment ago", (ms: number) => ms >= 990, false],
    ["was missed by a scan, came back, and has gone a moment ago", (ms: number) => ms < 100 || ms >= 990, false],
  ])("with one survivor is sure of another tree only if that %s", async (_, isGone, sure) => {
    const [easy, hard] = [intent("easy", { cgroup: "/good" }), intent("hard")];
    const before = open({ owner: dead() });
    for (const one of [easy, hard]) before.intend(one);
    const clock = manualClock();
    const seen = (pid: number, cookie: string): Seen => ({
      ...{ pid, state: "S", parent: 1, group: pid, session: pid, startTime: 1, threads: 1, kernel: false },
      ...{ identity: { pid, startTime: 1, bootId: "boot" }, cookies: [cookie], blank: false },
    });
    const there = (): readonly Seen[] => [
      ...(isGone(clock.elapsed()) ? [] : [seen(5_000_001, easy.cookie)]),
      seen(5_000_002, hard.cookie),
    ];
    const processTable: ProcessTable = {
      ...PROC_PROCESS_TABLE,
      listProcesses: async () => there(),
      isStill: ({ pid }) => there().some((one) => one.pid === pid),
    };
    const ledger = open({
      processTable,
      clock,
      sweepMs: 1_000,
      send: () => "refused",
      endCgroup: async () => undefined,
    });
    const entries = [easy, hard].map(({ id }) => entryOf(id)).filter((entry) => entry !== undefined);
    const sweeping = ledger.sweep(entries);
    await clock.advance(1_000);
    const swept = await sweeping;
    expect(swept.map((one) => [one.sure, one.escaped])).toEqual([
      [sure, []],
      [false, [5_000_002]],
    ]);
    expect(clock.pending).toEqual([]);
  });

  test("is not sure of a process that has shed every mark and still exists", async () => {
    const one = intent("shed");
    open({ owner: dead() }).intend(one);
    const clock = manualClock();
    const identity = { pid: 5_000_001, startTime: 1, bootId: "boot" };
    const seen: Seen = {
      ...{ state: "S", parent: 1, group: 1, session: 1, threads: 1, kernel: false, blank: false },
      ...{ pid: identity.pid, startTime: identity.startTime, identity, cookies: [one.cookie] },
    };
    const processTable: ProcessTable = {
      ...PROC_PROCESS_TABLE,
      listProcesses: async () => (clock.elapsed() < 100 ? [seen] : []),
      isStill: () => true,
    };
    const ledger = open({ processTable, clock, sweepMs: 1_000, send: () => "refused" });
    const entry = entryOf(one.id);
    if (entry === undefined) throw new Error("It was not written.");
    const sweeping = ledger.sweep([entry]);
    await clock.advance(1_000);
    expect(await sweeping).toMatchObject([{ killed: [], escaped: [identity.pid], sure: false }]);
    expect(entryOf(one.id)).toEqual(entry);
  });

  test("signals a process as soon as the scan meets it, and no unrelated one", async () => {
    const one = intent("met");
    const before = open({ owner: dead() });
    before.intend(one);
    const { identity } = await tree(one, "echo up; exec sleep 4711");
    const log: string[] = [];
    const processTable: ProcessTable = {
      ...PROC_PROCESS_TABLE,
      listProcesses: async (meet) => {
        const all = await PROC_PROCESS_TABLE.listProcesses(meet);
        log.push("scanned");
        return all;
      },
    };
    const ledger = open({
      processTable,
      send: (to, signal) => {
        log.push(`${to.pid} ${signal}`);
        return send(to, signal);
      },
    });
    await ledger.sweep(ledger.leftovers().entries);
    expect(log.slice(0, 2)).toEqual([`${identity.pid} SIGSTOP`, "scanned"]);
    expect(new Set(log)).toEqual(new Set(["scanned", `${identity.pid} SIGSTOP`, `${identity.pid} SIGKILL`]));
  });

  test("never ends itself, even if such a tree started it", async () => {
    const one = intent("self");
    const before = open({ owner: dead() });
    before.intend(one);
    before.spawned(one.id, myself());
    const ledger = open();
    expect(await ledger.sweep(ledger.leftovers().entries)).toMatchObject([{ killed: [], escaped: [], sure: true }]);
  });

  test("without entries returns an empty list", async () => {
    expect(await open({ clock: manualClock() }).sweep([])).toEqual([]);
  });
});

test("a directory that was removed is created again, with the entries of all live trees", () => {
  const ledger = open();
  const [first, second] = [intent("before"), intent("after")];
  ledger.intend(first);
  ledger.spawned(first.id, myself());
  rmSync(join(dir, ".."), { recursive: true });
  ledger.intend(second);
  expect(entryOf(first.id)).toMatchObject({ phase: "spawned", child: myself() });
  expect(entryOf(second.id)).toMatchObject({ phase: "intent" });
  expect(statSync(dir).mode & 0o777).toBe(0o700);
});
