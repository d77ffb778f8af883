import { describe, expect, test } from "vitest";
import { LEASE_RENEW_MS, RETRY_LAST_MS } from "../../core/limits.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Store } from "../../ports/store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { SessionRegistry } from "./session-registry.ts";
import { type Pending, SessionState } from "./session-state.ts";

/** A worker with these lanes, over a store that the test answers for; records what happens to the lanes. */
function worker(lanes: readonly SessionState[], { workers, unattended = [] }: Given = {}) {
  const clock = manualClock();
  const renewed = { until: new Gate(), open: true, attended: 0 };
  renewed.until.open();
  const [fenced, forgotten, taken]: readonly string[][] = [[], [], []];
  const store = {
    workers,
    unattended: () => {
      renewed.attended += 1;
      return typeof unattended === "function" ? unattended() : Promise.resolve(unattended);
    },
    renew: async () => {
      await renewed.until.opened;
      return [];
    },
  } as Partial<Store> as Store;
  const known = {
    all: () => lanes,
    peek: (id: SessionId) => lanes.find((lane) => lane.id === id),
    get: (id: SessionId) => taken?.push(id),
    forget: ({ id }: SessionState) => forgotten?.push(id),
  } as Partial<Record<keyof SessionRegistry, unknown>> as SessionRegistry;
  const fence = (lane: SessionState): void => {
    lane.epoch = undefined;
    fenced?.push(lane.id);
  };
  const open = (): boolean => renewed.open;
  const attendance = new LeaseKeeper({ ...{ store, clock, worker: "wrk_1", lanes: known, open, fence } });
  return { attendance, clock, renewed, fenced, forgotten, taken };
}

interface Given {
  readonly workers?: "one";
  readonly unattended?: readonly SessionId[] | (() => Promise<readonly SessionId[]>);
}

function lane(id: SessionId, epoch?: number): SessionState {
  return Object.assign(new SessionState(id), { phase: "ready", epoch });
}

/** A worker whose only lane is reported as lost by the answer to a renewal. */
async function toldThatItIsGone(taken: "before it was asked" | "since"): Promise<readonly SessionState[]> {
  const clock = manualClock();
  const answered = new Gate();
  const lane = new SessionState("ses_1");
  const fenced: SessionState[] = [];
  const store = {
    unattended: () => Promise.resolve([]),
    renew: async (): Promise<readonly SessionId[]> => {
      await answered.opened;
      return ["ses_1"];
    },
  } as Partial<Store> as Store;
  const lanes = { all: () => [lane], peek: () => lane } as Partial<SessionRegistry> as SessionRegistry;
  const attendance = new LeaseKeeper({
    ...{ store, clock, worker: "wrk_1", lanes, open: () => true },
    fence: (one) => void fenced.push(one),
  });
  await attendance.start();
  if (taken === "before it was asked") lane.epoch = 1;
  await clock.advance(LEASE_RENEW_MS);
  lane.epoch = 1;
  answered.open();
  await settled();
  attendance.stop();
  return fenced;
}

test("G24: an old answer about a lost lease does not stop a session that was claimed since", async () => {
  expect(await toldThatItIsGone("since")).toEqual([]);
});

test("G26: a session whose lease is lost is released", async () => {
  expect(await toldThatItIsGone("before it was asked")).toHaveLength(1);
});

test("the only worker of a store renews nothing", async () => {
  const { attendance, clock } = worker([lane("ses_1", 1)], { workers: "one" });
  await attendance.start();
  expect(clock.pending).toEqual([]);
});

test("G26: a session not renewed for two thirds of the term is released, and claimed again once", async () => {
  const [ours, theirs] = [lane("ses_ours", 1), lane("ses_theirs")];
  const { attendance, clock, renewed, fenced, taken } = worker([ours, theirs]);
  // A clock that has run for long has no effect on the lease.
  await clock.advance(60_000);
  await attendance.start();
  renewed.until = new Gate();
  await clock.advance(6_665);
  expect(fenced).toEqual([]);
  await clock.advance(1);
  expect(fenced).toEqual(["ses_ours"]);
  // A lease that was claimed since has its own term.
  ours.epoch = 2;
  await clock.advance(6_665);
  expect(fenced).toEqual(["ses_ours"]);
  await clock.advance(1);
  expect(fenced).toEqual(["ses_ours", "ses_ours"]);
  renewed.until.open();
  await settled();
  expect(taken).toEqual(["ses_ours"]);
  await clock.advance(LEASE_RENEW_MS);
  expect(taken).toEqual(["ses_ours"]);
});

test("G26: a session without a driver is loaded again, unless it has commands in flight", async () => {
  const busy = lane("ses_busy");
  busy.pending = [{} as Pending];
  const all = [lane("ses_ours", 1), busy, lane("ses_left")];
  const { attendance, forgotten, taken } = worker(all, {
    unattended: ["ses_ours", "ses_busy", "ses_left", "ses_new"],
  });
  await attendance.start();
  expect(forgotten).toEqual(["ses_left"]);
  expect(taken).toEqual(["ses_ours", "ses_left", "ses_new"]);
});

test("G24: a session whose lease came late is loaded again as soon as it has nothing in flight", async () => {
  const busy = lane("ses_busy");
  busy.pending = [{} as Pending];
  const { attendance, clock, forgotten, taken } = worker([busy]);
  await attendance.start();
  attendance.left("ses_busy");
  await clock.advance(LEASE_RENEW_MS);
  expect([forgotten, taken]).toEqual([[], []]);
  busy.pending = [];
  await clock.advance(2 * LEASE_RENEW_MS);
  expect([forgotten, taken]).toEqual([["ses_busy"], ["ses_busy"]]);
});

test("G24: the only worker of a store takes over the sessions beyond the first page", async () => {
  const first = Array.from({ length: 100_000 }, (_, index): SessionId => `ses_${index}`);
  const answers: (readonly SessionId[] | Error)[] = [first, new Error("not now"), ["ses_last"]];
  const { attendance, clock, taken } = worker([], {
    workers: "one",
    unattended: async () => {
      const answer = answers.shift() ?? [];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  await attendance.start();
  expect(taken).toHaveLength(first.length);
  await clock.advance(LEASE_RENEW_MS);
  expect(taken).toHaveLength(first.length);
  await clock.advance(LEASE_RENEW_MS);
  expect(taken?.slice(first.length)).toEqual(["ses_last"]);
  expect(clock.pending).toEqual([]);
});

test("a worker that closes claims nothing, and renews nothing more", async () => {
  const { attendance, clock, renewed } = worker([]);
  await attendance.start();
  renewed.until = new Gate();
  await clock.advance(LEASE_RENEW_MS);
  renewed.open = false;
  attendance.stop();
  renewed.until.open();
  await settled();
  expect(renewed.attended).toBe(1);
  expect(clock.pending).toEqual([]);
});

describe("a session that failed to load", () => {
  test("is retried by one timer, however often it was reported", async () => {
    const { attendance, clock, taken } = worker([]);
    for (let reported = 0; reported < 100; reported += 1) attendance.retry("ses_1", "ours", false);
    expect(clock.pending).toEqual([{ inMs: RETRY_LAST_MS, idle: true }]);
    await clock.advance(RETRY_LAST_MS);
    expect(taken).toEqual(["ses_1"]);
    expect(clock.pending).toEqual([]);
  });

  test("is retried after pauses of 2 s, doubling to 60 s, and from 2 s again once it was loaded", async () => {
    const { attendance, clock } = worker([]);
    const pauses: number[] = [];
    for (let failures = 0; failures < 7; failures += 1) {
      attendance.retry("ses_1", "ours", false);
      pauses.push(...clock.pending.map(({ inMs }) => inMs));
      await clock.advance(pauses.at(-1) ?? 0);
    }
    expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    attendance.loaded("ses_1");
    attendance.retry("ses_1", "ours", false);
    expect(clock.pending).toEqual([{ inMs: RETRY_LAST_MS, idle: true }]);
  });

  test("is retried every 2 s if its failure may be temporary, and less often again if not", async () => {
    const { attendance, clock } = worker([]);
    const pauses: number[] = [];
    for (const mayPass of [true, true, true, false, false]) {
      attendance.retry("ses_1", "ours", mayPass);
      pauses.push(...clock.pending.map(({ inMs }) => inMs));
      await clock.advance(pauses.at(-1) ?? 0);
    }
    expect(pauses).toEqual([2_000, 2_000, 2_000, 2_000, 4_000]);
  });

  test.each<readonly ["ours" | "free", readonly SessionId[], tries: number]>([
    ["ours", [], 1],
    ["free", ["ses_1"], 1],
    ["free", [], 0],
  ])("with a lease that is %s and unattended sessions %j is loaded %d times", async (lease, unattended, tries) => {
    const { attendance, clock, taken } = worker([], { unattended });
    attendance.retry("ses_1", lease, false);
    await clock.advance(RETRY_LAST_MS);
    expect(taken).toHaveLength(tries);
  });

  test("keeps its lease for every later attempt once this worker may hold it", async () => {
    const { attendance, clock, taken } = worker([]);
    attendance.retry("ses_1", "free", false);
    attendance.retry("ses_1", "ours", false);
    await clock.advance(RETRY_LAST_MS);
    attendance.retry("ses_1", "free", false);
    await clock.advance(2 * RETRY_LAST_MS);
    expect(taken).toEqual(["ses_1", "ses_1"]);
  });

  test("is not loaded again if it was loaded meanwhile, or if this worker drives it", async () => {
    const { attendance, clock, taken } = worker([lane("ses_2", 1)]);
    for (const session of ["ses_1", "ses_2"] as const) attendance.retry(session, "ours", false);
    attendance.loaded("ses_1");
    await clock.advance(10 * RETRY_LAST_MS);
    expect(taken).toEqual([]);
    expect(clock.pending).toEqual([]);
  });

  test("replaces a lane that was loaded without a lease, but only when that has nothing in flight", async () => {
    const one = lane("ses_1");
    one.pending = [{} as Pending];
    const { attendance, clock, taken, forgotten } = worker([one]);
    attendance.retry("ses_1", "ours", false);
    await clock.advance(RETRY_LAST_MS);
    expect([forgotten, taken]).toEqual([[], []]);
    one.pending = [];
    await clock.advance(2 * RETRY_LAST_MS);
    expect([forgotten, taken]).toEqual([["ses_1"], ["ses_1"]]);
  });

  test("has no timer any more when the worker closes", () => {
    const { attendance, clock, renewed } = worker([]);
    attendance.retry("ses_1", "ours", false);
    attendance.stop();
    expect(clock.pending).toEqual([]);
    renewed.open = false;
    attendance.retry("ses_2", "ours", false);
    expect(clock.pending).toEqual([]);
  });
});
