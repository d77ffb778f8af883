import { expect, test } from "vitest";
import type { SessionId } from "../core/ids.ts";
import type { Store } from "../ports.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { Attendance } from "./attendance.ts";
import type { Lanes } from "./lanes.ts";
import { LiveLane } from "./live-lane.ts";

/** A worker whose only lane is told, by the answer to a renewal, that its lease is gone. */
async function toldThatItIsGone(taken: "before it was asked" | "since"): Promise<readonly LiveLane[]> {
  const clock = manualClock();
  const answered = new Gate();
  const lane = new LiveLane("ses_1");
  const fenced: LiveLane[] = [];
  const store = {
    unattended: () => Promise.resolve([]),
    renew: async (): Promise<readonly SessionId[]> => {
      await answered.opened;
      return ["ses_1"];
    },
  } as Partial<Store> as Store;
  const lanes = { all: () => [lane], peek: () => lane } as Partial<Lanes> as Lanes;
  const attendance = new Attendance({
    ...{ store, clock, worker: "wrk_1", lanes, open: () => true },
    fence: (one) => void fenced.push(one),
  });
  await attendance.start();
  if (taken === "before it was asked") lane.epoch = 1;
  await clock.advance(3_000);
  lane.epoch = 1;
  answered.open();
  await settled();
  attendance.stop();
  return fenced;
}

test("G24: an old answer about a lost lease does not let go of a session that was taken up since", async () => {
  expect(await toldThatItIsGone("since")).toEqual([]);
});

test("G26: a session whose lease is gone is let go of", async () => {
  expect(await toldThatItIsGone("before it was asked")).toHaveLength(1);
});
