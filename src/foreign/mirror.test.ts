// When a call of somebody else's becomes a call of Belay. Time moves when the test says so.
import { expect, test } from "vitest";
import { FakeTurn } from "../../test/fixtures/fake-turn.ts";
import type { CallOptions, CallResult, Execute, Turn } from "../ports.ts";
import { type ManualClock, manualClock } from "../testing/manual-clock.ts";
import { HOLD_MS } from "./limits.ts";
import { Mirror } from "./mirror.ts";
import { readNews } from "./update.ts";

interface Called {
  readonly name: string;
  readonly execute: Execute;
  readonly options: CallOptions | undefined;
}

function stage(): { mirror: Mirror; clock: ManualClock; calls: Called[]; told: (fields: object) => void } {
  const clock = manualClock();
  const calls: Called[] = [];
  const call: Turn["call"] = (name, _, execute, options) => {
    calls.push({ name, execute, options });
    return new Promise<CallResult>(() => {});
  };
  const turn: Turn = Object.assign(new FakeTurn(clock), { call });
  const mirror = new Mirror("t", { turn, cancel: undefined, forbidden: () => {} });
  const told = (fields: object): void => {
    const news = readNews({ toolCallId: "t", ...fields });
    if (news !== undefined) mirror.told(news);
  };
  return { mirror, clock, calls, told };
}

test("one that waits to begin is no call yet, however long it waits", async () => {
  const { clock, calls, told } = stage();
  told({ title: "Run", status: "pending" });
  await clock.advance(60_000);
  expect(calls).toEqual([]);
});

test("one that has begun is a call a moment later, unless leave is asked for first", async () => {
  const { mirror, clock, calls, told } = stage();
  told({ title: "Run", status: "in_progress" });
  expect(mirror.phase).toBe("held");
  await clock.advance(HOLD_MS);
  expect(calls.map(({ name, options }) => [name, options?.approval])).toEqual([["Run", undefined]]);
  expect(mirror.phase).toBe("called");
  const other = stage();
  other.told({ title: "Run", status: "in_progress" });
  other.mirror.begin({ scope: "Run" });
  await other.clock.advance(HOLD_MS);
  expect(other.calls.map(({ options }) => options?.approval)).toEqual([{ scope: "Run" }]);
  expect(other.mirror.phase).toBe("asks leave");
});

test("one that is said to wait after all waits", async () => {
  const { clock, calls, told } = stage();
  told({ title: "Run", status: "in_progress" });
  told({ status: "pending" });
  await clock.advance(HOLD_MS);
  expect(calls).toEqual([]);
});

test("one that has ended is a call at once, and so is one that had begun when its prompt ended", () => {
  const { calls, told } = stage();
  told({ title: "Run", status: "completed" });
  expect(calls).toHaveLength(1);
  const other = stage();
  other.told({ title: "Run", status: "in_progress" });
  other.mirror.end({ kind: "unknown", why: "It ended." });
  expect(other.calls).toHaveLength(1);
  const third = stage();
  third.told({ title: "Run", status: "pending" });
  third.mirror.end({ kind: "unknown", why: "It ended." });
  expect(third.calls).toEqual([]);
});

test("it is called what it is about; a leave for the session is for the tool, where that has a name", () => {
  const { mirror, told } = stage();
  expect(mirror.title).toBe("tool");
  told({ title: " Run\n  it ", name: "bash" });
  expect([mirror.title, mirror.scope]).toEqual(["Run it", "bash"]);
});
