// The last check of a call before it begins, in every order of its waits and its stops.
import { describe, expect, test } from "vitest";
import { gate } from "../../../test/fixtures/belay.ts";
import { running, call as wanted } from "../../../test/fixtures/commands.ts";
import { ControlError } from "../../core/errors.ts";
import type { QuestionOutcome } from "../../core/model/question.ts";
import type { CallOptions, Execute, Slots } from "../../ports/agent.ts";
import { given } from "../../testing/given.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { WELL } from "../log/health.ts";
import { SessionState } from "../log/session-state.ts";
import { LoopBudget } from "../yield-gate.ts";
import { LiveCall } from "./live-call.ts";
import type { WorkHost } from "./run-work.ts";

const ignore = (): void => {};

interface Own {
  readonly ending?: QuestionOutcome;
  readonly drained?: () => Promise<void>;
  readonly submit?: () => Promise<unknown>;
}

describe("a call begins only if no stop of it is decided in that tick", () => {
  /** An engine that grants and records everything, unless a test overrides it. */
  const hostWith = ({ ending = { kind: "allowed" }, drained = async () => {}, submit = async () => "late" }: Own) =>
    ({
      ...{ clock: manualClock(), budget: new LoopBudget(manualClock()), phase: "open", agent: async () => "" },
      hooks: { beforeCalls: false, before: async () => undefined },
      questions: { ask: async () => ending },
      commit: { submit, drained },
      drive: { ended: () => true, forget: ignore },
      handles: { processes: { hasPending: () => false } },
      digest: (text: string) => text,
    }) as unknown as WorkHost;
  const begin = (own: Own, options: CallOptions = {}) => {
    const begun: string[] = [];
    const execute: Execute = () => void begun.push("begun");
    const request = { ...options, name: "tool", input: null, execute };
    const lane = new SessionState("ses_1");
    const state = given(...running("run_1"), wanted("call_1.1")).lane;
    Object.assign(lane, { phase: "ready", decided: state, durable: state });
    const live = new LiveCall(hostWith(own), lane, "call_1.1", "tool", request);
    const result = live.resultBehind({ pass: (call) => call() });
    return { live, lane, result, begun };
  };

  const refusals: readonly (readonly [string, QuestionOutcome, string])[] = [
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
    const { live, result, begun } = begin({ ending }, { approval: true });
    live.begin();
    expect(await result).toEqual({ kind: "failed", callId: "call_1.1", message });
    expect(begun).toEqual([]);
  });

  test("not while its stop may be in the log, but once it is known that there is none", async () => {
    const known = gate();
    const { live, lane, result, begun } = begin({ drained: () => known.passed });
    const error = new ControlError("unavailable", "The store did not answer.");
    lane.health = { kind: "unknown", error, until: 0, failures: 1 };
    live.begin();
    await settled();
    expect(begun).toEqual([]);
    lane.health = WELL;
    known.open();
    expect(await result).toMatchObject({ kind: "completed" });
    expect(begun).toEqual(["begun"]);
  });

  test("not if its stop comes right after the end of its wait", async () => {
    const place = Promise.withResolvers<() => void>();
    const slot: Slots = {
      take: (taken) => {
        void place.promise.then(taken);
        return ignore;
      },
    };
    let givenBack = 0;
    const { live, result, begun } = begin({}, { slots: slot });
    live.begin();
    place.resolve(() => (givenBack += 1));
    // It has the slot by now, and is about to continue.
    for (let step = 0; step < 3; step += 1) await Promise.resolve();
    live.scope.cancel({ kind: "user" });
    expect(await result).toMatchObject({ kind: "cancelled", reason: { kind: "user" } });
    expect(begun).toEqual([]);
    expect(givenBack).toBeGreaterThan(0);
  });

  test("not if its stop comes together with its slot, which it releases", async () => {
    let give: (giveBack: () => void) => void = ignore;
    const slot: Slots = {
      take: (taken) => {
        give = taken;
        return ignore;
      },
    };
    const { live, result, begun } = begin({}, { slots: slot });
    live.begin();
    await settled();
    let givenBack = 0;
    give(() => (givenBack += 1));
    live.scope.cancel({ kind: "user" });
    expect(await result).toMatchObject({ kind: "cancelled" });
    expect(begun).toEqual([]);
    expect(givenBack).toBe(1);
  });

  test("a caller that waits for its end is rejected if that can no longer be recorded", async () => {
    const gone = new ControlError("unavailable", "Another worker drives it now.");
    const { live, result, begun } = begin({ submit: () => Promise.reject(gone) });
    live.begin();
    await expect(result).rejects.toBe(gone);
    expect(begun).toEqual(["begun"]);
  });
});
