// Processes seen with `ps`, on this machine: what macOS will see, as far as Linux can stand in for it.
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import type { Leader } from "../containment/containment.ts";
import { diagnose } from "../containment/doctor.ts";
import { lookAtMachine } from "../containment/machine.ts";
import { makeContainment } from "../containment/mechanisms.ts";
import { processTableOn } from "../containment/platform.ts";
import { selfTest } from "../containment/self-test.ts";
import { COOKIE_NAME, makeCookie } from "../launch/environment.ts";
import { SHELL } from "../launch/gate.ts";
import { findProgram } from "../launch/program-lookup.ts";
import { openSpawner } from "../spawner.ts";
import { openLedger } from "./ledger.ts";
import { type Identity, identityOf } from "./proc.ts";
import { PS_ENVIRONMENT } from "./ps-output.ts";
import { PsProcessTable } from "./ps-process-table.ts";
import { send, sendGroup } from "./signal.ts";
import { Watchdog } from "./watchdog.ts";

const program = findProgram("ps") ?? "ps";
const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-ps-table-")));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const see = (clock = systemClock): PsProcessTable => new PsProcessTable({ clock, dialect: "linux", program });
const cookieNow = (): string => makeCookie("proc_ps.1", randomBytes(9).toString("base64url"));

/** A tree that prints `up`, and whose stdout closes when all of it is gone. */
async function tree(script: string, cookie = cookieNow()) {
  const child = spawn(SHELL, ["-c", script], {
    ...{ detached: true, stdio: ["ignore", "pipe", "ignore"] },
    env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  if (child.stdout === null || child.pid === undefined) throw new Error("It did not start.");
  await once(child.stdout, "data");
  const gone = once(child.stdout, "close").then(() => "gone");
  child.stdout.resume();
  return { child, pid: child.pid, gone, cookie };
}

describe("a scan", () => {
  test("G21: identifies a process by pid and start second, the same each time", async () => {
    const { child, pid, gone } = await tree("echo up; exec sleep 8000401");
    const processTable = see();
    await processTable.refresh();
    const identity = processTable.identityOf(pid);
    processTable.refreshNow();
    expect(processTable.identityOf(pid)).toEqual(identity);
    expect(identity).toMatchObject({ pid, bootId: processTable.bootId() });
    const other: Identity = { pid, bootId: "", startTime: 0, ...identity };
    expect(processTable.isStill(other)).toBe(true);
    expect(processTable.isStill({ ...other, startTime: other.startTime - 1 })).toBe(false);
    expect(processTable.isStill({ ...other, bootId: "another" })).toBe(false);
    expect(send({ ...other, startTime: other.startTime - 1 }, "SIGKILL", processTable.means())).toBe("gone");
    const exited = once(child, "exit");
    expect(send(other, "SIGKILL", processTable.means())).toBe("sent");
    await Promise.all([gone, exited]);
    await processTable.refresh();
    expect(processTable.isStill(other)).toBe(false);
  });

  test("finds children, and the carriers of a cookie", async () => {
    const { pid, gone, cookie } = await tree("sleep 8000402 & echo up; wait");
    const processTable = see();
    const met: number[] = [];
    const all = await processTable.listProcesses((one) => met.push(one.pid));
    const carriers = all.filter((one) => one.cookies.includes(cookie)).map((one) => one.pid);
    expect(carriers).toEqual([pid, ...processTable.childrenOf(pid)]);
    expect(carriers).toHaveLength(2);
    expect(met).toEqual(all.map((one) => one.pid));
    process.kill(-pid, "SIGKILL");
    await gone;
  });

  test("that is too old is repeated before a process is signalled by it", async () => {
    const { child, pid, gone } = await tree("echo up; exec sleep 8000403");
    const clock = manualClock();
    const processTable = see(clock);
    await processTable.refresh();
    const identity = processTable.identityOf(pid);
    if (identity === undefined) throw new Error("It is not there.");
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await Promise.all([gone, exited]);
    expect(processTable.isStill(identity)).toBe(true);
    await clock.advance(1_000);
    expect(processTable.isStill(identity)).toBe(false);
  });

  test("that fails proves nothing: no process is gone, and none is signalled", async () => {
    const broken = new PsProcessTable({ clock: systemClock, dialect: "linux", program: "/bin/false" });
    await expect(broken.refresh()).rejects.toThrow();
    await expect(broken.listProcesses()).rejects.toThrow();
    const parent = { pid: process.ppid, startTime: 1, bootId: broken.bootId() ?? "" };
    expect(broken.isStill(parent)).toBe(true);
    expect(send(parent, "SIGKILL", broken.means())).toBe("refused");
  });

  test("is not needed to signal a group by the handle of its leader", async () => {
    const { child, pid, gone } = await tree("sleep 8000404 & echo up; wait");
    const processTable = see();
    await processTable.refresh();
    const identity = { pid, startTime: 1, bootId: "not calls for" };
    const leader: Leader = {
      ...{ identity, released: false, kill: () => undefined, write: () => undefined },
      get exit() {
        const { exitCode: code, signalCode: signal } = child;
        return code === null && signal === null ? undefined : { code, signal };
      },
    };
    expect(sendGroup(identity, "SIGKILL", processTable.means())).toBe("refused");
    const exited = once(child, "exit");
    expect(sendGroup(identity, "SIGKILL", processTable.means(leader))).toBe("sent");
    expect(processTable.means(leader).pinsGroup(identity)).toBe("there");
    await Promise.all([gone, exited]);
    expect(sendGroup(identity, "SIGKILL", processTable.means(leader))).toBe("gone");
    expect(processTable.means(leader).pinsGroup(identity)).toBe("gone");
  });
});

describe("a table", () => {
  /** A process table whose `ps` prints these lines. */
  function printed(lines: readonly string[], clock = manualClock()) {
    const dir = mkdtempSync(join(home, "table-"));
    const fake = join(dir, "ps");
    const put = (text: readonly string[]): void => writeFileSync(join(dir, "table"), text.join("\n"));
    put(lines);
    writeFileSync(fake, `#!/bin/sh\necho "$@" >>${dir}/calls\ncat ${dir}/table\n`, { mode: 0o755 });
    const calls = (): readonly string[] => readFileSync(join(dir, "calls"), "utf8").trim().split("\n");
    return { processTable: new PsProcessTable({ clock, dialect: "linux", program: fake }), put, clock, calls };
  }

  const row = (pid: number, parent: number, state: string, rest = "sh"): string =>
    `${pid} ${parent} ${pid} ${state} Sun Nov 15 09:44:09 2026 ${rest}`;
  const START = 20_261_115_094_409;

  test("has living and dead processes, and their children", async () => {
    const { processTable } = printed([
      ...[row(7, 1, "Ss"), row(8, 7, "R+"), row(9, 7, "Z"), row(10, 7, "X"), row(11, 7, "x"), row(12, 8, "T")],
    ]);
    await processTable.refresh();
    expect([processTable.childrenOf(7), processTable.childrenOf(8), processTable.childrenOf(12)]).toEqual([
      [8],
      [12],
      [],
    ]);
    expect(processTable.pids()).toEqual([7, 8, 9, 10, 11, 12]);
    expect([7, 9, 10, 11, 13].map((pid) => processTable.identityOf(pid)?.startTime)).toEqual([
      ...[START, undefined, undefined, undefined, undefined],
    ]);
    expect((await processTable.listProcesses()).map(({ pid }) => pid)).toEqual([7, 8, 12]);
    expect([processTable.statOf(9), processTable.statOf(13)]).toMatchObject([{ pid: 9, state: "Z" }, "gone"]);
    expect(processTable.isStill({ pid: 9, startTime: START, bootId: processTable.bootId() ?? "" })).toBe(false);
  });

  test("is requested with environments only where cookies are needed", async () => {
    const { processTable, calls } = printed([row(7, 1, "S", `sh ${COOKIE_NAME}=proc_ps.1:x`)]);
    await processTable.refresh();
    processTable.refreshNow();
    const [one] = await processTable.listProcesses();
    expect(one).toMatchObject({ pid: 7, cookies: ["proc_ps.1:x"], blank: false });
    expect(calls().map((line) => line.includes("command="))).toEqual([false, false, true]);
  });

  test("is refreshed when it is older than a quarter of a second, and not before", async () => {
    const { processTable, put, clock } = printed([row(7, 1, "S")]);
    await processTable.refresh();
    const identity = { pid: 7, startTime: START, bootId: processTable.bootId() ?? "" };
    put([row(8, 1, "S")]);
    await clock.advance(250);
    expect(processTable.isStill(identity)).toBe(true);
    await clock.advance(1);
    expect(processTable.isStill(identity)).toBe(false);
  });

  test("that cannot be parsed is reported, and the previous one is kept", async () => {
    const { processTable, put } = printed([row(7, 1, "S")]);
    await processTable.refresh();
    put(["what is this"]);
    await expect(processTable.refresh()).rejects.toThrow("cannot be parsed");
    expect(() => processTable.refreshNow()).toThrow(
      expect.objectContaining({
        code: "uncontained",
        message: expect.stringContaining("The processes cannot be listed with ps"),
        cause: expect.objectContaining({ message: expect.stringContaining("cannot be parsed") }),
      }),
    );
    expect(processTable.pids()).toEqual([7]);
  });

  test("of a ps that fails half-way is discarded, even if it printed lines", async () => {
    const dir = mkdtempSync(join(home, "half-"));
    const fake = join(dir, "ps");
    writeFileSync(fake, `#!/bin/sh\necho "${row(7, 1, "S")}"\nexit 3\n`, { mode: 0o755 });
    const processTable = new PsProcessTable({ clock: manualClock(), dialect: "linux", program: fake });
    await expect(processTable.listProcesses()).rejects.toThrow("Command failed");
    expect(processTable.pids()).toEqual([]);
  });

  test("is not replaced by a scan that began before it, and the scan's own process is omitted", async () => {
    const dir = mkdtempSync(join(home, "late-"));
    const fake = join(dir, "ps");
    execFileSync("mkfifo", [join(dir, "gate")]);
    const slow = `mkdir ${dir}/first 2>/dev/null && { read -r _ <${dir}/gate; echo "${row(7, 1, "S")}"; exit; }`;
    const itself = row(9, 1, "S").replace("9 1 9", () => "$$ 1 $$");
    writeFileSync(fake, ["#!/bin/sh", slow, `echo "${row(8, 1, "S")}"`, `echo "${itself}"`, ""].join("\n"));
    chmodSync(fake, 0o755);
    const processTable = new PsProcessTable({ clock: manualClock(), dialect: "linux", program: fake });
    const first = processTable.refresh();
    await expect.poll(() => existsSync(join(dir, "first"))).toBe(true);
    processTable.refreshNow();
    writeFileSync(join(dir, "gate"), "go\n");
    await first;
    expect(processTable.pids()[0]).toBe(8);
    expect((await processTable.listProcesses()).map(({ pid }) => pid)).toEqual([8]);
  });

  test("without any scan lets no group be signalled, because our own is not known", () => {
    const { processTable } = printed([row(7, 1, "S")]);
    const identity = { pid: 4_194_305, startTime: START, bootId: "" };
    const leader = { identity, released: false, exit: undefined, kill: () => undefined, write: () => undefined };
    expect(sendGroup(identity, "SIGKILL", processTable.means(leader))).toBe("refused");
  });

  test("shows no open files, and has another namespace than /proc", () => {
    const { processTable } = printed([row(7, 1, "S")]);
    expect([processTable.openFile(), processTable.hasOpen()]).toEqual([undefined, false]);
    expect(processTable.namespace()).toMatch(/^ps pid:\[\d+\]$/);
  });
});

describe("the watchdog over ps", () => {
  async function watch(script: string, change: (startTime: number) => number = (same) => same) {
    const { child, pid, gone, cookie } = await tree(script);
    const processTable = see();
    await processTable.refresh();
    const startTime = change(processTable.identityOf(pid)?.startTime ?? 0);
    return { watchdog: new Watchdog(() => undefined, processTable.watchdogKind), child, pid, gone, cookie, startTime };
  }

  test("G20: ends groups, and processes that have left them but carry the cookie", async () => {
    const { watchdog, pid, gone, cookie } = await watch("setsid sh -c '(sleep 8000405 &); echo up' & sleep 8000405");
    watchdog.watch({ pid, cookie, livenessLink: undefined, cgroup: undefined });
    watchdog.close();
    expect(await gone).toBe("gone");
  });

  test("finds the descendants of a known leader that have shed everything else", async () => {
    const bare = "env -i setsid sh -c 'sleep 8000406; :' & (trap '' TERM; sleep 8000406) & echo up; wait";
    const { watchdog, pid, gone, startTime } = await watch(bare);
    watchdog.watch({ pid, startTime, cookie: cookieNow(), livenessLink: undefined, cgroup: undefined });
    watchdog.close();
    expect(await gone).toBe("gone");
  });

  test("G21: does not end another process that has the recorded pid by now", async () => {
    const stranger = await watch("echo up; exec sleep 8000407", (startTime) => startTime - 1);
    const ours = await tree("echo up; exec sleep 8000408");
    const { watchdog, child, pid, startTime } = stranger;
    const exited = once(child, "exit");
    watchdog.watch({ pid, startTime, cookie: cookieNow(), livenessLink: undefined, cgroup: undefined });
    watchdog.watch({ pid: ours.pid, cookie: ours.cookie, livenessLink: undefined, cgroup: undefined });
    watchdog.close();
    // Leaders are ended before processes found by their cookie, so by now it would have been.
    await ours.gone;
    child.kill("SIGTERM");
    expect(await exited).toEqual([null, "SIGTERM"]);
  });
});

describe("the ledger over ps", () => {
  const intent = (cookie: string) => ({ id: "proc_ps.1", sessionId: "ses_ps", cookie, mechanism: "group" }) as const;

  test("G20: ends what a dead server has left, by its cookie", async () => {
    const { gone, cookie } = await tree("setsid sh -c '(sleep 8000409 &); echo up'");
    const dir = join(home, "sweep");
    const processTable = see();
    processTable.refreshNow();
    const myself = processTable.identityOf(process.pid);
    if (myself === undefined) throw new Error("We are not there.");
    openLedger({ dir, clock: systemClock, processTable, owner: { ...myself, startTime: 1 } }).intend(intent(cookie));
    const ledger = openLedger({ dir, clock: systemClock, processTable });
    const [swept] = await ledger.sweep(ledger.leftovers().entries);
    expect(swept).toMatchObject({ escaped: [], sure: true });
    // The shell that started it may not have ended yet.
    expect(swept?.killed).not.toEqual([]);
    expect(await gone).toBe("gone");
    expect(readdirSync(dir)).toEqual([]);
  });

  test("G21: leaves entries of a living server alone, from either source", () => {
    const dir = mkdtempSync(join(home, "living-"));
    openLedger({ dir, clock: systemClock, processTable: see() }).intend(intent(cookieNow()));
    expect(openLedger({ dir, clock: systemClock, processTable: see() }).leftovers()).toMatchObject({
      entries: [],
      live: 1,
    });
    const owner = identityOf(process.ppid);
    if (owner === undefined) throw new Error("Our parent is not there.");
    expect(openLedger({ dir, clock: systemClock, owner }).leftovers()).toMatchObject({ entries: [], elsewhere: 1 });
  });
});

describe("the platform", () => {
  const around = { stateDir: home, workspace: home, clock: systemClock };
  const UUID = "0A1B2C3D-0000-4000-8000-0123456789AB";
  const BOOT_TIME = 'echo "{ sec = 1700000000, usec = 5 } Tue Nov 14 22:13:20 2023"';

  /** This machine with the programs of a Mac: `ps` with its syntax, and this for `sysctl -n NAME`. */
  function onMac(sysctl: string): void {
    const dir = mkdtempSync(join(home, "mac-"));
    const tongue = "case $1 in -axww) all=axww ;; -axEww) all=axeww ;; *) exit 1 ;; esac";
    const put = (name: string, lines: readonly string[]): void =>
      writeFileSync(join(dir, name), ["#!/bin/sh", ...lines, ""].join("\n"), { mode: 0o755 });
    put("ps", [tongue, "shift", `exec ${program} "$all" "$@"`]);
    put("sysctl", ['[ "$1" = -n ] || exit 1', sysctl]);
    const { PATH: ours } = process.env;
    const { PATH: theirs } = PS_ENVIRONMENT;
    onTestFinished(() => {
      process.env.PATH = ours;
      PS_ENVIRONMENT.PATH = theirs;
    });
    process.env.PATH = `${dir}:${ours}`;
    PS_ENVIRONMENT.PATH = `${dir}:${theirs}`;
  }

  test("the self-test passes with ps alone", async () => {
    const processTable = see();
    const make = () => makeContainment("group", { ...around, machine: lookAtMachine(), processTable });
    expect(await selfTest({ clock: systemClock, workspace: home, make, processTable })).toEqual({ kind: "passed" });
  });

  test("on macOS the doctor reports only the last tier, its limits, and that it is untested", async () => {
    const machine = { ...lookAtMachine(), platform: "darwin" as const };
    const { mechanisms, best, notes } = await diagnose({ ...around, machine, processTable: see(), fresh: true });
    expect(mechanisms.filter(({ available }) => available).map(({ mechanism }) => mechanism)).toEqual(["group"]);
    expect(best).toBe("group");
    expect(mechanisms.at(-1)?.limits.join(" ")).toContain("if ps does not show its environment");
    expect(notes.join(" ")).toMatch(/never tried on a Mac.*Seatbelt is not used/);
  });

  test.each([
    ["its UUID", `echo ${UUID}`, UUID],
    ["its time, where boots have no UUID", `[ $2 = kern.boottime ] && ${BOOT_TIME}`, "1700000000"],
    ["its time, where the UUID cannot be read", `[ $2 = kern.boottime ] && ${BOOT_TIME} || echo`, "1700000000"],
    ["nothing, where neither is known", "exit 1", undefined],
  ])("the boot of a Mac is identified by %s", (_, sysctl, bootId) => {
    onMac(sysctl);
    expect(processTableOn("darwin", manualClock())?.bootId()).toBe(bootId);
  });

  test("on a Mac without a boot id no process counts as dead, and none is signalled", () => {
    onMac("exit 1");
    const processTable = processTableOn("darwin", manualClock());
    processTable?.refreshNow?.();
    const parent = processTable?.identityOf(process.ppid);
    if (processTable === undefined || parent === undefined) throw new Error("Our parent is not there.");
    expect(processTable.isStill(parent)).toBe(true);
    expect(send(parent, "SIGTERM", processTable.means())).toBe("refused");
  });

  test("on a Mac processes are listed with its ps", async () => {
    onMac(`echo ${UUID}`);
    const processTable = processTableOn("darwin", manualClock());
    processTable?.refreshNow?.();
    expect(processTable?.identityOf(process.pid)).toMatchObject({ pid: process.pid, bootId: UUID });
    expect((await processTable?.listProcesses())?.map(({ pid }) => pid)).toContain(process.pid);
  });

  test("on a Mac the doctor picks ps itself, and the last tier passes its test", async () => {
    onMac(`echo ${UUID}`);
    const machine = { ...lookAtMachine(), platform: "darwin" as const };
    const { mechanisms, best } = await diagnose({ ...around, machine, fresh: true });
    expect(mechanisms.at(-1)).toMatchObject({ mechanism: "group", test: { kind: "passed" } });
    expect(best).toBe("group");
  });

  test("on Windows the doctor reports that no process is started, and recommends WSL2", async () => {
    const machine = { ...lookAtMachine(), platform: "win32" as const };
    const { mechanisms, best, notes } = await diagnose({ ...around, machine, fresh: true });
    expect([best, mechanisms.some(({ available }) => available)]).toEqual([undefined, false]);
    expect(notes.join(" ")).toMatch(/not supported yet.*WSL2/);
    expect(mechanisms.every(({ fix }) => fix?.includes("WSL2"))).toBe(true);
  });

  test("on Windows `openSpawner` rejects, whatever mechanism is requested", async () => {
    const platform = Object.getOwnPropertyDescriptor(process, "platform") ?? {};
    onTestFinished(() => {
      Object.defineProperty(process, "platform", platform);
    });
    Object.defineProperty(process, "platform", { ...platform, value: "win32" });
    const opening = openSpawner({
      dir: join(home, "windows"),
      workspace: home,
      clock: systemClock,
      mechanism: "group",
    });
    await expect(opening).rejects.toMatchObject({ code: "uncontained", hint: expect.stringContaining("WSL2") });
  });
});
