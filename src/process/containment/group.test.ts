// Groups on a simulated machine: which trees the watchdog knows, where signals go, and how the end is verified. Real
// ones are in `self-test.int.test.ts`.
import { describe, expect, test } from "vitest";
import { rememberingWatchdog } from "../../../test/fixtures/remembering-watchdog.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import type { Identity } from "../tree/proc.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { SharedScan } from "../tree/shared-scan.ts";
import type { LaunchPlan, Leader } from "./containment.ts";
import { group } from "./group.ts";

const LEADER: Identity = { pid: 5_002_000, startTime: 7, bootId: "boot" };
const COMMAND: Identity = { pid: 5_002_001, startTime: 8, bootId: "boot" };

const plan: LaunchPlan = {
  ...{ id: "proc_group.1", cookie: "proc_group.1:x", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 100 }, terminal: false },
};

function machine(more: Partial<ProcessTable> = {}, sharedScan = new SharedScan(async () => [])) {
  const clock = manualClock();
  const { watchdog, wards, told: log } = rememberingWatchdog();
  const processTable: ProcessTable = {
    ...PROC_PROCESS_TABLE,
    childrenOf: (pid) => (pid === LEADER.pid ? [COMMAND.pid] : []),
    identityOf: (pid) => (pid === COMMAND.pid ? COMMAND : undefined),
    openFile: () => "pipe:[99]",
    means: () => ({
      ...{ presenceOf: () => "there", pinsGroup: () => "there", pid: 100, group: () => 90 },
      kill: (pid, signal) => void log.push(`${signal} to ${pid}`),
    }),
    ...more,
  };
  const leader: Leader = {
    ...{ identity: LEADER, kill: () => undefined, write: () => undefined, exit: undefined, released: true },
  };
  const containment = group({ watchdog, sharedScan, clock, processTable });
  return { clock, wards, log, containment, hold: () => containment.hold(leader, plan) };
}

describe("a tree in a group", () => {
  test("is known to the watchdog with all its marks, and its signals go to the group", () => {
    const { hold, wards, log, containment } = machine();
    const held = hold();
    expect([held.pid, held.identity]).toEqual([COMMAND.pid, LEADER]);
    expect(wards).toEqual([
      { pid: LEADER.pid, startTime: 7, cookie: plan.cookie, livenessLink: "pipe:[99]", cgroup: undefined },
    ]);
    held.sendSigterm();
    held.force();
    containment.close?.();
    expect(log).toEqual([
      ...[`SIGTERM to -${LEADER.pid}`, `SIGCONT to -${LEADER.pid}`, `SIGKILL to -${LEADER.pid}`, "closed"],
    ]);
  });

  test("is not held when its command has ended, and the watchdog does not know it", () => {
    for (const gone of [{ childrenOf: () => [] }, { identityOf: () => undefined }]) {
      const { hold, wards } = machine(gone);
      expect(hold).toThrow("The tree has ended before it was held.");
      expect(wards).toEqual([]);
    }
  });

  test("can be scanned again where answers come from a cached scan, and only there", async () => {
    let scans = 0;
    const refresh = async (): Promise<void> => {
      scans += 1;
    };
    await machine({ refresh }).hold().refresh?.();
    expect(scans).toBe(1);
    expect(machine().hold().refresh).toBeUndefined();
  });

  test("is removed from the watchdog when no process is left", async () => {
    const { hold, log, clock } = machine();
    const verified = hold().verify(200, []);
    expect(log).toEqual([]);
    await clock.advance(1_000);
    expect(await verified).toEqual({ killed: 0, left: [] });
    expect(log).toEqual(["forgotten"]);
  });

  test("that is not proven gone stays with the watchdog", async () => {
    const sharedScan = new SharedScan(() => Promise.reject(new Error("out of files")));
    const { hold, log, clock } = machine({}, sharedScan);
    const verified = hold().verify(200, []);
    await clock.advance(2_000);
    expect(await verified).toEqual({ killed: 0, left: [LEADER.pid] });
    expect(log).toEqual([]);
  });
});
