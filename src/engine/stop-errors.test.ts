// Errors that work throws while it is being stopped: recorded beside `cancelled`, unless they are the abort itself.
import { describe, expect, test } from "vitest";
import { logOf, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import type { CallResult } from "../ports/agent.ts";
import { settled } from "../testing/manual-clock.ts";

const ROLLBACK = { code: "error", message: "rollback failed: table is half migrated" };
const rollback = (): never => {
  throw new Error(ROLLBACK.message);
};

describe("an error thrown while being stopped", () => {
  test("G15: of a call is in its outcome, its result, the transcript and afterCall", async () => {
    const results: CallResult[] = [];
    const ended: unknown[] = [];
    const { belay } = await openTestBelay(
      {
        go: async (turn) => {
          results.push(await turn.call("migrate", {}, (call) => untilAborted(call.signal).catch(rollback)));
          return "went on";
        },
      },
      { hooks: { afterCall: ({ outcome }) => void ended.push(outcome) } },
    );
    const session = await belay.createSession();
    const run = session.prompt("go");
    await settled();
    const [call] = (await session.explain()).live?.calls ?? [];
    const receipt = await belay.cancel(call?.callId ?? "call_none", { reason: "no" });
    const outcome = { kind: "cancelled", reason: { kind: "user", note: "no" }, error: ROLLBACK };
    expect(receipt).toMatchObject({ kind: "stopping", ended: { kind: "settled", outcome } });
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(results).toMatchObject([{ kind: "cancelled", error: ROLLBACK }]);
    expect(ended).toEqual([outcome]);
    expect(await session.transcript()).toContainEqual(
      expect.objectContaining({ role: "tool", results: [expect.objectContaining({ outcome })] }),
    );
    await belay.close();
  });

  test("G15: of a turn is in the outcome of the turn and of its run, and passed to onOutcome", async () => {
    const ended: unknown[] = [];
    const { belay, began } = await openTestBelay(
      { go: (turn) => untilAborted(turn.signal).catch(rollback) },
      { hooks: { onOutcome: ({ outcome }) => void ended.push(outcome) } },
    );
    const session = await belay.createSession();
    const run = session.prompt("go");
    await began("go");
    await run.cancel();
    const outcome = { kind: "cancelled", reason: { kind: "user" }, error: ROLLBACK };
    expect(await run.outcome).toEqual(outcome);
    expect((await logOf(session)).find(({ type }) => type === "turn.settled")).toMatchObject({ outcome });
    expect(ended).toEqual([outcome]);
    await belay.close();
  });

  test("G15: of a turn is in the run's outcome although a call of it ends later", async () => {
    const { belay, began } = await openTestBelay({
      go: async (turn) => {
        void turn.call("late", {}, async (call) => {
          await untilAborted(call.signal).catch(() => settled());
          throw new Error("the call's own");
        });
        return untilAborted(turn.signal).catch(rollback);
      },
    });
    const run = (await belay.createSession()).prompt("go");
    await began("go");
    await settled();
    await run.cancel();
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" }, error: ROLLBACK });
    await belay.close();
  });
});

test.each([
  ["the signal's reason", (signal: AbortSignal) => signal.reason],
  ["an AbortError of the platform", () => new DOMException("This operation was aborted", "AbortError")],
  ["an AbortError of Node", () => Object.assign(new Error("The operation was aborted"), { code: "ABORT_ERR" })],
  ["nothing", () => undefined],
])("the abort itself is not recorded as an error: %s", async (_, thrown) => {
  const { belay, began } = await openTestBelay({
    go: (turn) =>
      untilAborted(turn.signal).catch(() => {
        throw thrown(turn.signal);
      }),
  });
  const run = (await belay.createSession()).prompt("go");
  await began("go");
  await run.cancel();
  expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  await belay.close();
});
