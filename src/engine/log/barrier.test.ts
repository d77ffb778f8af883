// How long a reader waits for a failing store, and what it gets then.
import { expect, test } from "vitest";
import { running } from "../../../test/fixtures/commands.ts";
import { emptyLane } from "../../core/model/lane.ts";
import { Gate } from "../../testing/gate.ts";
import { given } from "../../testing/given.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { BARRIER_MS_MAX, readBarrier } from "./barrier.ts";
import type { Commit } from "./commit.ts";
import { type Pending, SessionState } from "./session-state.ts";

/** Reads a lane in this state; `answer` and `fail` belong to the store. */
function looking(phase: SessionState["phase"], { exists = true, busy = false } = {}) {
  const clock = manualClock();
  const lane = new SessionState("ses_1");
  lane.phase = phase;
  lane.durable = exists ? given(...running("run_a")).lane : emptyLane("ses_1");
  if (busy) lane.pending.push({} as Pending);
  const answered = new Gate();
  let fail = (_: unknown): void => {};
  const failing = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const barrier = () => Promise.race([answered.opened, failing]);
  let seen: unknown = "not yet";
  readBarrier(lane, { clock, commit: { barrier } as Partial<Commit> as Commit }).then(
    () => {
      seen = "seen";
    },
    (error: unknown) => {
      seen = error;
    },
  );
  return { clock, lane, answer: () => answered.open(), fail, seen: () => seen };
}

test("G28: the durable state of a session is available after a second, however long the store takes", async () => {
  const { clock, seen } = looking("ready", { busy: true });
  expect(clock.pending).toEqual([{ inMs: BARRIER_MS_MAX, idle: true }]);
  await clock.advance(BARRIER_MS_MAX - 1);
  expect(seen()).toBe("not yet");
  await clock.advance(1);
  expect(seen()).toBe("seen");
});

test("a reader gets earlier requests once they are durable, and leaves no timer", async () => {
  const { clock, answer, seen } = looking("ready", { busy: true });
  await settled();
  expect(seen()).toBe("not yet");
  answer();
  await settled();
  expect(seen()).toBe("seen");
  expect(clock.pending).toEqual([]);
});

test("a session without commands in flight is read without a timer", async () => {
  const { clock, answer, seen } = looking("ready");
  expect(clock.pending).toEqual([]);
  answer();
  await settled();
  expect(seen()).toBe("seen");
});

test.each<readonly [what: string, phase: SessionState["phase"], exists: boolean]>([
  ["that is being loaded", "loading", false],
  ["that is being created", "ready", false],
])("a session %s is awaited, and not reported as absent", async (_, phase, exists) => {
  const { clock, answer, seen } = looking(phase, { exists, busy: true });
  await clock.advance(10 * BARRIER_MS_MAX);
  expect(seen()).toBe("not yet");
  answer();
  await settled();
  expect(seen()).toBe("seen");
});

test.each<readonly [what: string, phase: SessionState["phase"], exists: boolean, then: "seen" | "refused"]>([
  ["in memory is seen as it is", "ready", true, "seen"],
  ["that could not be loaded is not", "loading", false, "refused"],
  ["that could not be created is not", "ready", false, "refused"],
  ["that was let go of is not", "gone", true, "refused"],
])("G28: while the store fails, a session %s", async (_, phase, exists, then) => {
  const trouble = new Error("The store is in trouble.");
  for (const busy of [true, false]) {
    const { fail, seen } = looking(phase, { exists, busy });
    fail(trouble);
    await settled();
    expect(seen()).toBe(then === "seen" ? "seen" : trouble);
  }
});
