// A store that does not answer: the timeout of each of its calls.
import { describe, expect, test } from "vitest";
import { watch } from "../../../test/fixtures/commit.ts";
import { ControlError } from "../../core/errors.ts";
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Batch, Claim, Store } from "../../ports/store.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { faultyStore, type StoreVerb } from "../../testing/faulty-store.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { BoundedStore, StoreLimit } from "./bounded-store.ts";

function bounded() {
  const clock = manualClock();
  const faulty = faultyStore(Object.assign(new MemoryStore({ clock }), { inPlace: async () => undefined }));
  return { clock, faulty, store: new BoundedStore(faulty, clock, () => {}) };
}

const signal = new AbortController().signal;
const BATCH: Batch = {
  session: "ses_1",
  expected: 0,
  events: [{ type: "session.created", sessionId: "ses_1" }],
  at: 0,
};

/** Every call of a store but `grown()`, and whether it has a timeout here. */
const CALLS: Readonly<Record<Exclude<StoreVerb, "grown">, readonly [(store: Store) => unknown, boolean]>> = {
  load: [(store) => store.load("ses_1"), true],
  read: [(store) => store.read("ses_1", { after: 0, limit: 1 }), true],
  run: [(store) => store.run("run_1"), true],
  call: [(store) => store.call("call_1.1"), true],
  process: [(store) => store.process("proc_1.1"), true],
  processes: [(store) => store.processes("ses_1", { before: 9, limit: 1 }), true],
  runs: [(store) => store.runs("ses_1", { before: 9, limit: 1 }), true],
  session: [(store) => store.session("ses_1"), true],
  sessions: [(store) => store.sessions({ limit: 1 } as Parameters<Store["sessions"]>[0]), true],
  ids: [(store) => store.ids({ prefix: "ses_", limit: 1 }), true],
  unattended: [(store) => store.unattended(1), true],
  claim: [(store) => store.claim("ses_1", "wrk_1", 1_000), true],
  renew: [(store) => store.renew("wrk_1", 1_000), true],
  release: [(store) => store.release("ses_1", "wrk_1"), true],
  trim: [(store) => store.trim("ses_1", 1), true],
  inPlace: [(store) => store.inPlace?.(), true],
  remove: [(store) => store.upkeep?.remove("ses_1"), true],
  survey: [(store) => store.upkeep?.survey({ after: 0, limit: 1 }), true],
  within: [(store) => store.upkeep?.within("ses_1", { at: 1 }), true],
  usage: [(store) => store.upkeep?.usage(), true],
  reclaim: [(store) => store.upkeep?.reclaim(), true],
  // Bounded by `Commit`, which must know if a late append is written after all.
  append: [(store) => store.append(BATCH), false],
  // Bounded by their callers.
  ready: [(store) => store.ready?.(), false],
  close: [(store) => store.close(), false],
};
const names = Object.keys(CALLS) as readonly (keyof typeof CALLS)[];

describe.each(names)("%s()", (name) => {
  const [call, isBounded] = CALLS[name];

  test(`is ${isBounded ? "rejected as `unavailable` after 5 s" : "not bounded here"}`, async () => {
    const { clock, faulty, store } = bounded();
    faulty.trouble = { kind: "silent", applied: false };
    const answer = watch(Promise.resolve(call(store)));
    await settled();
    expect(clock.pending).toEqual(isBounded ? [{ inMs: STORE_WAIT_MS, idle: true }] : []);
    await clock.advance(STORE_WAIT_MS - 1);
    expect(answer.is).toBe("waiting");
    await clock.advance(1);
    expect(answer.is).toBe(isBounded ? "refused" : "waiting");
    const message = "The store has not answered within 5 seconds.";
    if (isBounded) expect(answer.value).toMatchObject({ code: "unavailable", message });
    expect(clock.pending).toEqual([]);
  });

  test("passes the store's own error on, and leaves no timer", async () => {
    const { clock, faulty, store } = bounded();
    faulty.always(name, { kind: "fail", code: "store_corrupt" });
    const answer = watch(Promise.resolve(call(store)));
    await settled();
    expect(answer).toMatchObject({ is: "refused", value: { code: "store_corrupt" } });
    expect(clock.pending).toEqual([]);
  });
});

describe("grown()", () => {
  test("resolves after 5 s without an answer, so that a follower reads the log", async () => {
    const { clock, faulty, store } = bounded();
    faulty.trouble = { kind: "silent", applied: false };
    const grown = watch(store.grown("ses_1", 0, signal));
    await clock.advance(STORE_WAIT_MS - 1);
    expect(grown.is).toBe("waiting");
    expect(clock.pending).toEqual([{ inMs: 1, idle: true }]);
    await clock.advance(1);
    expect(grown.is).toBe("answered");
  });

  test("resolves when the log grows, rejects with the store's error, and leaves no timer", async () => {
    const { clock, faulty, store } = bounded();
    const grown = watch(store.grown("ses_1", 0, signal));
    await store.append(BATCH);
    await settled();
    expect(grown.is).toBe("answered");
    faulty.always("grown", { kind: "fail", code: "store_corrupt" });
    const failed = watch(store.grown("ses_1", 1, signal));
    await settled();
    expect(failed).toMatchObject({ is: "refused", value: { code: "store_corrupt" } });
    expect(clock.pending).toEqual([]);
  });
});

test("an answer is that of the store, and leaves no timer", async () => {
  const { clock, faulty, store } = bounded();
  expect(await store.append(BATCH)).toEqual({ kind: "appended", head: 1 });
  expect(await store.claim("ses_1", "wrk_1", 1_000)).toMatchObject({ kind: "claimed" });
  expect((await store.load("ses_1"))?.head).toBe(1);
  const page = await store.read("ses_1", { after: 0, limit: 9 });
  expect(page).toEqual(await faulty.read("ses_1", { after: 0, limit: 9 }));
  expect(await store.run("run_none")).toBeUndefined();
  await settled();
  expect(clock.pending).toEqual([]);
});

test("a late answer, or a late error, changes nothing and is handled", async () => {
  const clock = manualClock();
  const late = Promise.withResolvers<undefined>();
  const store = new BoundedStore({ load: () => late.promise } as Partial<Store> as Store, clock, () => {});
  const answer = watch(store.load("ses_1"));
  await clock.advance(STORE_WAIT_MS);
  expect(answer.is).toBe("refused");
  late.reject(new ControlError("store_corrupt", "Too late."));
  await settled();
  expect(answer).toMatchObject({ is: "refused", value: { code: "unavailable" } });
});

test.each<readonly [Claim["kind"], at: number, late: readonly SessionId[]]>([
  ["claimed", STORE_WAIT_MS, ["ses_1"]],
  ["claimed", STORE_WAIT_MS - 1, []],
  ["held", STORE_WAIT_MS, []],
])("a claim answered with %s after %d ms reports %j as claimed late", async (kind, at, expected) => {
  const clock = manualClock();
  const answer = Promise.withResolvers<Claim>();
  const late: SessionId[] = [];
  const log = { claim: () => answer.promise } as Partial<Store> as Store;
  const claim = watch(new BoundedStore(log, clock, (session) => void late.push(session)).claim("ses_1", "wrk_1", 9));
  await clock.advance(at);
  answer.resolve({ kind } as Claim);
  await settled();
  expect(claim.is).toBe(at < STORE_WAIT_MS ? "answered" : "refused");
  expect(late).toEqual(expected);
});

test.each(["one", "many", undefined] as const)("a store for %s workers keeps that property", (workers) => {
  const store = new BoundedStore({ workers } as Partial<Store> as Store, manualClock(), () => {});
  expect(store.workers).toBe(workers ?? "many");
});

describe("a timeout whose timer fires late", () => {
  test("gives the answer a little longer: the event loop was blocked", async () => {
    const clock = manualClock();
    let reached = 0;
    new StoreLimit(clock, clock.elapsed(), () => (reached += 1));
    // A computer that sleeps, or a blocked event loop.
    clock.wakeAfter(60_000);
    expect(reached).toBe(0);
    await clock.advance(1_000);
    expect(reached).toBe(1);
    expect(clock.pending).toEqual([]);
  });

  test("does not fire if the answer comes in that time", async () => {
    const clock = manualClock();
    let reached = 0;
    const limit = new StoreLimit(clock, clock.elapsed(), () => (reached += 1));
    clock.wakeAfter(60_000);
    limit.cancel();
    await clock.advance(60_000);
    expect(reached).toBe(0);
  });
});
