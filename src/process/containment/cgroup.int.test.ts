// Control groups in an ordinary directory: what is written for the kernel, and how its answers are interpreted. Real
// ones are in `self-test.int.test.ts`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { rememberingWatchdog } from "../../../test/fixtures/remembering-watchdog.ts";
import { readsDuring } from "../../../test/fixtures/vanishing-process.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { FORCE_WAIT_MS, LEFTOVERS_MAX } from "../limits.ts";
import { childrenOf, identityOf, type Seen } from "../tree/proc.ts";
import { SharedScan } from "../tree/shared-scan.ts";
import { cgroup, countsProcesses, endCgroup } from "./cgroup.ts";
import type { LaunchPlan, Leader } from "./containment.ts";

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "belay-cgroup-"));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const plan: LaunchPlan = {
  ...{ id: "proc_cg.1", cookie: "proc_cg.1:abc", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 77 }, terminal: false },
};

function made(setpriv?: string, scan: () => Promise<readonly Seen[]> = async () => []) {
  const clock = manualClock();
  const { watchdog, wards, told: log } = rememberingWatchdog();
  const sharedScan = new SharedScan(scan);
  return {
    clock,
    wards,
    log,
    containment: cgroup({ parent, setpriv, perl: undefined, arch: process.arch, watchdog, sharedScan, clock }),
  };
}

const path = (): string => join(parent, "belay.proc_cg.1.abc");
/** Writes a file that the kernel would provide. */
const put = (name: string, text: string): void => writeFileSync(join(path(), name), text);
const got = (name: string): string => readFileSync(join(path(), name), "utf8");

describe("the control group of a tree", () => {
  test("makes the kernel count processes where it can, and creates no files", () => {
    made();
    expect(readdirSync(parent)).toEqual([]);
    writeFileSync(join(parent, "cgroup.subtree_control"), "");
    made();
    expect(readFileSync(join(parent, "cgroup.subtree_control"), "utf8")).toBe("+pids");
  });

  test.each([
    ["cpu pids memory\n", true],
    ["pids\n", true],
    ["cpu pidsy\n", false],
    ["", false],
  ])("is capped if the kernel counts processes there: %j", (text, counted) => {
    writeFileSync(join(parent, "cgroup.subtree_control"), text);
    expect(countsProcesses(parent)).toBe(counted);
  });

  test("is not capped where the setting cannot be read", () => {
    expect(countsProcesses(parent)).toBe(false);
  });

  test("is created once, before the start, has a unique name, and is removed with everything below it", () => {
    const { prepare, release, cgroup: own } = made().containment.wrap(plan);
    expect([own, existsSync(path())]).toEqual([path(), false]);
    prepare?.();
    expect(readdirSync(path())).toEqual([]);
    expect(prepare).toThrow(
      expect.objectContaining({
        code: "not_started",
        message: `No control group could be made for proc_cg.1 in ${parent}.`,
      }),
    );
    mkdirSync(join(path(), "below/further"), { recursive: true });
    release?.();
    expect(existsSync(path())).toBe(false);
    release?.();
  });

  test("is entered by the leader first, and the leader dies with the server if setpriv is available", () => {
    const bare = made().containment.wrap(plan);
    expect([bare.file, bare.args[0]]).toEqual(["/bin/sh", "-c"]);
    expect(bare.args[1]).toContain(`echo 0 >${path()}/cgroup.procs || exit 126\n(exec "$@"`);
    const held = made("/usr/bin/setpriv").containment.wrap(plan);
    expect([held.file, ...held.args.slice(0, 4)]).toEqual([
      ...["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", "/bin/sh"],
    ]);
  });

  test("closes its watchdog", () => {
    const { containment, log } = made();
    expect(containment.profiles).toEqual(["none"]);
    containment.close?.();
    expect(log).toEqual(["closed"]);
  });
});

/** A real process that has printed something. All of its group ends with the test. */
async function spoken(script: string): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn("/bin/sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const gone = once(child.stdout, "close");
  onTestFinished(async () => {
    killGroup(child);
    await gone;
  });
  await once(child.stdout, "data");
  return Object.assign(child, { pid: Number(child.pid) });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-Number(pid), "SIGKILL");
  } catch {
    // All of it is gone.
  }
}

/** A real leader with a command below it, and another process outside of its group. */
async function trees() {
  const [leader, other] = await Promise.all([
    spoken("sleep 8000501 & sleep 8000501 & echo up; wait"),
    spoken("echo up; exec sleep 8000502"),
  ]);
  const identity = identityOf(leader.pid);
  const [command = 0, companion = 0] = childrenOf(leader.pid);
  if (identity === undefined) throw new Error("A leader that has spoken is there.");
  const asLeader: Leader = {
    ...{ identity, exit: undefined, released: true, write: () => undefined, kill: () => undefined },
  };
  return { leader, other: other.pid, command, companion, asLeader };
}

describe("a tree in a control group", () => {
  test("is ended by one write without a signal, wherever its processes have gone", async () => {
    const { asLeader, command, leader } = await trees();
    const { containment, wards } = made();
    containment.wrap(plan).prepare?.();
    put("cgroup.kill", "");
    const held = containment.hold(asLeader, plan);
    expect([held.pid, held.identity]).toEqual([command, asLeader.identity]);
    expect(wards).toEqual([
      { pid: asLeader.identity.pid, cookie: plan.cookie, livenessLink: undefined, cgroup: path() },
    ]);
    held.force();
    expect(got("cgroup.kill")).toBe("1");
    await settled();
    expect([leader.signalCode, identityOf(asLeader.identity.pid) === undefined]).toEqual([null, false]);
    expect(identityOf(command)).toBeDefined();
  });

  test("on a kernel without `cgroup.kill` is ended by its group", async () => {
    const { asLeader, leader } = await trees();
    const { containment } = made();
    containment.wrap(plan).prepare?.();
    const exited = once(leader, "exit");
    containment.hold(asLeader, plan).force();
    expect((await exited)[1]).toBe("SIGKILL");
  });

  test("is stopped politely by its group", async () => {
    const { asLeader, leader } = await trees();
    const { containment } = made();
    const exited = once(leader, "exit");
    containment.hold(asLeader, plan).sendSigterm();
    expect((await exited)[1]).toBe("SIGTERM");
  });

  test("at a terminal is stopped by its command, and the program that makes the terminal stays", async () => {
    const { asLeader, command, companion } = await trees();
    const { containment } = made();
    containment.hold(asLeader, { ...plan, terminal: true }).sendSigterm();
    await expect.poll(() => identityOf(command)).toBeUndefined();
    expect([identityOf(companion), identityOf(asLeader.identity.pid)]).not.toContain(undefined);
  });

  test("reports what is left besides leader and command, including groups further below", async () => {
    const { asLeader, command, companion, other } = await trees();
    const { containment } = made();
    const { pid } = asLeader.identity;
    const held = containment.hold(asLeader, plan);
    expect(held.left()).toEqual([]);
    containment.wrap(plan).prepare?.();
    put("cgroup.procs", `${pid}\n${command}\n${companion}\n4194305\n`);
    mkdirSync(join(path(), "below"));
    writeFileSync(join(path(), "below/cgroup.procs"), `${other}\n`);
    expect(held.left()).toEqual([
      { pid: companion, signalled: true },
      { pid: other, signalled: false },
    ]);
  });

  test("is gone when the kernel reports it empty, and is removed from the watchdog", async () => {
    const { asLeader } = await trees();
    const { containment, log, clock } = made();
    containment.wrap(plan).prepare?.();
    put("cgroup.events", "populated 1\nfrozen 0\n");
    const verified = containment.hold(asLeader, plan).verify(200, []);
    await clock.advance(100);
    expect(log).toEqual([]);
    put("cgroup.events", "populated 0\nfrozen 0\n");
    await clock.advance(100);
    expect(await verified).toEqual({ killed: 0, left: [] });
    expect(log).toEqual(["forgotten"]);
  });

  test("that is not empty in time is reported by its members, and stays with the watchdog", async () => {
    const { asLeader } = await trees();
    const { containment, log, clock } = made();
    containment.wrap(plan).prepare?.();
    put("cgroup.events", "populated 1\n");
    put("cgroup.procs", "12\n13\n");
    const verified = containment.hold(asLeader, plan).verify(200, []);
    await clock.advance(200);
    expect(await verified).toEqual({ killed: 0, left: [12, 13] });
    expect(log).toEqual([]);
  });

  test("G40: with many members is checked a few at a time, and in the end completely", async () => {
    const { asLeader } = await trees();
    const { containment, clock } = made();
    containment.wrap(plan).prepare?.();
    put("cgroup.events", "populated 1\n");
    // Numbers that no process can have.
    const pids = Array.from({ length: 3 * LEFTOVERS_MAX - 1 }, (_, index) => 4_194_305 + index);
    put("cgroup.procs", pids.map((pid) => `${pid}\n`).join(""));
    const held = containment.hold(asLeader, plan);
    const looked = (paths: readonly string[]): number =>
      new Set(paths.filter((one) => /^\/proc\/4194\d{3}\/stat$/.test(one))).size;
    let verified: Promise<unknown> = Promise.resolve();
    const first = await readsDuring(() => {
      verified = held.verify(1_000, []);
    });
    expect(looked(first)).toBe(LEFTOVERS_MAX);
    const later = await readsDuring(() => clock.advance(100));
    expect(looked([...first, ...later])).toBe(pids.length);
    await clock.advance(900);
    expect(await verified).toEqual({ killed: 0, left: pids });
  });

  test("whose final scan failed is not reported gone, and stays with the watchdog", async () => {
    const { asLeader } = await trees();
    const { containment, log, clock } = made(undefined, () => Promise.reject(new Error("out of files")));
    containment.wrap(plan).prepare?.();
    const verified = containment.hold(asLeader, plan).verify(200, []);
    await clock.advance(2_000);
    expect(await verified).toEqual({ killed: 0, left: [asLeader.identity.pid] });
    expect(log).toEqual([]);
  });

  test("is not held if its leader has no command", () => {
    const childless = { pid: 4_194_305, startTime: 1, bootId: "boot" };
    const leader: Leader = {
      ...{ identity: childless, exit: undefined, released: true, write: () => undefined, kill: () => undefined },
    };
    expect(() => made().containment.hold(leader, plan)).toThrow("The tree has ended before it was held.");
  });
});

describe("a control group left by an earlier server", () => {
  test("is ended and removed", async () => {
    const { clock } = made();
    mkdirSync(join(path(), "below"), { recursive: true });
    await endCgroup(path(), clock);
    expect(existsSync(path())).toBe(false);
    await endCgroup(path(), clock);
    expect(existsSync(path())).toBe(false);
  });

  test("is killed and waited for, and not reported gone while it has members", async () => {
    const { clock } = made();
    mkdirSync(path());
    put("cgroup.kill", "");
    put("cgroup.events", "populated 1\n");
    const ended = endCgroup(path(), clock);
    const failed = expect(ended).rejects.toThrow(`${path()} still has members.`);
    expect(got("cgroup.kill")).toBe("1");
    await clock.advance(FORCE_WAIT_MS - 1);
    expect(clock.pending).toHaveLength(1);
    await clock.advance(1);
    await failed;
  });
});
