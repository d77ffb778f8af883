// Which session starts its next run.
import { expect, test } from "vitest";
import { accept, readyLane } from "../../../test/fixtures/commit.ts";
import { asked, neighbour, testEngine } from "../../../test/fixtures/engine.ts";
import { LEASE_TTL_MS } from "../../core/limits.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { Lane } from "../../core/model/lane.ts";
import { given } from "../../testing/given.ts";
import { settled } from "../../testing/manual-clock.ts";
import type { Commit } from "../log/commit.ts";
import type { SessionState } from "../log/session-state.ts";
import { Dispatcher } from "./dispatcher.ts";

const IDLE: Lane = given().lane;
const WAITS: Lane = given(accept("run_1"), accept("run_2")).lane;
const LIVE: Lane = given(accept("run_1"), accept("run_2"), { type: "start" }).lane;

function lane(decided: Lane): SessionState {
  return Object.assign(readyLane(), { decided, epoch: 1 });
}

type Start = (one: SessionState) => void | Promise<void>;

/** A dispatcher over a fake `Commit`: `start` is the decision of a start, made in the tick in which it is submitted. */
function dispatching(slotsMax: number, start: Start = (one) => become(one, LIVE)) {
  const started: SessionState[] = [];
  const begun: SessionState[] = [];
  const refusing = new Set<SessionState>();
  const submit = async (one: SessionState): Promise<void> => {
    started.push(one);
    const recorded = start(one);
    // As after every decision.
    dispatch.note(one);
    await recorded;
  };
  const takesCommands = (one: SessionState): boolean => !refusing.has(one);
  const dispatch = new Dispatcher({
    slotsMax,
    commit: { submit, takesCommands } as unknown as Commit,
    begin: (one) => void begun.push(one),
  });
  return { started, begun, refusing, dispatch };
}

const become = (one: SessionState, decided: Lane): void => void Object.assign(one, { decided });

test("G10: sessions take turns for the slots; one whose run has ended goes behind the waiting ones", () => {
  const { dispatch, started } = dispatching(1);
  const [first, second, third] = [lane(WAITS), lane(WAITS), lane(WAITS)];
  for (const one of [first, second, third]) dispatch.note(one);
  expect(started).toEqual([first]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 2, max: 1 });
  for (const ends of [first, second, third]) {
    become(ends, WAITS);
    dispatch.note(ends);
  }
  expect(started).toEqual([first, second, third, first]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 2, max: 1 });
});

test("all free slots are filled in one tick, and never more than there are", () => {
  const { dispatch, started } = dispatching(2);
  const sessions = [lane(WAITS), lane(WAITS), lane(WAITS)];
  for (const one of sessions) dispatch.note(one);
  expect(started).toEqual(sessions.slice(0, 2));
  expect(dispatch.load).toEqual({ live: 2, waiting: 1, max: 2 });
});

test("a session that is noted twice is started once, and uses one slot", () => {
  const { dispatch, started } = dispatching(2);
  const one = lane(WAITS);
  dispatch.note(one);
  dispatch.note(one);
  expect(started).toEqual([one]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 0, max: 2 });
});

test("a session that is loaded with a live run uses a slot; one that another worker drives does not", () => {
  const { dispatch, started } = dispatching(1);
  const elsewhere = Object.assign(lane(LIVE), { epoch: undefined });
  dispatch.note(elsewhere);
  expect(dispatch.load.live).toBe(0);
  dispatch.note(lane(LIVE));
  dispatch.note(lane(WAITS));
  expect(dispatch.load).toEqual({ live: 1, waiting: 1, max: 1 });
  expect(started).toEqual([]);
});

test.each<readonly [string, Partial<SessionState>]>([
  ["has an empty queue", { decided: IDLE }],
  ["has a live run", { decided: LIVE }],
  ["another worker drives", { epoch: undefined }],
  ["is being loaded", { phase: "loading" }],
  ["was let go", { phase: "gone" }],
])("a session is not started that %s", (_, state) => {
  const { dispatch, started } = dispatching(9);
  dispatch.note(Object.assign(lane(WAITS), state));
  expect(started).toEqual([]);
});

test("a session that has an empty queue by now, or was lost, no longer waits for a slot", () => {
  const { dispatch, started } = dispatching(1);
  const [live, emptied, lost] = [lane(WAITS), lane(WAITS), lane(WAITS)];
  for (const one of [live, emptied, lost]) dispatch.note(one);
  become(emptied, IDLE);
  dispatch.note(emptied);
  dispatch.forget(lost);
  expect(dispatch.load.waiting).toBe(0);
  become(live, IDLE);
  dispatch.note(live);
  expect(started).toEqual([live]);
  expect(dispatch.load.live).toBe(0);
});

test("the slot of a session that is lost goes to the next waiting one", () => {
  const { dispatch, started } = dispatching(1);
  const [lost, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(lost);
  dispatch.note(waits);
  dispatch.forget(lost);
  expect(started).toEqual([lost, waits]);
});

test("a start that begins nothing releases its slot for the next session", () => {
  const { dispatch, started } = dispatching(1, (one) => become(one, started.length === 1 ? IDLE : LIVE));
  const [withdrawn, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(withdrawn);
  dispatch.note(waits);
  expect(started).toEqual([withdrawn, waits]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 0, max: 1 });
});

test("G28: a session whose start was refused yields to others until its health allows it", async () => {
  const { dispatch, started, refusing } = dispatching(1, (one) => {
    become(one, LIVE);
    return started.length === 1 ? Promise.reject(new Error("full")) : undefined;
  });
  const [refused, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(refused);
  dispatch.note(waits);
  // The batch was refused: the session is as before, and takes no commands for a while.
  refusing.add(refused);
  become(refused, WAITS);
  dispatch.note(refused);
  await settled();
  expect(started).toEqual([refused, waits]);
  become(waits, IDLE);
  dispatch.note(waits);
  dispatch.note(refused);
  expect(started).toEqual([refused, waits]);
  expect(dispatch.load).toEqual({ live: 0, waiting: 0, max: 1 });
  refusing.delete(refused);
  dispatch.note(refused);
  expect(started).toEqual([refused, waits, refused]);
});

test("G28: a start whose answer was lost keeps its slot while the state has it live", async () => {
  const { dispatch, started } = dispatching(1, (one) => {
    become(one, LIVE);
    return Promise.reject(new Error("lost"));
  });
  dispatch.note(lane(WAITS));
  dispatch.note(lane(WAITS));
  await settled();
  expect(started).toHaveLength(1);
  expect(dispatch.load).toEqual({ live: 1, waiting: 1, max: 1 });
});

test("nothing is started after stop()", () => {
  const { dispatch, started } = dispatching(1);
  const [live, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(live);
  dispatch.note(waits);
  dispatch.stop();
  expect(dispatch.load.waiting).toBe(0);
  become(live, IDLE);
  dispatch.note(live);
  dispatch.note(waits);
  expect(started).toEqual([live]);
});

test("G33: recovered runs wait for a slot too, and come before sessions that arrive later", () => {
  const { dispatch, started, begun } = dispatching(1);
  const [first, second, third] = [lane(LIVE), lane(LIVE), lane(WAITS)];
  for (const one of [first, second, third]) dispatch.note(one);
  expect(begun).toEqual([first]);
  expect([first, second].map((one) => dispatch.hasSlot(one))).toEqual([true, false]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 2, max: 1 });
  become(first, IDLE);
  dispatch.note(first);
  expect(begun).toEqual([first, second]);
  become(second, IDLE);
  dispatch.note(second);
  expect(started).toEqual([third]);
});

test("G33: with fewer slots than the earlier worker had, no more runs than slots are live at once", async () => {
  const before = testEngine({ liveRunsMax: 3, agent: () => new Promise(() => {}) });
  const runs: string[] = [];
  for (const session of ["ses_1", "ses_2", "ses_3"] as const) {
    const { runId, accepted } = before.engine.begin(session, {}, asked("live"));
    await accepted;
    runs.push(runId);
  }
  await before.clock.advance(LEASE_TTL_MS);
  const after = neighbour(before, { liveRunsMax: 1 });
  await after.engine.start();
  await settled();
  for (const [index, runId] of runs.entries()) {
    const turn = await after.agent.nextTurn();
    expect(turn.given.runId).toBe(runId);
    expect(after.agent.turns).toHaveLength(index + 1);
    // A stop reaches a run that waits for its slot.
    if (index === 1) {
      await after.engine.cancel.run(runs[2] as RunId, { kind: "user" });
      expect(await after.engine.outcome(runs[2] as RunId)).toMatchObject({ kind: "cancelled" });
      expect(after.agent.turns).toHaveLength(2);
      return;
    }
    turn.complete();
    await settled();
  }
});
