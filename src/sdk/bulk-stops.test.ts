// cancelAll() with a key: carried out once, even across a restart.
import { expect, test } from "vitest";
import { ANSWERS_KEPT, ANSWERS_PER_ACTOR_MAX, MEMOS_PER_ACTOR_MAX } from "../core/limits.ts";
import { keep } from "../core/model/memo.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { openBelay } from "./belay.ts";

const clock = new ManualClock(0);

/** A store that outlives its Belay. */
function lasting(): MemoryStore {
  return Object.assign(new MemoryStore({ clock }), { close: async () => {} });
}

const open = (store: MemoryStore) =>
  openBelay({
    store,
    clock,
    graceMs: 0,
    agent: ({ signal }) => new Promise((_, no) => signal.addEventListener("abort", no)),
  });

test("G7: a repeated cancelAll() stops nothing newer, even after a restart", async () => {
  const store = lasting();
  const first = await open(store);
  const run = first.prompt("one");
  await run.accepted;
  const covered = await first.cancelAll({ key: "K", actor: "ann" });
  expect(covered.map(({ sessionId }) => sessionId)).toEqual([run.sessionId]);
  await first.close();

  const second = await open(store);
  const later = second.prompt("two");
  await later.accepted;
  expect(await second.cancelAll({ key: "K", actor: "ann" })).toEqual(covered);
  expect((await later.row()).phase).not.toBe("settled");
  // Another user's key, and another key, are other requests.
  await expect(second.cancelAll({ key: "K", actor: "ann", background: "keep" })).rejects.toMatchObject({
    code: "conflict",
  });
  expect(await second.cancelAll({ key: "K", actor: "ben" })).toHaveLength(1);
  await second.close();
});

test("G7: two concurrent cancelAll() calls with one key are one", async () => {
  const belay = await open(lasting());
  const run = belay.prompt("one");
  const [one, other] = await Promise.all([belay.cancelAll({ key: "K" }), belay.cancelAll({ key: "K" })]);
  expect(one).toEqual(other);
  expect(one).toHaveLength(1);
  expect((await run.outcome).kind).toBe("cancelled");
  await belay.close();
});

test("G10: cancelAll() returns although Belay closes before its key is stored", async () => {
  const store = lasting();
  const belay = await open(store);
  const run = belay.prompt("one");
  await run.accepted;
  const covered = belay.cancelAll({ key: "K" });
  await Promise.all([belay.close(), expect(covered).resolves.toMatchObject([{ sessionId: run.sessionId }])]);
});

test("G7: it covers prompts that have not arrived, in a session or with their own session", async () => {
  const belay = await open(lasting());
  const { id } = await belay.createSession();
  const prompts = [{ sessionId: id, key: "a" }, { key: "b" }];
  const covered = await belay.cancelAll({ prompts, actor: "ann" });
  expect(covered.map(({ receipt }) => receipt)).toEqual([
    { kind: "withdrawn", runs: [], prompts: ["a"] },
    { kind: "withdrawn", runs: [], prompts: ["b"] },
  ]);
  const late = [
    belay.session(id).prompt("a", { key: "a", actor: "ann" }),
    belay.prompt("b", { key: "b", actor: "ann" }),
    belay.session(id).prompt("a", { key: "other", actor: "ann" }),
  ];
  await Promise.all(late.map(({ accepted }) => accepted));
  const phases = await Promise.all(late.map(async (run) => (await run.row()).outcome?.kind));
  expect(phases).toEqual(["cancelled", "cancelled", undefined]);
  await belay.close();
});

test("G7: another user's stops evict no key, before and after a restart", async () => {
  const store = lasting();
  const first = await open(store);
  expect(await first.cancelAll({ key: "K", actor: "ann" })).toEqual([]);
  for (let index = 0; index <= ANSWERS_KEPT; index += 1) await first.cancelAll({ key: `K${index}`, actor: "bob" });
  const run = first.prompt("one");
  await run.accepted;
  expect(await first.cancelAll({ key: "K", actor: "ann" })).toEqual([]);
  expect((await run.row()).outcome).toBeUndefined();
  await first.close();

  const second = await open(store);
  const later = second.prompt("two");
  await later.accepted;
  expect(await second.cancelAll({ key: "K", actor: "ann" })).toEqual([]);
  expect((await later.row()).outcome).toBeUndefined();
  await second.close();
});

test("G33: beyond its user's limit cancelAll() is carried out and then refused, and no key is evicted", async () => {
  const store = lasting();
  const actor = JSON.stringify([undefined, "ann"]);
  const answered = (index: number) => keep({ kind: "answer", key: `other ${index}`, content: "c", answer: [], actor });
  const memos = Array.from({ length: ANSWERS_PER_ACTOR_MAX - 1 }, (_, index) => answered(index));
  await store.append({ session: "ses_*", expected: 0, events: [], at: 0, memos });
  const belay = await open(store);
  expect(await belay.cancelAll({ key: "last", actor: "ann" })).toEqual([]);
  const run = belay.prompt("one");
  await run.accepted;
  await expect(belay.cancelAll({ key: "more", actor: "ann" })).rejects.toMatchObject({ code: "queue_full" });
  expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  const later = belay.prompt("two");
  await later.accepted;
  expect(await belay.cancelAll({ key: "last", actor: "ann" })).toEqual([]);
  expect((await later.row()).outcome).toBeUndefined();
  expect(await belay.cancelAll({ key: "more", actor: "ben" })).toHaveLength(1);
  await belay.close();
});

test("G7: stored keys that could not be read at the start are read with the first stop", async () => {
  const store = lasting();
  const first = await open(store);
  expect(await first.cancelAll({ key: "K", actor: "ann" })).toEqual([]);
  await first.close();

  const load = store.load.bind(store);
  store.load = async (session) => {
    if (session !== "ses_*") return load(session);
    store.load = load;
    throw new Error("not now");
  };
  const second = await open(store);
  expect(await second.cancelAll({ key: "other", actor: "ann" })).toEqual([]);
  const run = second.prompt("one");
  await run.accepted;
  expect(await second.cancelAll({ key: "K", actor: "ann" })).toEqual([]);
  expect((await run.row()).outcome).toBeUndefined();
  await second.close();
});

test("G7: cancelAll() with more prompts than a user may have memos stops everything", async () => {
  const belay = await open(lasting());
  const { id } = await belay.createSession();
  const run = belay.session(id).prompt("one", { key: "k0", actor: "ann" });
  await run.accepted;
  const other = belay.prompt("two");
  await other.accepted;
  const prompts = Array.from({ length: MEMOS_PER_ACTOR_MAX + 2 }, (_, index) => ({ sessionId: id, key: `k${index}` }));
  const refused = { code: "queue_full", message: expect.stringContaining("What had arrived was stopped.") };
  await expect(belay.cancelAll({ prompts, actor: "ann" })).rejects.toMatchObject(refused);
  const outcomes = await Promise.all([run.outcome, other.outcome]);
  expect(outcomes.map(({ kind }) => kind)).toEqual(["cancelled", "cancelled"]);
  expect(await belay.cancelAll({ prompts: prompts.slice(0, -1), actor: "ann" })).toHaveLength(1);
  await belay.close();
});
