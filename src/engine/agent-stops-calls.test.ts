// Agent code stops a call: by its id, or with a signal that it gave the call. Both work like any cancel.
import { describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import type { CallResult, LiveCall, Turn } from "../ports/agent.ts";

/** Runs one turn that does this, and returns its result. */
async function turnThat<T>(act: (turn: Turn) => Promise<T>) {
  const done = Promise.withResolvers<T>();
  const { belay } = await openTestBelay({
    go: async (turn) => {
      await act(turn).then(done.resolve, done.reject);
      return "done";
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("go");
  const value = await done.promise;
  expect(await run.outcome).toEqual({ kind: "completed" });
  return { value, log: await logOf(session), session, belay };
}

const waits = (call: LiveCall): Promise<never> => untilAborted(call.signal);

describe("turn.cancel()", () => {
  test("stops that call and no other, with the requester and the reason", async () => {
    const { value, log } = await turnThat(async (turn) => {
      const begun = gate();
      const ids: string[] = [];
      const slow = turn.call("slow", {}, (call) => {
        ids.push(call.callId);
        begun.open();
        return waits(call);
      });
      const other = gate();
      const goesOn = turn.call("other", {}, () => other.passed.then(() => "other's"));
      await begun.passed;
      const receipt = await turn.cancel(ids[0] ?? "", { reason: "the cache has it", remind: false });
      const stopped = await slow;
      other.open();
      return { receipt, stopped, kept: await goesOn };
    });
    const reason = { kind: "policy", note: "the cache has it" };
    expect(value.receipt).toMatchObject({ kind: "stopping", first: true });
    expect(value.stopped).toMatchObject({ kind: "cancelled", reason });
    expect(value.kept).toMatchObject({ kind: "completed", value: "other's" });
    expect(log.filter(({ type }) => type === "call.cancel_requested")).toMatchObject([{ reason }]);
    expect(log.filter(({ type }) => type === "inbox.added")).toEqual([]);
  });

  test("can name a user, and reminds the model by default", async () => {
    const { log } = await turnThat(async (turn) => {
      const begun = Promise.withResolvers<string>();
      const slow = turn.call("slow", {}, (call) => {
        begun.resolve(call.callId);
        return waits(call);
      });
      await turn.cancel(await begun.promise, { reason: { kind: "user", by: "ann" } });
      return slow;
    });
    expect(log.filter(({ type }) => type === "call.cancel_requested")).toMatchObject([{ reason: { by: "ann" } }]);
    expect(log.filter(({ type }) => type === "inbox.added")).toHaveLength(1);
  });

  test("of a call of another run, or of an unknown call, stops nothing", async () => {
    const first = await turnThat(async (turn) => turn.call("quick", {}, (call) => call.callId));
    const theirs = first.value.kind === "completed" ? first.value.value : "";
    const { value } = await turnThat((turn) => Promise.all([turn.cancel(theirs), turn.cancel("call_none.1")]));
    expect(value).toEqual([{ kind: "unknown" }, { kind: "unknown" }]);
  });

  test("refuses a malformed call id, and unknown options", async () => {
    const { value } = await turnThat((turn) =>
      Promise.allSettled([
        turn.cancel("run_1"),
        turn.cancel("call_none.1", { note: "why" } as never),
        turn.cancel("call_none.1", { remind: "no" as never }),
      ]),
    );
    expect(value.map((one) => one.status === "rejected" && one.reason.code)).toEqual(["invalid", "invalid", "invalid"]);
  });
});

describe("the signal of a call", () => {
  test("stops it like a cancel, with its reason", async () => {
    const { value, log } = await turnThat(async (turn) => {
      const stop = new AbortController();
      const begun = gate();
      const act = (call: LiveCall): Promise<never> => {
        begun.open();
        return waits(call);
      };
      const slow = turn.call("slow", {}, act, { signal: stop.signal });
      await begun.passed;
      stop.abort(new Error("two of three are enough"));
      return slow;
    });
    const reason = { kind: "policy", note: "two of three are enough" };
    expect(value).toMatchObject({ kind: "cancelled", reason });
    expect(log.filter(({ type }) => type === "call.cancel_requested")).toMatchObject([{ reason }]);
  });

  test("that is aborted already prevents the call from beginning", async () => {
    let begun = 0;
    const { value, log } = await turnThat((turn) =>
      turn.call("slow", {}, () => (begun += 1), { signal: AbortSignal.abort("not needed any more") }),
    );
    expect(value).toMatchObject({ kind: "cancelled", reason: { kind: "policy" }, begun: false });
    expect([begun, log.filter(({ type }) => type === "call.settled").length]).toEqual([0, 1]);
  });

  test("stops it while it waits for an approval: the question is withdrawn, and it never begins", async () => {
    const stop = new AbortController();
    const { belay } = await openTestBelay({
      go: async (turn) =>
        JSON.stringify(await turn.call("slow", {}, () => "done", { signal: stop.signal, approval: true })),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await expect.poll(() => session.questions()).toHaveLength(1);
    stop.abort(new Error("not needed"));
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(JSON.parse(await run.text())).toMatchObject({ kind: "cancelled", begun: false });
    expect(await session.questions()).toEqual([]);
  });

  test("has no listener once the call has ended", async () => {
    const stop = new AbortController();
    const { value } = await turnThat((turn) => turn.call("quick", {}, () => "done", { signal: stop.signal }));
    expect((value as CallResult).kind).toBe("completed");
    expect(listenersOf(stop.signal)).toBe(0);
  });

  test("of a call requested at the end of a turn stops that call", async () => {
    const stop = new AbortController();
    const { belay } = await openTestBelay(
      {},
      {
        agent: ({ spent }) => {
          if (spent.turns > 0) return "done";
          const execute = (call: LiveCall): Promise<never> => {
            stop.abort(new Error("enough"));
            return waits(call);
          };
          return { calls: [{ name: "slow", input: {}, execute, signal: stop.signal }] };
        },
      },
    );
    const session = await belay.createSession();
    expect(await session.prompt("go").outcome).toEqual({ kind: "completed" });
    const settled = (await logOf(session)).filter(({ type }) => type === "call.settled");
    expect(settled).toMatchObject([{ outcome: { kind: "cancelled", reason: { kind: "policy", note: "enough" } } }]);
  });

  test("that is not an AbortSignal is refused", async () => {
    const { value } = await turnThat((turn) =>
      turn.call("slow", {}, () => "done", { signal: {} as never }).catch((error: Error) => error.message),
    );
    expect(value).toBe("`signal` of a call is an AbortSignal.");
  });
});

/** Number of its `abort` listeners. */
function listenersOf(signal: AbortSignal): number {
  const { getEventListeners } = process.getBuiltinModule("node:events");
  return getEventListeners(signal, "abort").length;
}
