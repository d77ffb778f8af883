import { expect, test } from "vitest";
import type { SessionId } from "../core/ids.ts";
import type { Batch } from "../ports.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "./faulty-store.ts";
import { Gate } from "./gate.ts";
import { manualClock, settled } from "./manual-clock.ts";

const session: SessionId = "ses_1";
const create: Batch = { session, expected: 0, events: [{ type: "session.created", sessionId: session }], at: 0 };
const open = () => faultyStore(new MemoryStore({ clock: manualClock() }));
const head = async (store: ReturnType<typeof open>) => (await store.load(session))?.head;

test("what is not planned goes through", async () => {
  const store = open();
  expect(await store.append(create)).toEqual({ kind: "appended", head: 1 });
  expect(store.calls("append")).toBe(1);
});

test("a planned failure hits exactly its call, and writes nothing", async () => {
  const store = open();
  store.plan("append", 2, { kind: "fail", code: "store_full" });
  await store.append(create);
  await expect(store.append({ ...create, expected: 1 })).rejects.toMatchObject({ code: "store_full" });
  expect(await head(store)).toBe(1);
  await expect(store.append(create)).resolves.toEqual({ kind: "moved", head: 1 });
});

test("a lost answer: written, and nobody knows", async () => {
  const store = open();
  store.plan("append", 1, { kind: "lose-answer" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "unavailable" });
  expect(await head(store)).toBe(1);
});

test("a delay ends when its gate opens; it is done after it, or before it", async () => {
  const store = open();
  const until = new Gate();
  store.plan("append", 1, { kind: "delay", until });
  const late = store.append(create);
  await settled();
  expect(await head(store)).toBeUndefined();
  until.open();
  await late;
  const answer = new Gate();
  store.plan("append", 1, { kind: "delay-answer", until: answer });
  const slow = store.append({ ...create, expected: 1, events: [{ type: "session.closed", reason: { kind: "user" } }] });
  await settled();
  expect(await head(store)).toBe(2);
  answer.open();
  expect(await slow).toEqual({ kind: "appended", head: 2 });
});

test("lasting trouble lasts until it is healed", async () => {
  const store = open();
  store.always("append", { kind: "fail", code: "store_locked" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_locked" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_locked" });
  store.heal();
  await expect(store.append(create)).resolves.toEqual({ kind: "appended", head: 1 });
});
