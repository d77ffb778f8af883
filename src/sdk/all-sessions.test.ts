// All sessions at once: list running work, stop all of it, and tenants.
import { expect, test } from "vitest";
import { gate, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import type { Recorded } from "../core/model/event.ts";
import type { AllSessionsEvent } from "../ports/control.ts";

const waits = (turn: { readonly signal: AbortSignal }): Promise<never> => untilAborted(turn.signal);

test("G7: cancelAll() stops everything accepted before, queued or live, and nothing accepted after", async () => {
  const { belay, began } = await openTestBelay({ work: waits });
  const [one, other, idle] = await Promise.all([
    belay.createSession(),
    belay.createSession(),
    belay.createSession({ title: "idle" }),
  ]);
  const live = one.prompt("work");
  await began("work");
  const queued = one.prompt("later");
  const fresh = other.prompt("work");
  const stopped = belay.cancelAll({ reason: "enough" });
  const after = idle.prompt("next");
  const covered = await stopped;
  expect(covered.map(({ sessionId }) => sessionId).toSorted()).toEqual([one.id, other.id].toSorted());
  expect(await Promise.all([live, queued, fresh].map((run) => run.outcome))).toEqual(
    [1, 2, 3].map(() => ({ kind: "cancelled", reason: { kind: "user", note: "enough" } })),
  );
  expect(await after.outcome).toEqual({ kind: "completed" });
  expect(await belay.cancelAll()).toEqual([]);
});

test("G35: stopping and listing within a tenant does not affect other tenants", async () => {
  const { belay, began } = await openTestBelay({ mine: waits, theirs: waits });
  const mine = await belay.createSession({ tenant: "acme", title: "mine" });
  const theirs = await belay.createSession({ tenant: "other" });
  const house = await belay.createSession();
  expect(mine.id).toMatch(/^ses_acme\../);
  const runs = [mine.prompt("mine"), theirs.prompt("theirs")] as const;
  await Promise.all([began("mine"), began("theirs")]);
  expect((await belay.live({ tenant: "acme" })).map(({ sessionId }) => sessionId)).toEqual([mine.id]);
  expect((await belay.live()).length).toBe(2);
  expect((await belay.sessions({ tenant: "acme" })).map(({ id }) => id)).toEqual([mine.id]);
  expect((await belay.sessions()).map(({ id }) => id)).toEqual([mine.id, theirs.id, house.id]);
  await belay.cancelAll({ tenant: "acme" });
  expect((await runs[0].outcome).kind).toBe("cancelled");
  expect((await belay.live()).map(({ sessionId }) => sessionId)).toEqual([theirs.id]);
  await runs[1].cancel();
});

test("a key creates one session per tenant, and an id must belong to its tenant", async () => {
  const { belay } = await openTestBelay();
  const ids = await Promise.all(
    [{ tenant: "a" }, { tenant: "b" }, {}, { tenant: "a" }].map((within) =>
      belay.createSession({ key: "k", ...within }).then(({ id }) => id),
    ),
  );
  expect(new Set(ids).size).toBe(3);
  expect(ids[0]).toBe(ids[3]);
  const one = belay.prompt("hello", { key: "p", tenant: "a" });
  const same = belay.prompt("hello", { key: "p", tenant: "a" });
  expect((await one.accepted).runId).toBe((await same.accepted).runId);
  expect(one.sessionId).toMatch(/^ses_a\./);
  expect((await belay.createSession({ id: "ses_a.mine", tenant: "a" })).id).toBe("ses_a.mine");
  for (const id of ["ses_b.mine", "ses_mine", "ses_a.", "ses_A.x"])
    await expect(belay.createSession({ id, tenant: "a" })).rejects.toMatchObject({ code: "invalid" });
  for (const tenant of ["", "A", "a.b", "-a", "a".repeat(33), "a/b"])
    await expect(belay.createSession({ tenant })).rejects.toMatchObject({ code: "invalid" });
});

test("running work is listed with its worker and its start time", async () => {
  const called = gate();
  const { belay, began } = await openTestBelay({
    work: async (turn) => {
      await turn.call("build", null, ({ signal }) => {
        called.open();
        return untilAborted(signal);
      });
      return "over";
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("work");
  await began("work");
  await called.passed;
  const [said] = await belay.live();
  expect(said).toMatchObject({ sessionId: session.id, driver: (await belay.status()).worker, busy: true });
  const events: Recorded[] = [];
  for await (const event of run) {
    if ("seq" in event) events.push(event);
    if (event.type === "call.requested") break;
  }
  expect(said?.live?.since).toBe(events.find(({ type }) => type === "run.started")?.at);
  expect(said?.live?.calls[0]?.since).toBe(events.find(({ type }) => type === "call.requested")?.at);
  await run.cancel();
});

test("findSession() finds the session of a run, call, question or process, even of a run being accepted", async () => {
  const { belay, began } = await openTestBelay({ work: waits });
  const session = await belay.createSession();
  const run = session.prompt("work");
  expect(await belay.findSession(run.id)).toBe(session.id);
  await began("work");
  expect(await belay.findSession(`call_${run.id.slice(4)}.1`)).toBe(session.id);
  expect(await belay.findSession(`ask_${run.id.slice(4)}.1`)).toBe(session.id);
  expect(await belay.findSession(`proc_${session.id.slice(4)}.1`)).toBe(session.id);
  await run.cancel({ waitMs: 5_000 });
  expect(await belay.findSession(run.id)).toBe(session.id);
  for (const id of ["run_none", "call_none.1", "proc_none.1", "x", ""])
    expect(await belay.findSession(id)).toBeUndefined();
});

test("onRecorded receives the events of every session, and an error of it has no effect", async () => {
  const heard: string[] = [];
  const { belay, notices } = await openTestBelay(
    {},
    {
      onRecorded: (id, events) => {
        heard.push(...events.map(({ type }) => `${id} ${type}`));
        throw new Error("of no use");
      },
    },
  );
  const watch = belay.events();
  expect((await watch.next()).value).toMatchObject({ type: "here" });
  const session = await belay.createSession();
  await session.prompt("hello").outcome;
  const told: AllSessionsEvent[] = [];
  for await (const one of watch) {
    told.push(one);
    if (one.type === "event" && one.event.type === "run.settled") break;
  }
  expect(told.map((one) => (one.type === "event" ? `${one.sessionId} ${one.event.type}` : one.type))).toEqual(heard);
  expect(notices.some(({ type }) => type === "bug")).toBe(true);
  expect(await session.row()).toMatchObject({ id: session.id, phase: "open" });
  await expect(belay.session("ses_none").row()).rejects.toMatchObject({ code: "not_found" });
});

test("deltas have their offset in the text, including for a follower that joins in the middle", async () => {
  const said = gate();
  const go = gate();
  const { belay } = await openTestBelay({
    talk: async (turn) => {
      turn.emit("one ");
      turn.emit("hm", "reasoning");
      turn.emit("two ");
      turn.emit("hm", "reasoning");
      said.open();
      await go.passed;
      turn.emit("three");
      return undefined;
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("talk");
  const all = Array.fromAsync(run);
  await said.passed;
  const late = session.events({ deltas: "with" });
  for await (const event of late) if (event.type === "delta") break;
  go.open();
  const deltas = (await all).filter((event) => event.type === "delta");
  const spoken = deltas.filter(({ kind }) => kind === undefined);
  for (const [at, { from }] of spoken.entries()) {
    expect(from).toBe(spoken.slice(0, at).reduce((sum, { text }) => sum + text.length, 0));
  }
  expect(spoken.map(({ text }) => text).join("")).toBe("one two three");
  expect(deltas.filter(({ kind }) => kind === "reasoning").map(({ from }) => from)).toEqual([0, 2]);
});
