// Who is next, across sessions.
import { expect, test } from "vitest";
import { accept, readyLane } from "../../test/fixtures/commit.ts";
import type { Lane } from "../core/lane.ts";
import { RETRY_FIRST_MS } from "../core/limits.ts";
import { Gate } from "../testing/gate.ts";
import { given } from "../testing/given.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import type { Commit } from "./commit.ts";
import { Dispatch } from "./dispatch.ts";
import type { LiveLane } from "./live-lane.ts";

const IDLE: Lane = given().lane;
const WAITS: Lane = given(accept("run_1"), accept("run_2")).lane;
const LIVE: Lane = given(accept("run_1"), accept("run_2"), { type: "start" }).lane;

function lane(decided: Lane): LiveLane {
  return Object.assign(readyLane(), { decided, epoch: 1 });
}

/** Starts are decided as the test says: at once, unless it says otherwise. */
function house(slotsMax: number, decide: (one: LiveLane) => Promise<void> | void = (one) => become(one, LIVE)) {
  const clock = manualClock();
  const started: LiveLane[] = [];
  const submit = async (one: LiveLane): Promise<void> => {
    started.push(one);
    await decide(one);
  };
  const commit = () => ({ submit }) as unknown as Commit;
  return { clock, started, dispatch: new Dispatch({ slotsMax, clock, commit }) };
}

const become = (one: LiveLane, decided: Lane): void => void Object.assign(one, { decided });

test("G10: lanes take turns for the slots there are; whose run has ended goes behind those that wait", async () => {
  const { dispatch, started } = house(1);
  const [first, second, third] = [lane(WAITS), lane(WAITS), lane(WAITS)];
  for (const one of [first, second, third]) dispatch.note(one);
  await settled();
  expect(started).toEqual([first]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 2, max: 1 });
  for (const ends of [first, second, third]) {
    become(ends, WAITS);
    dispatch.note(ends);
    await settled();
  }
  expect(started).toEqual([first, second, third, first]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 2, max: 1 });
});

test("a lane that is being started holds a slot, and is not started twice", async () => {
  const late = new Gate();
  const { dispatch, started } = house(2, (one) => late.opened.then(() => become(one, LIVE)));
  const one = lane(WAITS);
  dispatch.note(one);
  dispatch.note(one);
  expect(started).toEqual([one]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 0, max: 2 });
  late.open();
  await settled();
  dispatch.note(one);
  expect(started).toEqual([one]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 0, max: 2 });
});

test("a lane that comes with a live run holds a slot; one that another worker drives does not", () => {
  const { dispatch, started } = house(1);
  const elsewhere = Object.assign(lane(LIVE), { epoch: undefined });
  dispatch.note(elsewhere);
  expect(dispatch.load.live).toBe(0);
  dispatch.note(lane(LIVE));
  dispatch.note(lane(WAITS));
  expect(dispatch.load).toEqual({ live: 1, waiting: 1, max: 1 });
  expect(started).toEqual([]);
});

test.each<readonly [string, Partial<LiveLane>]>([
  ["has nothing in its queue", { decided: IDLE }],
  ["has a live run", { decided: LIVE }],
  ["another worker drives", { epoch: undefined }],
  ["was let go of", { phase: "gone" }],
])("a lane is not started that %s", (_, state) => {
  const { dispatch, started } = house(9);
  dispatch.note(Object.assign(lane(WAITS), state));
  expect(started).toEqual([]);
});

test("a lane that has nothing to do any more, or is not ours, does not wait any longer", async () => {
  const { dispatch, started } = house(1);
  const [live, emptied, lost] = [lane(WAITS), lane(WAITS), lane(WAITS)];
  for (const one of [live, emptied, lost]) dispatch.note(one);
  await settled();
  become(emptied, IDLE);
  dispatch.note(emptied);
  dispatch.forget(lost);
  expect(dispatch.load.waiting).toBe(0);
  become(live, IDLE);
  dispatch.note(live);
  expect(started).toEqual([live]);
  expect(dispatch.load.live).toBe(0);
});

test("the slot of a lane that is lost goes to whoever waits", async () => {
  const { dispatch, started } = house(1);
  const [lost, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(lost);
  dispatch.note(waits);
  await settled();
  dispatch.forget(lost);
  expect(started).toEqual([lost, waits]);
});

test("a start that came to nothing gives its slot to the next", async () => {
  const { clock, dispatch, started } = house(1, (one) => become(one, started.length === 1 ? IDLE : LIVE));
  const [withdrawn, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(withdrawn);
  dispatch.note(waits);
  await settled();
  expect(started).toEqual([withdrawn, waits]);
  expect(dispatch.load).toEqual({ live: 1, waiting: 0, max: 1 });
  expect(clock.pending).toEqual([]);
});

test("G28: a start that could not be recorded lets others go first, and is tried again a little later", async () => {
  const { dispatch, started, clock } = house(1, (one) =>
    started.length === 1 ? Promise.reject(new Error("full")) : become(one, LIVE),
  );
  const [refused, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(refused);
  dispatch.note(waits);
  await settled();
  expect(started).toEqual([refused, waits]);
  become(waits, IDLE);
  dispatch.note(waits);
  expect(started).toEqual([refused, waits]);
  await clock.advance(RETRY_FIRST_MS);
  expect(started).toEqual([refused, waits, refused]);
});

test("G28: a start that was recorded although nobody said so keeps its slot", async () => {
  const { dispatch, started, clock } = house(1, (one) => {
    become(one, LIVE);
    return Promise.reject(new Error("lost"));
  });
  dispatch.note(lane(WAITS));
  dispatch.note(lane(WAITS));
  await settled();
  expect(started).toHaveLength(1);
  expect(dispatch.load).toEqual({ live: 1, waiting: 1, max: 1 });
  expect(clock.pending).toEqual([]);
});

test("nothing is started any more once it is stopped", async () => {
  const { dispatch, started } = house(1);
  const [live, waits] = [lane(WAITS), lane(WAITS)];
  dispatch.note(live);
  dispatch.note(waits);
  await settled();
  dispatch.stop();
  expect(dispatch.load.waiting).toBe(0);
  become(live, IDLE);
  dispatch.note(live);
  dispatch.note(waits);
  expect(started).toEqual([live]);
});
