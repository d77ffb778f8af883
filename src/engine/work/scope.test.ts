// The tree of live work: its invariants, one test each.
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { CancelReason } from "../../core/model/cancel.ts";
import { Aborted, type Firing, Scope } from "./scope.ts";

const user = { kind: "user" } as const;
const shutdown = { kind: "shutdown" } as const;

test("cancelling a scope cancels every scope below it, and none above", async () => {
  const root = new Scope();
  const seen: string[] = [];
  let middle: Scope | undefined;
  const ended = root.run(async (scope) => {
    middle = scope;
    return scope.run((leaf) => new Promise((_, reject) => leaf.signal.addEventListener("abort", () => reject("leaf"))));
  });
  root.signal.addEventListener("abort", () => seen.push("root"));
  middle?.cancel(user);
  expect(await ended).toEqual({ kind: "completed", value: { kind: "cancelled", reason: user, error: "leaf" } });
  expect(seen).toEqual([]);
  expect(root.reason).toBeUndefined();
});

test("the first reason wins", () => {
  const scope = new Scope();
  scope.cancel(user);
  scope.cancel(shutdown);
  expect(scope.reason).toBe(user);
  expect(scope.signal.reason).toMatchObject({ reason: user });
});

test("a child of a cancelled scope never begins", async () => {
  const scope = new Scope();
  scope.cancel(user);
  let began = false;
  expect(await scope.run(() => (began = true))).toEqual({ kind: "cancelled", reason: user });
  expect(began).toBe(false);
});

test("a signal that is created after the cancel is aborted already", () => {
  const scope = new Scope();
  scope.cancel(user);
  expect(scope.signal.aborted).toBe(true);
});

test("a wait below a scope that is cancelled, or was before, is rejected", async () => {
  const [before, after] = [new Scope(), new Scope()];
  before.cancel(user);
  const waiting = [before, after].map((scope) => scope.until(new Promise(() => {})));
  after.cancel(user);
  for (const wait of waiting) await expect(wait).rejects.toMatchObject({ name: "AbortError", reason: user });
  expect(await new Scope().until(Promise.resolve("came"))).toBe("came");
});

test("work that finished in spite of its stop has finished", async () => {
  const scope = new Scope();
  const ended = scope.execute(async (self) => {
    self.cancel(user);
    return "done";
  });
  expect(await ended).toEqual({ kind: "completed", value: "done" });
});

test("an error of work that was not stopped is a failure, whatever its kind", {
  meta: { id: "G15/scope-abort-error-is-failure" },
}, async () => {
  const error = new DOMException("aborted", "AbortError");
  expect(await new Scope().execute(() => Promise.reject(error))).toEqual({ kind: "failed", error });
  expect(
    await new Scope().execute(() => {
      throw error;
    }),
  ).toEqual({ kind: "failed", error });
});

test("all signals of one reason have the same error, with the name that fetch and the model SDKs recognize", () => {
  const [a, b] = [new Scope(), new Scope()];
  const reason = { kind: "user", note: "one" } as const;
  a.cancel(reason);
  b.cancel(reason);
  expect(a.signal.reason).toBeInstanceOf(Aborted);
  expect(a.signal.reason).toBe(b.signal.reason);
  expect(a.signal.reason.name).toBe("AbortError");
});

test("a reason that is kept after a cancel retains nothing of what was cancelled", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const kept: CancelReason = { kind: "user" };
  const held = new WeakRef(cancelWithSomethingLarge(kept));
  // What was just read stays alive until the end of this turn of the event loop.
  await setImmediate();
  collect();
  expect(held.deref()).toBeUndefined();
  expect(kept).toEqual(user);
});

/** Like a lane: referenced by the functions that are on the stack when the cancel is carried out. */
function cancelWithSomethingLarge(reason: CancelReason): object {
  const large = { bytes: new Uint8Array(1_024) };
  const carryOut = (): void => {
    const scope = new Scope();
    scope.cancel(reason);
    expect(scope.signal.aborted && large.bytes.length).toBe(1_024);
  };
  carryOut();
  return large;
}

test("G11: a scope whose signal fires later is cancelled now: its reason, its waits, the scopes below", async () => {
  const later: Firing[] = [];
  const scope = new Scope();
  const { signal } = scope;
  let aborted = 0;
  signal.addEventListener("abort", () => (aborted += 1));
  const waiting = scope.until(new Promise(() => {}));
  let below: Scope | undefined;
  void scope.run((child) => {
    below = child;
    return new Promise(() => {});
  });
  scope.cancel(user, { fire: (one) => later.push(one) });
  expect([scope.reason, below?.reason, aborted, later.length]).toEqual([user, user, 0, 1]);
  await expect(waiting).rejects.toMatchObject({ reason: user });
  expect(await scope.run(() => "begun")).toEqual({ kind: "cancelled", reason: user });
  for (const one of later) one.fire();
  for (const one of later) one.fire();
  expect([signal.aborted, aborted]).toEqual([true, 1]);
});

test("G11: a signal that has not fired yet fires when it is read", () => {
  const scope = new Scope();
  const before = scope.signal;
  scope.cancel(user, { fire: () => {} });
  expect(before.aborted).toBe(false);
  expect(scope.signal.aborted).toBe(true);
  expect(before).toBe(scope.signal);
});
