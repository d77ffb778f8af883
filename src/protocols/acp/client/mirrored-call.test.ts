// When a call of an external agent becomes a call of Belay, with a fake clock.
import { expect, test } from "vitest";
import { FakeTurn } from "../../../../test/fixtures/fake-turn.ts";
import type { CallOptions, Execute, Turn } from "../../../ports/agent.ts";
import { type ManualClock, manualClock } from "../../../testing/manual-clock.ts";
import { HOLD_MS } from "./limits.ts";
import { MirroredCall } from "./mirrored-call.ts";
import { readCallChange } from "./update.ts";

interface Called {
  readonly name: string;
  readonly input: unknown;
  readonly execute: Execute;
  readonly options: CallOptions | undefined;
}

function stage(): { mirror: MirroredCall; clock: ManualClock; calls: Called[]; told: (fields: object) => void } {
  const clock = manualClock();
  const calls: Called[] = [];
  const call: Turn["call"] = (name, input, execute, options) => {
    calls.push({ name, input, execute: execute as Execute, options });
    return new Promise<never>(() => {});
  };
  const turn: Turn = Object.assign(new FakeTurn(clock), { call });
  const mirror = new MirroredCall("t", { turn, stopper: () => undefined, forbidden: () => {} });
  const told = (fields: object): void => {
    const news = readCallChange({ toolCallId: "t", ...fields });
    if (news !== undefined) mirror.update(news);
  };
  return { mirror, clock, calls, told };
}

test("a call announced with input is recorded at once, whatever its status", () => {
  for (const status of [{ status: "pending" }, {}, { status: "in_progress" }]) {
    const { calls, told, mirror } = stage();
    told({ title: "Run", rawInput: { command: "ls" }, ...status });
    expect(calls.map(({ name, input }) => [name, input])).toEqual([["Run", { command: "ls" }]]);
    expect(mirror.phase).toBe("called");
  }
});

test("a call announced without input waits for it briefly, and is then recorded without it", async () => {
  const { mirror, clock, calls, told } = stage();
  told({ title: "Run", status: "pending" });
  expect(mirror.phase).toBe("held");
  told({ title: "Run it", rawInput: { command: "ls" } });
  expect(calls.map(({ name, input }) => [name, input])).toEqual([["Run it", { command: "ls" }]]);
  const other = stage();
  other.told({ title: "Run", kind: "execute", rawInput: {} });
  await other.clock.advance(HOLD_MS);
  expect(other.calls.map(({ name, input }) => [name, input])).toEqual([["Run", {}]]);
  await clock.advance(HOLD_MS);
  expect(calls).toHaveLength(1);
});

test("a running or ended call is recorded at once, an announced one at the end of its prompt at the latest", () => {
  for (const status of ["in_progress", "completed", "failed"]) {
    const { calls, told } = stage();
    told({ title: "Run", status });
    expect(calls).toHaveLength(1);
  }
  const third = stage();
  third.told({ title: "Run", status: "pending" });
  third.mirror.end({ kind: "unknown", why: "It ended." });
  expect(third.calls).toHaveLength(1);
});

test("the agent's own id, kind and locations with lines are recorded with the call", () => {
  const { calls, told } = stage();
  told({ title: "Edit", kind: "edit", status: "in_progress", locations: [{ path: "/a", line: 3 }, { path: "/b" }] });
  const acp = { kind: "edit", locations: [{ path: "/a", line: 3 }, { path: "/b" }] };
  expect(calls[0]?.options?.provider).toEqual({ id: "t", data: { acp } });
});

test("its name is its title; an approval for the session covers the tool, if that has a name", () => {
  const { mirror, told } = stage();
  expect(mirror.title).toBe("tool");
  told({ title: " Run\n  it ", name: "bash" });
  expect([mirror.title, mirror.scope]).toEqual(["Run it", "bash"]);
});
