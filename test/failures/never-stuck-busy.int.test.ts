// G24 of the contract: a session is busy because its log says so, and never for longer than somebody drives it.
//
// A crash is a copy of the files, taken while their owner is at work and knows nothing of it. The next life has a clock
// that stands still: whatever it takes over, it takes over at its start, and well within the two seconds it has.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import type { BelayOptions } from "../../src/sdk/belay-options.ts";
import type { RunHandle } from "../../src/sdk/run.ts";
import type { Session } from "../../src/sdk/session.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { deaf, gate, logOf, openTestBelay, type TestBelay, waits } from "../fixtures/belay.ts";

// Files are opened and synced, on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const folder = mkdtempSync(join(tmpdir(), "belay-busy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshFile = (): string => {
  files += 1;
  return join(folder, `${files}.db`);
};

/** The files as they are on disk now: what a power switch would leave. */
function crashed(file: string): string {
  const image = freshFile();
  for (const end of ["", "-wal"]) if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, `${image}${end}`);
  return image;
}

/** Whether the log alone says that something is live or waits. */
async function busyByLog(session: Session): Promise<boolean> {
  const open = new Set<string>();
  for (const event of await logOf(session)) {
    if (event.type === "run.accepted") open.add(event.runId);
    if (event.type === "run.settled") open.delete(event.runId);
  }
  return open.size > 0;
}

async function busyBySession(session: Session): Promise<boolean> {
  const { live, queue } = await session.explain();
  return live !== undefined || queue.length > 0;
}

interface Scene {
  readonly house: TestBelay;
  readonly session: Session;
  readonly runs: readonly RunHandle[];
}

const hangs = async (turn: Parameters<typeof waits>[0]): Promise<string> => {
  await turn.call("hangs", null, () => new Promise<never>(() => {}));
  return "never";
};

/** Where a worker may vanish, and how its runs have ended once another has come. */
const PLACES: readonly {
  readonly where: string;
  readonly until: (scene: Omit<Scene, "runs">) => Promise<readonly RunHandle[]>;
  readonly ends: readonly string[];
}[] = [
  {
    where: "in a turn, with another run behind it",
    until: async ({ house, session }) => {
      const runs = [session.prompt("waits"), session.prompt("next")];
      await Promise.all([house.began("waits"), ...runs.map((run) => run.accepted)]);
      return runs;
    },
    ends: ["completed", "completed"],
  },
  {
    where: "in a call that never ends",
    until: async ({ house, session }) => {
      const run = session.prompt("hangs");
      await house.began("hangs");
      await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
      return [run];
    },
    ends: ["completed"],
  },
  {
    where: "while a cancelled run does not stop, with another behind it",
    until: async ({ house, session }) => {
      const runs = [session.prompt("deaf"), session.prompt("next")];
      await Promise.all([house.began("deaf"), ...runs.map((run) => run.accepted)]);
      expect(await runs[0]?.cancel()).toMatchObject({ kind: "stopping" });
      return runs;
    },
    ends: ["cancelled", "completed"],
  },
  {
    where: "before a run that waits has begun",
    until: async ({ house, session }) => {
      const runs = [session.prompt("waits"), session.prompt("next"), session.prompt("withdrawn")];
      await Promise.all([house.began("waits"), ...runs.map((run) => run.accepted)]);
      expect(await runs[2]?.cancel()).toMatchObject({ kind: "withdrawn" });
      return runs;
    },
    ends: ["completed", "completed", "cancelled"],
  },
];

describe("G24: a run whose worker is gone is taken over at once", () => {
  test.each(PLACES)("$where", { meta: { id: "G24/unattended-run-taken-over" } }, async ({ until, ends }) => {
    const file = freshFile();
    // With a grace without end, nothing is given up before the crash.
    const house = await openTestBelay({ waits, deaf, hangs }, { store: file, graceMs: 60_000 });
    const session = await house.belay.createSession();
    const runs = await until({ house, session });
    expect([await busyByLog(session), await busyBySession(session)]).toEqual([true, true]);
    const rows = await session.runs({ limit: 100 });
    const image = crashed(file);

    const clock = manualClock();
    const began = clock.elapsed();
    const open = new Set<string>(rows.filter(({ outcome }) => outcome === undefined).map(({ id }) => id));
    const over = gate();
    // Nobody asks for anything: what is taken over is taken over by itself.
    const onRecorded: BelayOptions["onRecorded"] = (_, events) => {
      for (const event of events) if (event.type === "run.settled") open.delete(event.runId);
      if (open.size === 0) over.open();
    };
    const next = await openTestBelay({}, { store: image, clock, onRecorded });
    await over.passed;
    const again = next.belay.session(session.id);
    const outcomes = await Promise.all(runs.map(async ({ id }) => (await next.belay.run(id)).outcome));
    expect(outcomes.map(({ kind }) => kind)).toEqual(ends);
    expect([await busyByLog(again), await busyBySession(again)]).toEqual([false, false]);
    // Nothing has waited for a lease, a timeout or anybody's patience.
    expect(clock.elapsed()).toBe(began);
    expect(verifyAtRest(await logOf(again))).toEqual([]);
    await next.belay.close({ mode: "cancel" });
    await house.belay.close({ mode: "cancel", limitMs: 0 });
  });

  test("also if the one that took over is gone in its turn, until it has been too often", {
    meta: { id: "G25/repeated-crash-fails-run" },
  }, async () => {
    let file = freshFile();
    const houses = [await openTestBelay({ waits }, { store: file })];
    const session = await (houses[0] as TestBelay).belay.createSession();
    const { id } = session.prompt("waits");
    await houses[0]?.began("waits");
    for (let life = 2; life <= 3; life += 1) {
      file = crashed(file);
      const house = await openTestBelay({ waits }, { store: file, clock: manualClock() });
      await house.began("waits");
      expect((await house.belay.session(session.id).explain()).live).toMatchObject({ runId: id, attempt: life });
      houses.push(house);
    }
    const last = await openTestBelay({ waits }, { store: crashed(file), clock: manualClock() });
    houses.push(last);
    expect(await (await last.belay.run(id)).outcome).toMatchObject({ kind: "failed", code: "crash_loop" });
    expect(last.begun).toEqual([]);
    for (const { belay } of houses) await belay.close({ mode: "cancel", limitMs: 0 });
  });
});

test("C1: whatever its agent throws or returns, a session whose log has no open run is not busy", {
  meta: { id: "G24/busy-follows-the-log" },
}, async () => {
  const free = gate();
  const house = await openTestBelay({
    throws: () => {
      throw new Error("at once");
    },
    rejects: () => Promise.reject(new TypeError("later")),
    nonsense: () => Object.assign(Object.create(null), { next: "never heard of" }),
    undefined: () => Promise.reject(undefined),
    held: () => free.passed.then(() => "done"),
  });
  const session = await house.belay.createSession();
  for (const text of ["throws", "rejects", "nonsense", "undefined", "held", "done"]) {
    const run = session.prompt(text);
    await house.began(text);
    if (text === "held") {
      expect([await busyByLog(session), await busyBySession(session)]).toEqual([true, true]);
      free.open();
    }
    await run.outcome;
    expect([text, await busyByLog(session), await busyBySession(session)]).toEqual([text, false, false]);
  }
  await house.belay.close({ mode: "cancel" });
});
