// One process, from its request: how it is stopped before it exists, and which waiters get its end.
import { describe, expect, test } from "vitest";
import type { Work } from "../../core/model/ids.ts";
import type { ProcessEnd } from "../../core/model/process.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import type { ScriptedChild } from "../../testing/scripted-child.ts";
import { scriptedSpawner } from "../../testing/scripted-spawner.ts";
import { LiveProcess, startNotes } from "./live-process.ts";

interface Scene {
  readonly live: LiveProcess;
  readonly child: ScriptedChild;
  readonly ends: [ProcessEnd, readonly Work[]][];
}

async function scene(): Promise<Scene> {
  const clock = manualClock();
  const ends: Scene["ends"] = [];
  const live = new LiveProcess("proc_1.1", "ses_1", {
    clock,
    settle: async (end, waiters) => {
      ends.push([end, waiters]);
      return { processId: end.processId, outcome: { kind: "completed" } };
    },
    note: () => {},
    late: () => {},
  });
  const request = { id: live.id, sessionId: "ses_1", command: "work", graceMs: 1_500 } as const;
  return { live, ends, child: await scriptedSpawner({ clock }).spawn(request) };
}

test.each([
  { asked: ["alone"], graceMs: 1_500 },
  { asked: ["alone", "at once"], graceMs: 0 },
  { asked: ["at once", "alone"], graceMs: 0 },
  { asked: [{ stopBy: 1_000, deadBy: 1_400 }], graceMs: 1_000 },
  { asked: [{ stopBy: 2_000, deadBy: 2_400 }], graceMs: 1_500 },
  { asked: ["alone", { stopBy: 300, deadBy: 700 }], graceMs: 300 },
] as const)("stopped $asked and started all the same, it is stopped with a grace of $graceMs", async (given) => {
  const { live, child } = await scene();
  for (const how of given.asked) live.stop(how);
  expect(live.starting.aborted).toBe(true);
  live.began(child);
  expect(child.stops).toEqual([given.graceMs]);
});

test("the calls that still wait for it are named with its end, once each", async () => {
  const { live, child, ends } = await scene();
  live.began(child);
  const [one, other] = [live.awaitedBy("call_1.1"), live.awaitedBy("call_1.2")];
  const again = live.awaitedBy("call_1.1");
  const third = live.awaitedBy("call_1.3");
  const twice = live.awaitedBy("call_1.3");
  one();
  one();
  again();
  child.exit();
  await settled();
  expect(ends).toMatchObject([[{ processId: "proc_1.1", exit: { code: 0 } }, ["call_1.2", "call_1.3"]]]);
  for (const leave of [other, third, twice]) leave();
});

describe("a child of a custom spawner", () => {
  test("whose end is never reported is settled as lost, and nothing else fails", async () => {
    const { live, child, ends } = await scene();
    live.began(Object.assign(Object.create(child), { ended: Promise.reject(new Error("lost track")) }));
    await settled();
    expect(ends).toEqual([[{ processId: "proc_1.1" }, []]]);
    expect(await live.result).toMatchObject({ processId: "proc_1.1" });
  });

  test("whose output cannot be read is settled without it", async () => {
    const { live, child, ends } = await scene();
    const excerpt = (): never => {
      throw new Error("the file is gone");
    };
    live.began(
      Object.assign(Object.create(child), { output: Object.assign(Object.create(child.output), { excerpt }) }),
    );
    child.exit(3);
    await settled();
    expect(ends).toMatchObject([[{ processId: "proc_1.1", exit: { code: 3 } }, []]]);
    expect(ends[0]?.[0]).not.toHaveProperty("output");
  });
});

test("notes come after 2, 4, 8, 16, 30 and then every 30 seconds, until they are cancelled", async () => {
  const clock = manualClock();
  const told: number[] = [];
  const began = clock.elapsed();
  const cancelNotes = startNotes(clock, () => told.push(clock.elapsed() - began));
  await clock.advance(125_000);
  expect(told).toEqual([2_000, 6_000, 14_000, 30_000, 60_000, 90_000, 120_000]);
  cancelNotes();
  expect(clock.pending).toEqual([]);
});
