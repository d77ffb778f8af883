import { expect, test } from "vitest";
import { live, testEngine } from "../../test/fixtures/engine.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { explain } from "./explain.ts";
import { LoopWatch, type Watched } from "./loop-watch.ts";
import { BEAT_MS, WatchMemory } from "./loop-watch-memory.ts";

/** A watch with the test in place of its thread. */
function watched() {
  const clock = manualClock();
  const reports: { readonly works: readonly string[]; readonly ms: number }[] = [];
  const threads: { readonly memory: WatchMemory; ended: boolean }[] = [];
  const watch = new LoopWatch({
    clock,
    start: (shared) => {
      const thread = { memory: new WatchMemory(shared), ended: false };
      threads.push(thread);
      return {
        terminate: () => {
          thread.ended = true;
        },
      };
    },
    blocked: (works, ms) => reports.push({ works: works.map(({ name }) => name), ms }),
  });
  return { clock, watch, reports, threads };
}

const work = (name: string): Watched => ({ sessionId: "ses_1", runId: "run_1", name, liveAt: -1, namedAt: 0 });

test("the thread is started with the first work, and ended with the engine", () => {
  const { watch, threads, clock } = watched();
  expect(threads).toEqual([]);
  watch.began(work("turn"));
  watch.began(work("tool"));
  expect(threads).toHaveLength(1);
  watch.close();
  expect(threads[0]?.ended).toBe(true);
  expect(clock.pending).toEqual([]);
});

test("beats come while work is live, keep no program alive, and stop with it", () => {
  const { watch, threads, clock } = watched();
  const turn = work("turn");
  watch.began(turn);
  const memory = threads[0]?.memory;
  const before = memory?.beats ?? 0;
  expect(clock.pending).toEqual([{ inMs: BEAT_MS, idle: true }]);
  clock.tick(3 * BEAT_MS);
  expect(memory?.beats).toBe(before + 3);
  watch.ended(turn);
  clock.tick(BEAT_MS);
  expect(clock.pending).toEqual([]);
  watch.began(turn);
  expect(clock.pending).toEqual([{ inMs: BEAT_MS, idle: true }]);
});

test("the work that was entered last is named; if none was since the last beat, all live work is", () => {
  const { watch, threads, clock } = watched();
  watch.began(work("turn"));
  const tool = work("tool");
  watch.began(tool);
  expect(threads[0]?.memory.names).toBe("tool of run_1 in ses_1");
  clock.tick(BEAT_MS);
  expect(threads[0]?.memory.names).toBe("turn of run_1 in ses_1, tool of run_1 in ses_1");
  watch.entered(tool);
  expect(threads[0]?.memory.names).toBe("tool of run_1 in ses_1");
});

test("a block that the thread has found is reported once, with the names of that time", () => {
  const { watch, threads, clock, reports } = watched();
  const [turn, tool] = [work("turn"), work("tool")];
  watch.began(turn);
  watch.began(tool);
  const memory = threads[0]?.memory;
  if (memory !== undefined) memory.blocked = true;
  clock.wakeAfter(2_000);
  expect(reports).toEqual([{ works: ["tool"], ms: 2_000 }]);
  clock.tick(BEAT_MS);
  expect(reports).toHaveLength(1);
  if (memory !== undefined) memory.blocked = true;
  // Other code may be entered before the timer of the beat fires.
  watch.entered(turn);
  expect(reports.at(-1)?.works).toEqual(["turn", "tool"]);
});

test("without threads nothing is watched, and nothing fails", () => {
  const clock = manualClock();
  const watch = new LoopWatch({ clock, start: () => undefined, blocked: () => {} });
  const turn = work("turn");
  watch.began(turn);
  watch.entered(turn);
  watch.ended(turn);
  watch.close();
  expect(clock.pending).toEqual([]);
});

test("a blocked event loop is in a notice, and in the explanation of its session", async () => {
  let memory: WatchMemory | undefined;
  const house = testEngine({
    watch: (shared) => {
      memory = new WatchMemory(shared);
      return { terminate: () => {} };
    },
  });
  const { sessionId, runId } = await live(house);
  if (memory !== undefined) memory.blocked = true;
  house.clock.wakeAfter(1_300);
  expect(house.notices).toEqual([{ type: "blocked", works: [{ sessionId, runId, work: "turn" }], ms: 1_300 }]);
  const lane = house.engine.lanes.get(sessionId);
  const beside = { worker: house.engine.worker, processes: [], times: new Map(), mode: undefined, hasSlot: true };
  expect(explain(lane, beside).live?.blocked).toEqual({ work: "turn", ms: 1_300, at: house.clock.now() });
});
