// The same trees with every mechanism of this machine: the guarantees hold for each of them.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Child, Mechanism, SpawnRequest } from "../../ports/spawner.ts";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { COOKIE_NAME, makeCookie } from "../launch/environment.ts";
import { SHELL } from "../launch/gate.ts";
import { findProgram } from "../launch/program-lookup.ts";
import { type OpenSpawner, openSpawner } from "../spawner.ts";
import { childrenOf } from "../tree/proc.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { PsProcessTable } from "../tree/ps-process-table.ts";
import type { LaunchPlan } from "./containment.ts";
import { lookAtMachine, type Machine } from "./machine.ts";
import { isAtLeast, MECHANISMS, makeContainment, TIER_OF, TIERS } from "./mechanisms.ts";

const machine = lookAtMachine();
const has: Readonly<Record<Mechanism, boolean>> = {
  bubblewrap: machine.programs.bwrap !== undefined,
  unshare: machine.mayUnshare && machine.programs.unshare !== undefined,
  cgroup: machine.cgroup !== undefined,
  anchor: machine.programs.perl !== undefined,
  group: true,
};
const here = MECHANISMS.filter((one) => has[one]);
let count = 0;

const request = (command: string, more: Partial<SpawnRequest> = {}): SpawnRequest => {
  count += 1;
  return { id: `proc_mechanism.${count}`, sessionId: "ses_mechanism", command, ...more };
};

async function says(child: Child, words: string): Promise<void> {
  let text = "";
  for await (const page of child.output.follow()) {
    text += page.text;
    if (text.includes(words)) return;
  }
}

describe.each(here)("a tree held by %s", (mechanism) => {
  let home: string;
  let spawner: OpenSpawner;

  beforeAll(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "belay-mechanism-")));
    spawner = await openSpawner({ dir: join(home, "state"), workspace: home, clock: systemClock, mechanism });
  });

  afterAll(async () => {
    await spawner.close();
    rmSync(home, { recursive: true, force: true });
  });

  const nothingIsLeft = (): void => {
    expect(readdirSync(join(home, "state/ledger"))).toEqual([]);
  };

  test("cleans up on a polite stop, and so do its descendants", async () => {
    const slow = `trap "echo below; exit" TERM; echo up; while :; do sleep 0.01; done`;
    const child = await spawner.spawn(request(`trap 'wait; echo tidied; exit 3' TERM; sh -c '${slow}' & wait`));
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ code: 3, stopped: true, signals: ["SIGTERM"], left: 0, escaped: [] });
    expect(child.output.excerpt({ stream: "stdout" }).head).toBe("up\nbelow\ntidied\n");
    nothingIsLeft();
  });

  test("is killed completely when it ignores SIGTERM, including processes that have left its group", async () => {
    const deaf = "trap '' TERM; (setsid sh -c 'echo up; exec sleep 8000601' &); while :; do sleep 0.01; done";
    const child = await spawner.spawn(request(deaf, { graceMs: 10 }));
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ signal: "SIGKILL", signals: ["SIGTERM", "SIGKILL"], escaped: [] });
    nothingIsLeft();
  });

  test("is ended as a whole when its command has ended, and the processes it left are counted", async () => {
    const child = await spawner.spawn(request("sleep 8000602 & sleep 8000602 & exit 4"));
    expect(await child.ended).toMatchObject({ code: 4, stopped: false, left: 2, escaped: [] });
    nothingIsLeft();
  });

  test.skipIf(machine.programs.script === undefined)("cleans up at a terminal too (with `script`)", async () => {
    const command = "trap 'echo tidied; exit 5' TERM; echo up; while :; do sleep 0.01; done";
    const child = await spawner.spawn(request(command, { terminal: { columns: 80, rows: 24 } }));
    await says(child, "up");
    child.stop();
    expect(await child.ended).toMatchObject({ code: 5, signals: ["SIGTERM"], escaped: [] });
    expect(child.output.excerpt().head).toContain("tidied");
  });
});

test("tiers are ordered, and every mechanism has one", () => {
  expect(MECHANISMS.map((one) => TIERS.indexOf(TIER_OF[one]))).toEqual([0, 0, 1, 2, 3]);
  expect([isAtLeast("cgroup", "cgroup"), isAtLeast("namespace", "anchor"), isAtLeast("group", "anchor")]).toEqual([
    ...[true, true, false],
  ]);
});

describe("making a mechanism", () => {
  const plan: LaunchPlan = {
    ...{ id: "proc_m.1", cookie: "proc_m.1:x", argv: ["/bin/true"], env: {}, cwd: "/tmp", workspace: "/tmp" },
    ...{ profile: "contain", limits: { processesMax: 100 }, terminal: false },
  };
  const rich: Machine = {
    ...{ platform: "linux", kernel: "6.14.0", root: false, mayUnshare: false, capsPerNamespace: true },
    programs: { bwrap: "/b/bwrap", setpriv: "/b/setpriv", unshare: "/b/unshare", setsid: "/b/setsid", perl: "/b/perl" },
    cgroup: undefined,
  };
  const wrapped = (mechanism: Mechanism, more: Partial<Machine> = {}, hidden?: readonly string[]) => {
    const around = { machine: { ...rich, ...more }, stateDir: "/state", workspace: "/tmp", clock: manualClock() };
    const made = makeContainment(mechanism, { ...around, ...(hidden === undefined ? {} : { hidden }) })?.wrap(plan);
    return made === undefined ? undefined : [made.file, ...made.args].join(" ");
  };

  test("uses the programs and permissions of the machine", () => {
    expect(wrapped("bubblewrap")).toMatch(/^\/b\/bwrap .*--unshare-user --cap-add CAP_SYS_ADMIN.*pid_max/s);
    expect(wrapped("bubblewrap")).not.toContain("/dev/null /etc/passwd");
    expect(wrapped("bubblewrap", {}, ["/etc/passwd"])).toContain("--ro-bind /dev/null /etc/passwd");
    expect(wrapped("bubblewrap", { mayUnshare: true, root: true })).not.toContain("--unshare-user");
    expect(wrapped("bubblewrap", { capsPerNamespace: false })).not.toContain("pid_max");
    const unshared = "/b/setpriv --pdeathsig KILL -- /b/unshare";
    expect(wrapped("unshare")?.startsWith(`${unshared} --user --map-current-user --keep-caps --pid`)).toBe(true);
    expect(wrapped("unshare", { capsPerNamespace: false })).toContain(`${unshared} --user --map-current-user --pid`);
    expect(wrapped("unshare", { mayUnshare: true })?.startsWith(`${unshared} --pid`)).toBe(true);
    expect(wrapped("anchor")).toMatch(/^\/b\/perl -e /);
  });

  test.each([
    ["/proc", (): ProcessTable => PROC_PROCESS_TABLE],
    [
      "ps",
      (): ProcessTable =>
        new PsProcessTable({ clock: systemClock, dialect: "linux", program: findProgram("ps") ?? "ps" }),
    ],
  ])("reports to the operator that a watchdog was killed, with processes listed by %s", async (_, see) => {
    const processTable = see();
    // Unique: the watchdog of the row before may still be searching for its own cookie.
    const cookie = makeCookie(plan.id, randomBytes(9).toString("base64url"));
    const notice = Promise.withResolvers<string>();
    const around = { machine: rich, stateDir: "/state", workspace: "/tmp", clock: systemClock, processTable };
    const containment = makeContainment("group", { ...around, onNotice: notice.resolve });
    const child = spawn(SHELL, ["-c", "sleep 8000603 & echo up; wait"], {
      ...{ detached: true, stdio: ["ignore", "pipe", "ignore"] },
      env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
    });
    onTestFinished(() => {
      containment?.close?.();
      child.kill("SIGKILL");
    });
    if (child.stdout === null) throw new Error("It did not start.");
    await once(child.stdout, "data");
    const gone = once(child.stdout.resume(), "close");
    await processTable.refresh?.();
    const identity = processTable.identityOf(child.pid ?? 0);
    if (identity === undefined) throw new Error("It is not there.");
    const before = childrenOf(process.pid);
    const leader = { identity, released: false, exit: undefined, kill: () => undefined, write: () => undefined };
    containment?.hold(leader, { ...plan, cookie });
    for (const pid of childrenOf(process.pid)) if (!before.includes(pid)) process.kill(pid, "SIGKILL");
    expect(await notice.promise).toContain("The watchdog");
    // Another one was started, and ends the tree.
    containment?.close?.();
    await gone;
  });

  test.each([
    ["bubblewrap", ["bwrap"]],
    ["unshare", ["unshare"]],
    ["unshare", ["setpriv"]],
    ["unshare", ["setsid"]],
    ["anchor", ["perl"]],
    ["cgroup", []],
  ] as const)("fails without its programs: %s without %j", (mechanism, without) => {
    const programs = Object.entries(rich.programs).filter(([name]) => !(without as readonly string[]).includes(name));
    expect(wrapped(mechanism, { programs: Object.fromEntries(programs) })).toBeUndefined();
  });
});
