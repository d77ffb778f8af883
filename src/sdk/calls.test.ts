// One call, cancelled in each of its states: the receipt, its result, the reminder, its sibling, the transcript.
import { describe, expect, expectTypeOf, test } from "vitest";
import { type Gate, gate, logOf, untilAborted } from "../../test/fixtures/belay.ts";
import { slots } from "../agent/loop/slots.ts";
import type { CallId } from "../core/model/ids.ts";
import type { Message } from "../core/read/transcript.ts";
import { type Finding, verifyAtRest } from "../core/read/verify.ts";
import type { Agent, CallRequest, CallResult } from "../ports/agent.ts";
import type { Hooks, Notice } from "../ports/hooks.ts";
import { type Belay, openBelay } from "./belay.ts";
import type { RunHandle } from "./run.ts";
import type { Session } from "./session.ts";

const alice = { kind: "user", by: "alice", note: "wrong file" } as const;
const stoppedBy = { kind: "cancelled", reason: alice } as const;

/** A run whose first turn makes two calls, and whose second turn receives their results. */
interface Scene {
  readonly belay: Belay;
  readonly session: Session;
  readonly run: RunHandle;
  readonly notices: Notice[];
  readonly target: CallId;
  readonly sibling: Gate;
  /** What the second turn received. */
  heard(): Promise<readonly Message[]>;
}

async function scene(target: Omit<CallRequest, "name" | "input">, hooks: Hooks = {}): Promise<Scene> {
  const notices: Notice[] = [];
  const sibling = gate();
  const heard = Promise.withResolvers<readonly Message[]>();
  const agent: Agent = async (turn) => {
    if (turn.spent.turns > 0) {
      heard.resolve(await turn.transcript());
      return "heard";
    }
    const calls: readonly CallRequest[] = [
      { ...target, name: "target", input: { path: "a" } },
      { name: "sibling", input: null, execute: () => sibling.passed.then(() => "sibling's result") },
    ];
    return { text: "working", finish: "calls", calls };
  };
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 50, hooks, onNotice: (one) => notices.push(one) });
  const session = await belay.createSession();
  const run = session.prompt("go");
  await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(2);
  const id = (await session.explain()).live?.calls[0]?.callId ?? "call_none.0";
  return { belay, session, run, notices, target: id, sibling, heard: () => heard.promise };
}

async function waitsFor({ session }: Scene, what: string | undefined): Promise<void> {
  await expect.poll(async () => (await session.explain()).live?.calls[0]?.waits).toBe(what);
}

/** The problems that the history checker finds in the whole log. */
const verifyLog = async (session: Session): Promise<readonly Finding[]> => verifyAtRest(await logOf(session));

/** Lets the sibling finish, and checks that the run continued normally. */
async function goesOn(one: Scene, result: object, reminders: number): Promise<void> {
  one.sibling.open();
  expect(await one.run.outcome).toEqual({ kind: "completed" });
  const heard = await one.heard();
  expect(heard.map(({ role }) => role)).toEqual(["user", "assistant", "tool", ...Array(reminders).fill("note")]);
  const results = heard[2]?.role === "tool" ? heard[2].results : [];
  expect(results).toMatchObject([
    { callId: one.target, name: "target", ...result },
    { name: "sibling", outcome: { kind: "completed" }, result: "sibling's result" },
  ]);
  const notes = heard.flatMap((message) => (message.role === "note" ? [message.item] : []));
  for (const note of notes) {
    expect(note).toMatchObject({ kind: "reminder", data: { callId: one.target } });
    expect(note.text).toContain("alice: wrong file");
  }
  expect(await verifyLog(one.session)).toEqual([]);
}

describe("G9, G13: a cancelled call does not end its run, and the model gets one reminder", () => {
  test("while it waits for an approval: it never starts, and the question is closed", async () => {
    const begun: string[] = [];
    const one = await scene({ approval: true, execute: () => void begun.push("target") });
    await waitsFor(one, "approval");
    const [question] = await one.session.questions();
    expect(await one.belay.cancel(one.target, { reason: alice })).toEqual({ kind: "withdrawn", tool: "target" });
    expect(await one.session.questions()).toEqual([]);
    expect(await one.belay.questions.allow(question?.id ?? "")).toEqual({
      kind: "settled",
      ending: { kind: "withdrawn", reason: alice },
    });
    expect(begun).toEqual([]);
    await goesOn(one, { outcome: stoppedBy, begun: false }, 1);
  });

  test("while it waits for a slot: it never starts, and the next call in line gets the slot", async () => {
    const places = slots(1);
    const giveBack = Promise.withResolvers<() => void>();
    places.take(giveBack.resolve);
    const begun: string[] = [];
    const one = await scene({ slots: places, execute: () => void begun.push("target") });
    await waitsFor(one, "slot");
    expect(await one.belay.cancel(one.target, { reason: alice })).toEqual({ kind: "withdrawn", tool: "target" });
    (await giveBack.promise)();
    const free = Promise.withResolvers<() => void>();
    places.take(free.resolve);
    expect(await free.promise).toBeTypeOf("function");
    expect(begun).toEqual([]);
    await goesOn(one, { outcome: stoppedBy, begun: false }, 1);
  });

  test("while a hook runs: it never starts, however long the hook takes", async () => {
    const begun: string[] = [];
    const hooks: Hooks = { beforeCall: ({ name }) => (name === "target" ? new Promise<void>(() => {}) : undefined) };
    const one = await scene({ execute: () => void begun.push("target") }, hooks);
    await waitsFor(one, "hook");
    expect(await one.belay.cancel(one.target, { reason: alice })).toEqual({ kind: "withdrawn", tool: "target" });
    // The same again, without a pause.
    expect((await one.belay.cancel(one.target, { reason: "again" })).kind).toMatch(/withdrawn|settled/);
    expect(begun).toEqual([]);
    await goesOn(one, { outcome: stoppedBy, begun: false }, 1);
  });

  test("while it runs: its partial result and its changed state are kept", async () => {
    const running = gate();
    const one = await scene({
      execute: ({ signal, partial, changed }) => {
        partial({ lines: 3 });
        changed("wrote a.txt");
        running.open();
        return untilAborted(signal);
      },
    });
    await running.passed;
    expect(await one.belay.cancel(one.target, { reason: alice })).toMatchObject({
      ended: { kind: "settled", outcome: stoppedBy },
    });
    await goesOn(one, { outcome: stoppedBy, result: { lines: 3 }, changes: ["wrote a.txt"] }, 1);
  });

  test("G15: finished in the same tick: its result counts, the receipt says so, and there is no reminder", {
    meta: { id: "G15/finished-call-stays-finished" },
  }, async () => {
    const end = Promise.withResolvers<string>();
    const running = gate();
    const one = await scene({
      execute: () => {
        running.open();
        return end.promise;
      },
    });
    await running.passed;
    end.resolve("real");
    expect(await one.belay.cancel(one.target, { reason: alice })).toMatchObject({
      kind: "stopping",
      ended: { kind: "settled", outcome: { kind: "completed" } },
    });
    await goesOn(one, { outcome: { kind: "completed" }, result: "real" }, 0);
  });

  test("G12: if it ignores the signal: it is abandoned and reported, and its late result is dropped and counted", {
    meta: { id: "G12/late-call-result-dropped" },
  }, async () => {
    const end = Promise.withResolvers<string>();
    const running = gate();
    const one = await scene({
      execute: () => {
        running.open();
        return end.promise;
      },
    });
    await running.passed;
    const abandoned = { ...stoppedBy, abandoned: ["target"] };
    expect(await one.belay.cancel(one.target, { reason: alice })).toMatchObject({
      ended: { kind: "settled", outcome: abandoned },
    });
    end.resolve("too late");
    await expect
      .poll(() => one.notices)
      .toContainEqual({ type: "late", runId: one.run.id, work: "target", outcome: "completed" });
    await goesOn(one, { outcome: abandoned }, 1);
  });

  test("after it has ended: the receipt has its outcome, and nothing changes", {
    meta: { id: "G10/cancel-after-call-ended" },
  }, async () => {
    const end = gate();
    const one = await scene({ execute: () => end.passed.then(() => "done") });
    end.open();
    await expect.poll(async () => (await one.session.explain()).live?.calls.length).toBe(1);
    expect(await one.belay.cancel(one.target, { reason: alice })).toEqual({
      tool: "target",
      kind: "settled",
      outcome: { kind: "completed" },
    });
    await goesOn(one, { outcome: { kind: "completed" }, result: "done" }, 0);
  });

  test("without a reminder, if the caller wants none; and a second cancel changes nothing", async () => {
    const one = await scene({ execute: ({ signal }) => untilAborted(signal) });
    const first = one.belay.cancel(one.target, { reason: alice, remind: false, waitMs: 0 });
    const second = one.belay.cancel(one.target, { reason: "another", waitMs: 0 });
    expect(await first).toMatchObject({ kind: "stopping", first: true, ended: { kind: "limit", waitMs: 0 } });
    expect(await second).toMatchObject({ kind: "stopping", first: false });
    await goesOn(one, { outcome: stoppedBy }, 0);
  });

  test("an uninterruptible call gets no signal, and its own end counts", async () => {
    const end = Promise.withResolvers<string>();
    const signal = Promise.withResolvers<AbortSignal>();
    const one = await scene({
      interruptible: false,
      execute: (call) => {
        signal.resolve(call.signal);
        return end.promise;
      },
    });
    const given = await signal.promise;
    const receipt = one.belay.cancel(one.target, { reason: alice });
    await expect.poll(async () => (await one.session.explain()).live?.calls[0]?.phase).toBe("stopping");
    expect(given.aborted).toBe(false);
    end.resolve("whole");
    expect(await receipt).toMatchObject({ ended: { kind: "settled", outcome: { kind: "completed" } } });
    await goesOn(one, { outcome: { kind: "completed" }, result: "whole" }, 0);
  });
});

describe("G9: a cancelled run cancels its calls and questions, while a call is", () => {
  const states: Readonly<Record<string, Omit<CallRequest, "name" | "input">>> = {
    "waiting for an approval": { approval: true, execute: () => "never" },
    running: { execute: ({ signal }) => untilAborted(signal) },
    deaf: { execute: () => new Promise(() => {}) },
  };
  for (const [state, target] of Object.entries(states)) {
    test(`${state}`, { meta: { id: "G9/cancelled-run-takes-calls" } }, async () => {
      const one = await scene(target);
      await waitsFor(one, state === "waiting for an approval" ? "approval" : undefined);
      await one.run.cancel({ reason: alice });
      const abandoned = state === "deaf" ? ["target", "sibling"] : ["sibling"];
      expect(await one.run.outcome).toMatchObject({ kind: "cancelled", reason: alice, abandoned });
      expect(await one.session.questions()).toEqual([]);
      expect((await one.session.transcript()).map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
      expect(await verifyLog(one.session)).toEqual([]);
    });
  }
});

test("G16: a call that fails during its stop returns to the turn what is recorded", async () => {
  // At every step between the failure of its hook and the record of its end.
  for (let steps = 0; steps < 30; steps += 1) {
    const hook = Promise.withResolvers<void>();
    const returned = Promise.withResolvers<CallResult>();
    const belay = await openBelay({
      store: ":memory:",
      hooks: { beforeCall: () => hook.promise },
      agent: async (turn) => returned.resolve(await turn.call("target", null, () => {})),
    });
    const session = await belay.createSession();
    session.prompt("go");
    const calls = async () => (await session.explain()).live?.calls ?? [];
    await expect.poll(async () => (await calls())[0]?.waits).toBe("hook");
    const [{ callId } = { callId: "" }] = await calls();
    hook.reject(new Error("the host's rule failed"));
    for (let step = 0; step < steps; step += 1) await undefined;
    void belay.cancel(callId);
    const { kind } = await returned.promise;
    const settled = (await logOf(session)).find((event) => event.type === "call.settled");
    expect({ steps, kind }).toEqual({ steps, kind: settled?.outcome.kind });
    await belay.close();
  }
});

test("a call has the types of its function: interfaces, and optional fields", async () => {
  interface Input {
    readonly path: string;
    readonly line?: number;
  }
  interface Read {
    readonly text: string;
    readonly code?: number | undefined;
  }
  const input: Input = { path: "a" };
  const results: unknown[] = [];
  const agent: Agent = async (turn) => {
    const read = await turn.call("read", input, async (): Promise<Read> => ({ text: "x", code: undefined }));
    if (read.kind === "completed") expectTypeOf(read.value).toEqualTypeOf<Read>();
    const wrote = await turn.call("write", input, (call) => call.partial(input));
    if (wrote.kind === "completed") expectTypeOf(wrote.value).toEqualTypeOf<undefined>();
    results.push(read, wrote);
    return "done";
  };
  const belay = await openBelay({ agent, store: ":memory:" });
  await belay.prompt("go").outcome;
  expect(results).toMatchObject([
    { kind: "completed", value: { text: "x" } },
    { kind: "completed", value: undefined },
  ]);
  await belay.close();
});
