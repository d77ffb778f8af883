// One process, from the moment it is asked for: how it is stopped before it exists, and who is told of its end.
import { expect, test } from "vitest";
import type { CallId } from "../core/ids.ts";
import type { ProcessEnd } from "../core/process.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import type { ScriptedChild } from "../testing/scripted-child.ts";
import { scriptedSpawner } from "../testing/scripted-spawner.ts";
import { LiveProcess } from "./live-process.ts";

interface Scene {
  readonly live: LiveProcess;
  readonly child: ScriptedChild;
  readonly ends: [ProcessEnd, CallId | undefined][];
}

async function scene(): Promise<Scene> {
  const clock = manualClock();
  const ends: Scene["ends"] = [];
  const live = new LiveProcess("proc_1.1", "ses_1", {
    clock,
    settle: async (end, waiter) => {
      ends.push([end, waiter]);
      return { processId: end.processId, outcome: { kind: "completed" } };
    },
    note: () => {},
  });
  const request = { id: live.id, sessionId: "ses_1", command: "work", graceMs: 1_500 } as const;
  return { live, ends, child: await scriptedSpawner({ clock }).spawn(request) };
}

test.each([
  { asked: ["politely"], graceMs: 1_500 },
  { asked: ["politely", "at once"], graceMs: 0 },
  { asked: ["at once", "politely"], graceMs: 0 },
] as const)("asked to stop $asked and started all the same, it is stopped with a grace of $graceMs", async (given) => {
  const { live, child } = await scene();
  for (const how of given.asked) live.stop(how);
  expect(live.starting.aborted).toBe(true);
  live.began(child);
  expect(child.stops).toEqual([given.graceMs]);
});

test("of several that wait, the first that still does is named with its end", async () => {
  const { live, child, ends } = await scene();
  live.began(child);
  const [one, other] = [live.awaitedBy("call_1.1"), live.awaitedBy("call_1.2")];
  const again = live.awaitedBy("call_1.1");
  one();
  one();
  again();
  child.exit();
  await settled();
  expect(ends).toMatchObject([[{ processId: "proc_1.1", exit: { code: 0 } }, "call_1.2"]]);
  other();
});
