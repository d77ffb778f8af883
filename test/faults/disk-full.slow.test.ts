// A disk that is full, for real, under a whole house: what is refused leaves no trace, what goes on gets its end, stops
// work, and when there is room everything comes back by itself.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Turn } from "../../src/ports/agent.ts";
import type { RunControl, SessionControl } from "../../src/ports/control.ts";
import { Gate } from "../../src/testing/gate.ts";
import { untilAborted } from "../fixtures/belay.ts";
import { exists, type FailingServer, failingServer, startedPid } from "./failing-server.ts";
import { SKIPPED, type SmallDisk, smallDisk } from "./small-disk.ts";

describe.skipIf(SKIPPED !== "")(`G28: a disk that is full${SKIPPED}`, { timeout: 60_000 }, () => {
  let disk: SmallDisk;
  let house: FailingServer;
  let session: SessionControl;
  const go = { talk: new Gate() };

  beforeEach(async () => {
    disk = smallDisk();
    go.talk = new Gate();
    house = await failingServer(disk.folder, {
      talk: async (turn) => {
        turn.emit("before, ");
        await go.talk.opened;
        turn.emit("after");
        return "before, after";
      },
      sleeps: (turn) => shell(turn, "sleep 1000 & sleep 1000"),
      sleepsOn: async (turn) => {
        const handle = await turn.processes.start("sleep 1000", { feedback: "silent" });
        await untilAborted(turn.signal);
        return handle.id;
      },
      starts: async (turn) => {
        await go.talk.opened;
        return shell(turn, "touch begun; sleep 1000");
      },
      floods: async (turn) => {
        const options = { stdin: "open", feedback: "silent" } as const;
        return (await turn.processes.start("read go; head -c 4000000 /dev/zero | tr '\\0' x", options)).id;
      },
    });
    session = await house.client.createSession();
  });
  afterEach(async () => {
    disk.makeRoom();
    await house.close();
    disk.remove();
  });

  test("D1: new prompts are refused with 507 and leave no trace, and taken again once there is room", {
    meta: { id: "G28/full-disk-refuses-prompts" },
  }, async () => {
    expect(await session.prompt("first").outcome).toEqual({ kind: "completed" });
    expect(await house.readyz()).toEqual({ status: 200, says: "ready" });
    const before = await session.row();
    disk.fill();
    // Some of what was left over may still fit; then nothing does.
    let refused = 0;
    for (let tries = 0; refused === 0 && tries < TRIES_MAX; tries += 1) {
      if ((await house.post(session.id, "x".repeat(20_000))) === 507) refused += 1;
    }
    expect(refused).toBe(1);
    const accepted = await session.runs();
    await expect(session.prompt("y".repeat(20_000)).accepted).rejects.toMatchObject({ code: "store_full" });
    expect(await session.runs()).toHaveLength(accepted.length);
    expect((await session.row()).head).toBeGreaterThanOrEqual(before.head);
    for (const { id } of accepted) expect(await (await house.client.run(id)).outcome).toEqual({ kind: "completed" });
    disk.makeRoom();
    // After its last refusal the session's log is tried again within two seconds.
    const again = () => session.prompt("again").outcome.catch(({ code }: { code: string }) => code);
    await expect.poll(again, { timeout: 5_000 }).toEqual({ kind: "completed" });
  });

  test("D1: the server says that it is not ready, and that it is again", async () => {
    disk.fill();
    await useUp(session);
    expect(await says(house, "trouble")).toBe(503);
    expect(await house.client.status()).toMatchObject({ phase: "open", trouble: "store_full" });
    disk.makeRoom();
    expect(await says(house, "ready")).toBe(200);
  });

  test("D1: a live run gets its outcome, and its followers receive all of it", {
    meta: { id: "G28/full-disk-live-run-ends" },
  }, async () => {
    const run = session.prompt("talk");
    await heard(run, "turn.requested");
    disk.fill();
    await useUp(await house.client.createSession().catch(() => session));
    go.talk.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await run.text()).toBe("before, after");
  });

  test("D1: stops of runs, processes and sessions work, and trees die", async () => {
    const run = session.prompt("sleeps");
    const pid = await startedPid(session);
    const other = await house.client.createSession();
    const background = other.prompt("sleepsOn");
    const second = await startedPid(other);
    disk.fill();
    await useUp(session);
    const stopped = await run.cancel({ reason: "enough", waitMs: 10_000 });
    expect(stopped).toMatchObject({ kind: "stopping", ended: { kind: "settled", outcome: { kind: "cancelled" } } });
    expect(exists(pid)).toBe(false);
    const all = await other.cancel({ waitMs: 10_000 });
    expect(all.kind).toBe("stopping");
    expect(exists(second)).toBe(false);
    expect(await background.outcome).toMatchObject({ kind: "cancelled" });
  });

  test("D1: a process that cannot be recorded is not started, and its run gets the reason", {
    meta: { id: "G28/full-disk-starts-no-process" },
  }, async () => {
    const run = session.prompt("starts");
    await heard(run, "turn.requested");
    disk.fill();
    await useUp(await house.client.createSession().catch(() => session));
    disk.fill();
    go.talk.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await run.text()).toMatch(/^failed: There is no space left for /);
    expect(existsSync(join(disk.folder, "begun"))).toBe(false);
    disk.makeRoom();
    expect(await (await house.client.createSession()).prompt("again").outcome).toEqual({ kind: "completed" });
  });

  test("G23: the output of a process is counted exactly, and omitted bytes are reported", async () => {
    const run = session.prompt("floods");
    await startedPid(session);
    const process = await session.processes.get(await run.text());
    disk.fill();
    await useUp(session);
    await process.write("go\n");
    const result = await process.wait();
    expect(result).toMatchObject({ outcome: { kind: "completed" }, output: { bytes: 4_000_000 } });
    expect(house.notices).toContainEqual(expect.objectContaining({ type: "process" }));
    // The end of it is kept in any case; of the rest less than there was.
    expect(result?.output?.tail).toMatch(/^x+$/);
    disk.makeRoom();
    expect(await session.prompt("again").outcome).toEqual({ kind: "completed" });
  });

  test("G36: requests are answered although the audit trail cannot be written; what it missed is counted", async () => {
    const run = session.prompt("sleeps");
    await startedPid(session);
    disk.fill();
    await useUp(session);
    expect(await run.cancel({ waitMs: 10_000 })).toMatchObject({ ended: { kind: "settled" } });
    // What the reserve has given back is used up; then nothing but the trail is written.
    disk.fill();
    for (let tries = 0; tries < TRIES_MAX && house.audit.missed === 0; tries += 1) {
      expect(await house.post(session.id, "z")).toBe(507);
    }
    expect(house.audit.missed).toBeGreaterThan(0);
  });
});

const TRIES_MAX = 2_000;

/** Prompts until nothing more is taken: what was left over is used up. */
async function useUp(session: SessionControl): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const refused = await session.prompt("z").accepted.then(
      () => false,
      () => true,
    );
    if (refused) return;
  }
  expect.fail("the disk is never full");
}

async function shell(turn: Turn, command: string): Promise<string> {
  const result = await turn.call("shell", { command }, async ({ processes }) => {
    const ran = await processes.run(command);
    return ran.kind === "ended" ? `ended ${ran.output?.bytes}` : ran.kind;
  });
  if (result.kind === "completed") return String(result.value);
  return result.kind === "failed" ? `failed: ${result.message}` : result.kind;
}

async function heard(run: RunControl, type: string): Promise<void> {
  for await (const event of run) if (event.type === type) return;
}

/** Asks until it says so: its answers count for a second. */
async function says(house: FailingServer, wanted: string): Promise<number> {
  for (;;) {
    const { status, says: word } = await house.readyz();
    if (word === wanted) return status;
  }
}
