import { describe, expect, test } from "vitest";
import type { SessionId } from "../core/model/ids.ts";
import type { Batch } from "../ports/store.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "./faulty-store.ts";
import { Gate } from "./gate.ts";
import { manualClock, settled } from "./manual-clock.ts";

const session: SessionId = "ses_1";
const create: Batch = { session, expected: 0, events: [{ type: "session.created", sessionId: session }], at: 0 };
const open = () => faultyStore(new MemoryStore({ clock: manualClock() }));
const head = async (store: ReturnType<typeof open>) => (await store.load(session))?.head;

test("calls without a planned fault pass through", async () => {
  const store = open();
  expect(await store.append(create)).toEqual({ kind: "appended", head: 1 });
  expect(store.calls("append")).toBe(1);
});

test("a planned failure affects exactly its call, and writes nothing", async () => {
  const store = open();
  store.plan("append", 2, { kind: "fail", code: "store_full" });
  await store.append(create);
  await expect(store.append({ ...create, expected: 1 })).rejects.toMatchObject({ code: "store_full" });
  expect(await head(store)).toBe(1);
  await expect(store.append(create)).resolves.toEqual({ kind: "moved", head: 1 });
});

test("`lose-answer` writes, and rejects", async () => {
  const store = open();
  store.plan("append", 1, { kind: "lose-answer" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "unavailable" });
  expect(await head(store)).toBe(1);
});

test("a delay ends when its gate opens; the call takes effect after or before it", async () => {
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

test("lasting trouble lasts until `heal`", async () => {
  const store = open();
  store.always("append", { kind: "fail", code: "store_locked" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_locked" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_locked" });
  store.heal();
  await expect(store.append(create)).resolves.toEqual({ kind: "appended", head: 1 });
});

const closed: Batch = { ...create, expected: 1, events: [{ type: "session.closed", reason: { kind: "user" } }] };

/** The current state of a promise, without waiting for it. */
function watch(promise: Promise<unknown>): { state: "pending" | "resolved" | "rejected" } {
  const watched: ReturnType<typeof watch> = { state: "pending" };
  promise.then(
    () => {
      watched.state = "resolved";
    },
    () => {
      watched.state = "rejected";
    },
  );
  return watched;
}

describe("a store that refuses", () => {
  test("rejects every write while the trouble lasts, writes nothing, and still answers reads", async () => {
    const store = open();
    await store.append(create);
    store.trouble = { kind: "refusing", code: "store_locked" };
    const writes = [
      () => store.append(closed),
      () => store.claim(session, "wrk_1", 1_000),
      () => store.renew("wrk_1", 1_000),
      () => store.release(session, "wrk_1"),
      () => store.trim(session, 1),
      () => store.ready(),
    ];
    for (const write of [...writes, ...writes]) await expect(write()).rejects.toMatchObject({ code: "store_locked" });
    expect(await head(store)).toBe(1);
    expect(await store.unattended(10)).toEqual([]);
    store.trouble = { kind: "none" };
    expect(await store.append(closed)).toEqual({ kind: "appended", head: 2 });
    await store.ready();
  });

  test("rejects reads too if the test says so, and can still be closed", async () => {
    const store = open();
    store.trouble = { kind: "refusing", code: "store_corrupt", also: "reads" };
    for (const read of [() => store.load(session), () => store.run("run_1"), () => store.unattended(1)]) {
      await expect(read()).rejects.toMatchObject({ code: "store_corrupt" });
    }
    await store.close();
  });

  test("counts the affected calls per verb, so that retries per second can be bounded", async () => {
    const clock = manualClock();
    const store = open();
    store.trouble = { kind: "refusing", code: "store_full" };
    const retry = (): void => {
      store.append(create).catch(() => clock.after(100, retry));
    };
    retry();
    await clock.advance(1_000);
    expect(store.calls("append")).toBe(11);
    expect(store.troubled("append")).toBe(11);
    await store.load(session);
    expect([store.calls("load"), store.troubled("load")]).toEqual([1, 0]);
    store.heal();
    await clock.advance(100);
    expect([store.calls("append"), store.troubled("append")]).toEqual([12, 11]);
    expect(await head(store)).toBe(1);
  });
});

describe("a store that never answers", () => {
  test.each([
    [true, 1],
    [false, undefined],
  ])("leaves its calls pending even after the trouble has ended (applied: %s)", async (applied, expected) => {
    const store = open();
    store.trouble = { kind: "silent", applied };
    const silenced = [store.append(create), store.load(session), store.renew("wrk_1", 1_000)].map(watch);
    await settled();
    store.trouble = { kind: "none" };
    expect(await head(store)).toBe(expected);
    await settled();
    expect(silenced.map(({ state }) => state)).toEqual(["pending", "pending", "pending"]);
    expect([store.troubled("append"), store.troubled("load"), store.troubled("renew")]).toEqual([1, 1, 1]);
  });

  test("never finishes closing", async () => {
    const store = open();
    store.trouble = { kind: "silent", applied: false };
    const closing = watch(store.close());
    await settled();
    expect(closing.state).toBe("pending");
  });

  test("does not report the error of a silent call, not even as an unhandled rejection", async () => {
    const inner = new MemoryStore({ clock: manualClock() });
    await inner.close();
    const store = faultyStore(inner);
    store.trouble = { kind: "silent", applied: true };
    const silenced = watch(store.append(create));
    await settled();
    expect(silenced.state).toBe("pending");
  });
});

describe("a store whose commits are slow", () => {
  test.each([
    ["at-once", 1],
    ["at-end", undefined],
  ] as const)("answers an append after commitMs; it takes effect %s", async (applied, before) => {
    const clock = manualClock();
    const store = open();
    store.trouble = { kind: "slow", commitMs: 300, clock, applied };
    const commit = watch(store.append(create));
    await clock.advance(299);
    expect(commit.state).toBe("pending");
    // Other calls return at once.
    expect(await head(store)).toBe(before);
    await clock.advance(1);
    expect(commit.state).toBe("resolved");
    expect(await head(store)).toBe(1);
    expect(store.troubled("append")).toBe(1);
  });

  test("finishes a commit on time that was made before the trouble ended", async () => {
    const clock = manualClock();
    const store = open();
    store.trouble = { kind: "slow", commitMs: 300, clock };
    const slow = store.append(create);
    store.trouble = { kind: "none" };
    expect(await store.append(create)).toEqual({ kind: "appended", head: 1 });
    await clock.advance(300);
    expect(await slow).toEqual({ kind: "moved", head: 1 });
  });
});

test("a planned fault takes precedence over lasting trouble", async () => {
  const store = open();
  store.trouble = { kind: "refusing", code: "store_full" };
  store.plan("append", 2, { kind: "fail", code: "store_corrupt" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_full" });
  await expect(store.append(create)).rejects.toMatchObject({ code: "store_corrupt" });
  expect(store.troubled("append")).toBe(1);
});

test("`close` can fail, like every other call", async () => {
  const store = open();
  store.plan("close", 1, { kind: "fail", code: "unavailable" });
  await expect(store.close()).rejects.toMatchObject({ code: "unavailable" });
  expect(store.calls("close")).toBe(1);
});
