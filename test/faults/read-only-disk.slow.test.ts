// A file system that the kernel has found at fault, under a whole house: from one write to the next it can only be
// read. Nothing is acknowledged that is not kept, stops work, and after the repair all that was told is there.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STOP_UNRECORDED } from "../../src/core/errors.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { untilAborted } from "../fixtures/belay.ts";
import { exists, type FailingServer, failingServer, startedPid } from "./failing-server.ts";
import { type FrailDisk, frailDisk, SKIPPED } from "./frail-disk.ts";

const acts = {
  sleeps: async (turn: Turn) => {
    const result = await turn.call("shell", null, async ({ processes }) => {
      return (await processes.run("sleep 1000 & sleep 1000")).kind;
    });
    return result.kind;
  },
  sleepsOn: async (turn: Turn) => {
    const handle = await turn.processes.start("sleep 1000 & sleep 1000", { feedback: "silent" });
    await untilAborted(turn.signal);
    return handle.id;
  },
};

describe.skipIf(SKIPPED !== "")(`G28: a disk that can only be read${SKIPPED}`, { timeout: 60_000 }, () => {
  let disk: FrailDisk;
  let house: FailingServer;
  beforeEach(async () => {
    disk = frailDisk();
    house = await failingServer(disk.folder, acts);
  });
  afterEach(async () => {
    await house.close();
    disk.remove();
  });

  test("D1: takes no prompt, lets everything be stopped, and after its repair has all that was told", {
    meta: { id: "G28/read-only-disk-stops-work" },
  }, async () => {
    const { belay } = house;
    const [session, other] = [await belay.createSession(), await belay.createSession()];
    const first = session.prompt("first");
    expect(await first.outcome).toEqual({ kind: "completed" });
    const [run, background] = [session.prompt("sleeps"), other.prompt("sleepsOn")];
    const pids = await Promise.all([startedPid(session), startedPid(other)]);
    const { head } = await session.row();
    disk.abandon();
    await expect(session.prompt("lost").accepted).rejects.toMatchObject({ code: "unavailable" });
    const unrecorded = { code: "unavailable", hint: STOP_UNRECORDED };
    await expect(run.cancel({ reason: "enough", waitMs: 5_000 })).rejects.toMatchObject(unrecorded);
    await expect(other.cancel({ waitMs: 5_000 })).rejects.toMatchObject(unrecorded);
    await untilGone(pids);
    expect(await house.readyz()).toEqual({ status: 503, says: "trouble" });
    await house.close();
    disk.repair();
    house = await failingServer(disk.folder, acts);
    const again = await house.belay.session(session.id);
    expect((await again.row()).head).toBeGreaterThanOrEqual(head);
    const idsOf = async (id: string) => (await (await house.belay.session(id)).runs()).map((one) => one.id).toSorted();
    expect(await idsOf(session.id)).toEqual([first.id, run.id].toSorted());
    expect(await idsOf(other.id)).toEqual([background.id]);
    expect(await (await house.belay.run(first.id)).outcome).toEqual({ kind: "completed" });
  });
});

/** Ends when they have; the time the test has is the limit. */
async function untilGone(pids: readonly number[]): Promise<void> {
  while (pids.some(exists)) await new Promise((resolve) => setImmediate(resolve));
}
