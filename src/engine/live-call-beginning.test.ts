// The last look of a call before it begins, at a desk of its own: every order of what it waits for and what stops it.
import { describe, expect, test } from "vitest";
import { gate } from "../../test/fixtures/belay.ts";
import { ControlError } from "../core/control-error.ts";
import type { Ending } from "../core/question.ts";
import type { CallOptions, Execute, Slots } from "../ports.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { type CallDesk, LiveCall } from "./live-call.ts";

const ignore = (): void => {};

describe("a call begins only if nothing speaks against it in that very tick", () => {
  /** A desk at which everything is granted and recorded, but for what a test says. */
  const deskWith = (own: Partial<CallDesk>): CallDesk => ({
    ...{ clock: manualClock(), sessionId: "ses_1", cwd: undefined, mode: undefined },
    hooks: { beforeCalls: false, before: async () => undefined },
    ...{ ended: async () => {}, gaveUp: async () => {}, limitReached: ignore, progress: ignore },
    inquire: async () => ({ kind: "allowed" }),
    ...{ digest: (text) => text, unsure: () => false, known: async () => {} },
    ...{ ownsProcesses: () => false, endProcesses: async () => {}, abandonProcesses: ignore },
    processesOf: () => {
      throw new Error("It has none.");
    },
    ...own,
  });
  const begin = (own: Partial<CallDesk>, options: CallOptions = {}) => {
    const begun: string[] = [];
    const execute: Execute = () => void begun.push("begun");
    const request = { ...options, name: "tool", input: null, execute };
    const live = new LiveCall("call_1.1", "tool", request, deskWith(own));
    const result = live.result();
    live.begin();
    return { live, result, begun };
  };

  const refusals: readonly (readonly [string, Ending, string])[] = [
    [
      "its approval was taken back",
      { kind: "withdrawn", reason: { kind: "user", by: "bob" } },
      "Not carried out: the approval was taken back by bob.",
    ],
    [
      "its approval was answered with anything else",
      { kind: "answered", value: "perhaps" },
      "Not carried out: the approval was answered with something else than yes.",
    ],
  ];
  test.each(refusals)("not if %s", async (_, ending, message) => {
    const { result, begun } = begin({ inquire: async () => ending }, { approval: true });
    expect(await result).toEqual({ kind: "failed", callId: "call_1.1", message });
    expect(begun).toEqual([]);
  });

  test("not while its stop may be in the log, but once it is known that there is none", async () => {
    let unsure = true;
    const known = gate();
    const { result, begun } = begin({ unsure: () => unsure, known: () => known.passed });
    await settled();
    expect(begun).toEqual([]);
    unsure = false;
    known.open();
    expect(await result).toMatchObject({ kind: "completed" });
    expect(begun).toEqual(["begun"]);
  });

  test("not if its stop comes just after what it waited for", async () => {
    const place = Promise.withResolvers<() => void>();
    const slot: Slots = {
      take: (taken) => {
        void place.promise.then(taken);
        return ignore;
      },
    };
    let givenBack = 0;
    const { live, result, begun } = begin({}, { slots: slot });
    place.resolve(() => (givenBack += 1));
    // It has the place by now, and is about to go on.
    for (let step = 0; step < 3; step += 1) await Promise.resolve();
    live.work.scope.cancel({ kind: "user" });
    expect(await result).toMatchObject({ kind: "cancelled", reason: { kind: "user" } });
    expect(begun).toEqual([]);
    expect(givenBack).toBeGreaterThan(0);
  });

  test("not if its stop comes together with its place, which it gives back", async () => {
    let give: (giveBack: () => void) => void = ignore;
    const slot: Slots = {
      take: (taken) => {
        give = taken;
        return ignore;
      },
    };
    const { live, result, begun } = begin({}, { slots: slot });
    await settled();
    let givenBack = 0;
    give(() => (givenBack += 1));
    live.work.scope.cancel({ kind: "user" });
    expect(await result).toMatchObject({ kind: "cancelled" });
    expect(begun).toEqual([]);
    expect(givenBack).toBe(1);
  });

  test("and whoever waits for its end is told if that cannot be recorded any more", async () => {
    const gone = new ControlError("unavailable", "Another worker drives it now.");
    const { result, begun } = begin({ ended: () => Promise.reject(gone) });
    await expect(result).rejects.toBe(gone);
    expect(begun).toEqual(["begun"]);
  });
});
