// Callbacks of the host cannot break Belay.
import { describe, expect, test } from "vitest";
import { gate, openTestBelay, waits } from "../../test/fixtures/belay.ts";
import type { Turn } from "../ports/agent.ts";
import type { Notice } from "../ports/hooks.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { manualClock } from "../testing/manual-clock.ts";

const HURT: Readonly<Record<string, () => never | Promise<never>>> = {
  throws: () => {
    throw new Error("I do not want to hear it.");
  },
  "promises and fails": () => Promise.reject(new Error("I do not want to have heard it.")),
};

describe.each(Object.keys(HURT))("a callback that %s", (how) => {
  const hurts = HURT[how] as () => never;

  test("G12, G28: on a notice about the store does not delay a cancel, its run, or the next prompt", async () => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const { belay, began } = await openTestBelay({ live: waits }, { clock, store, onNotice: hurts });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    store.plan("append", 1, { kind: "fail", code: "store_full" });
    await expect(run.cancel()).rejects.toMatchObject({ code: "store_full" });
    await clock.advance(60_000);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
  });

  test("on a notice about a late result does not crash the program", async () => {
    const clock = manualClock();
    const told = gate();
    const late = gate();
    const onNotice = ({ type }: Notice): never => {
      if (type === "late") told.open();
      return hurts();
    };
    const slow = async (_: Turn): Promise<string> => {
      await late.passed;
      return "too late";
    };
    const { belay, began } = await openTestBelay({ slow }, { clock, onNotice, graceMs: 10 });
    const session = await belay.createSession();
    const run = session.prompt("slow");
    await began("slow");
    await run.cancel();
    await clock.advance(1_000);
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    late.open();
    await told.passed;
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
  });

  test("on recorded events is reported as a bug, and delays nothing", async () => {
    const bugs: Notice[] = [];
    const { belay } = await openTestBelay({}, { onRecorded: hurts, onNotice: (notice) => bugs.push(notice) });
    const session = await belay.createSession();
    expect(await session.prompt("go").outcome).toEqual({ kind: "completed" });
    expect(bugs[0]).toMatchObject({ type: "bug", session: session.id });
  });
});

test("a callback that is not a function is refused", async () => {
  for (const wild of [{ onNotice: 5 }, { onRecorded: "x" }]) {
    await expect(openTestBelay({}, wild as never)).rejects.toMatchObject({ code: "invalid" });
  }
});
