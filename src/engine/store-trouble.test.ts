// A failing store: every receipt is true, stops still work, and everything continues once the store recovers.
import { describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted, waits } from "../../test/fixtures/belay.ts";
import { ControlError } from "../core/errors.ts";
import { RETRY_FIRST_MS } from "../core/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Appended, Batch, Store } from "../ports/store.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { systemClock } from "../system/system-clock.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";

type Append = (batch: Batch, real: Store) => Promise<Appended>;

/** A memory store whose appends can be made to fail, and later not to. */
function troubled(clock: Clock = systemClock): { readonly store: Store; set(append: Append | undefined): void } {
  const real = new MemoryStore({ clock });
  let instead: Append | undefined;
  const store = new Proxy<Store>(real, {
    get(target, name) {
      if (name === "append")
        return (batch: Batch) => (instead === undefined ? target.append(batch) : instead(batch, target));
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    store,
    set: (append) => {
      instead = append;
    },
  };
}

const full: Append = () => Promise.reject(new ControlError("store_full", "The disk is full."));

describe("G28: a full store", () => {
  test("refuses a prompt with a code and leaves nothing of it; the next one is accepted 50 ms later", {
    meta: { id: "G28/full-store-refuses-prompt" },
  }, async () => {
    const clock = manualClock();
    const { store, set } = troubled(clock);
    const { belay, begun, notices } = await openTestBelay({}, { store, clock });
    const session = await belay.createSession();
    const before = (await session.explain()).asOf;
    set(full);
    const refused = session.prompt("lost");
    await expect(refused.accepted).rejects.toMatchObject({ code: "store_full", retryable: true });
    expect((await session.explain()).asOf).toBe(before);
    expect(notices).toContainEqual(expect.objectContaining({ type: "store", code: "store_full" }));
    set(undefined);
    await expect(session.prompt("too early").accepted).rejects.toMatchObject({ code: "store_full" });
    await clock.advance(RETRY_FIRST_MS);
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["next"]);
    expect(await session.runs()).toHaveLength(1);
  });

  test("carries a stop out at once; its caller learns that it is not recorded yet, and later it is", async () => {
    const { store, set } = troubled();
    const { belay, began } = await openTestBelay({ live: waits }, { store });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    set(full);
    const receipt = run.cancel({ reason: "stop" });
    await expect(receipt).rejects.toMatchObject({
      code: "store_full",
      message: expect.stringContaining("carried out"),
    });
    set(undefined);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user", note: "stop" } });
  });

  test("keeps the stop of an approval, whose call never begins", async () => {
    const clock = manualClock();
    const { store, set } = troubled(clock);
    let executed = 0;
    const write = (): void => {
      executed += 1;
    };
    const { belay } = await openTestBelay(
      { work: async (turn) => void (await turn.call("write", null, write, { approval: true })) },
      { store, clock },
    );
    const session = await belay.createSession();
    const run = session.prompt("work");
    await settled();
    const [question] = await session.questions();
    set(full);
    await expect(belay.cancel(question?.id ?? "")).rejects.toMatchObject({
      code: "store_full",
      message: expect.stringContaining("carried out"),
    });
    await expect(belay.questions.answer(question?.id ?? "", { allow: true })).rejects.toMatchObject({
      code: "store_full",
    });
    set(undefined);
    await clock.advance(RETRY_FIRST_MS);
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect((await logOf(session)).filter(({ type }) => type === "question.settled")).toEqual([
      expect.objectContaining({ ending: { kind: "withdrawn", reason: { kind: "user" } } }),
    ]);
    expect(executed).toBe(0);
  });

  test("stops nothing for an interrupt that is refused", async () => {
    const clock = manualClock();
    const { store, set } = troubled(clock);
    const { belay, began } = await openTestBelay({ live: waits }, { store, clock });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    set(full);
    await expect(session.prompt("urgent", { delivery: "interrupt" }).accepted).rejects.toMatchObject({
      code: "store_full",
    });
    set(undefined);
    await clock.advance(RETRY_FIRST_MS);
    expect((await session.explain()).live).toMatchObject({ runId: run.id, phase: "running" });
    expect(await run.cancel({ waitMs: 1_000 })).toMatchObject({ kind: "stopping", first: true });
  });

  test("keeps the end of a run, and its outcome is reported once it is recorded", {
    meta: { id: "G16/outcome-waits-for-store" },
  }, async () => {
    const { store, set } = troubled();
    const go = gate();
    const { belay, began } = await openTestBelay({ live: () => go.passed.then(() => "text") }, { store });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    let told = false;
    const outcome = run.outcome.then((value) => {
      told = true;
      return value;
    });
    const tries = gate();
    let failed = 0;
    set((batch, real) => {
      failed += 1;
      if (failed === 3) tries.open();
      return full(batch, real);
    });
    go.open();
    await tries.passed;
    expect(told).toBe(false);
    set(undefined);
    expect(await outcome).toEqual({ kind: "completed" });
    expect(await run.text()).toBe("text");
  });

  test("does not begin a call that cannot be recorded", async () => {
    const { store, set } = troubled();
    let executed = 0;
    const { belay } = await openTestBelay(
      {
        work: async (turn) => {
          set(full);
          const refused = await turn
            .call("write", null, () => {
              executed += 1;
            })
            .catch((error: unknown) => (error instanceof ControlError ? error.code : "?"));
          set(undefined);
          return String(refused);
        },
      },
      { store },
    );
    const session = await belay.createSession();
    expect(await session.prompt("work").text()).toBe("store_full");
    expect(executed).toBe(0);
  });
});

describe("G28: a lost answer", () => {
  test("a prompt that was written although its answer was lost runs once, and its key finds it", {
    meta: { id: "G28/lost-answer-prompt-once" },
  }, async () => {
    const clock = manualClock();
    const { store, set } = troubled(clock);
    const { belay, began, begun } = await openTestBelay({}, { store, clock });
    const session = await belay.createSession();
    set(async (batch, real) => {
      set(undefined);
      await real.append(batch);
      throw new ControlError("unavailable", "The answer was lost.");
    });
    const first = session.prompt("once", { key: "k" });
    await expect(first.accepted).rejects.toMatchObject({ code: "unavailable", retryable: true });
    // Refused at once until the log has been read.
    await expect(session.prompt("once", { key: "k" }).accepted).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(RETRY_FIRST_MS);
    const again = session.prompt("once", { key: "k" });
    expect((await again.accepted).repeated).toBe(true);
    expect(await again.outcome).toEqual({ kind: "completed" });
    await began("once");
    expect(begun).toEqual(["once"]);
    expect(await session.runs()).toHaveLength(1);
  });

  test("a cancel whose record was written although the answer was lost is recorded once", {
    meta: { id: "G28/lost-answer-cancel-once" },
  }, async () => {
    const { store, set } = troubled();
    const { belay, began } = await openTestBelay({ live: (turn) => untilAborted(turn.signal) }, { store });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    set(async (batch, real) => {
      set(undefined);
      await real.append(batch);
      throw new ControlError("unavailable", "The answer was lost.");
    });
    await expect(run.cancel()).rejects.toMatchObject({ code: "unavailable" });
    expect((await run.outcome).kind).toBe("cancelled");
    const cancels: string[] = [];
    for await (const event of run) if (event.type === "run.cancel_requested") cancels.push(event.type);
    expect(cancels).toHaveLength(1);
  });
});

test("G28: an append that hangs delays no stop", { meta: { id: "G28/hanging-append-delays-no-stop" } }, async () => {
  const { store, set } = troubled();
  const aborted = gate();
  const { belay, began } = await openTestBelay(
    {
      live: (turn) => {
        turn.signal.addEventListener("abort", aborted.open);
        return untilAborted(turn.signal);
      },
    },
    { store },
  );
  const session = await belay.createSession();
  const run = session.prompt("live");
  await began("live");
  const stall = gate();
  set(async (batch, real) => {
    await stall.passed;
    return real.append(batch);
  });
  const receipt = run.cancel();
  await aborted.passed;
  stall.open();
  expect(await receipt).toMatchObject({ kind: "stopping", first: true });
  expect((await run.outcome).kind).toBe("cancelled");
});
