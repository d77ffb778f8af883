// Stopping an external program: a request, a second request, and the end of its process tree, within the grace period
// and reported correctly.
import { expect, test } from "vitest";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";
import { called, done, externalAgentFixture, facts, flaws, said } from "./external-agent-fixture.ts";

const CANCELLED = { kind: "cancelled", reason: { kind: "user" } };

test("an agent that stops on request is kept, with its memory", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("wait");
  await called(run, "Long work");
  await run.cancel();
  expect(await done(run)).toEqual({ text: "waiting", outcome: CANCELLED });
  const call = (await facts(fixture.session, "call.settled")).at(-1);
  expect(call?.outcome).toEqual(CANCELLED);
  expect((await done(fixture.session.prompt("recall"))).text).toBe("I remember: wait");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(1);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("a cancel of the session stops the agent's work, and does not end the agent", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("wait");
  const queued = fixture.session.prompt("echo later");
  await said(run, "waiting");
  expect(await fixture.session.cancel()).toMatchObject({ kind: "stopping" });
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await queued.outcome).toEqual(CANCELLED);
  expect((await done(fixture.session.prompt("recall"))).text).toBe("I remember: wait");
  expect(await facts(fixture.session, "process.cancel_requested")).toEqual([]);
});

test("an agent that reacts only to $/cancel_request gets one, and is kept", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("again");
  await said(run, "waiting");
  await run.cancel();
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await facts(fixture.session, "process.cancel_requested")).toEqual([]);
});

test("G12, G19: an agent that ignores every request is ended with its tree, and nothing is abandoned", async () => {
  await using fixture = await externalAgentFixture();
  const id = mark();
  await done(fixture.session.prompt("echo first"));
  const run = fixture.session.prompt(`deaf ${id}`);
  const queued = fixture.session.prompt("recall");
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel({ reason: "enough" });
  const { outcome } = await done(run);
  // Nothing was abandoned: all of it is gone, and verified.
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user", note: "enough" } });
  expect(marked(id)).toEqual([]);
  const [ended] = await facts(fixture.session, "process.settled");
  expect(ended).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "policy" } } });
  expect(ended?.escaped).toBeUndefined();
  expect(fixture.late).toEqual([]);
  const { text, outcome: next } = await done(queued);
  expect(next).toEqual({ kind: "completed" });
  expect(text).toContain("[foreign does not remember this session. It was given the conversation so far, as text.]");
  expect(text).toContain("I remember: ");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(2);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("a call of an agent that cannot stop one alone is abandoned by name, and the run continues", async () => {
  await using fixture = await externalAgentFixture({ belay: { graceMs: 100 } });
  const run = fixture.session.prompt("wait");
  expect(await fixture.belay.cancel(await called(run, "Long work"), { waitMs: 5_000 })).toMatchObject({
    kind: "stopping",
    ended: { kind: "settled", outcome: { kind: "cancelled", abandoned: ["Long work"] } },
  });
  expect((await run.row()).phase).toBe("live");
  await run.cancel();
  expect((await done(run)).outcome).toMatchObject({ kind: "cancelled" });
});

test("G19: the end of the session ends the agent with all its processes", async () => {
  await using fixture = await externalAgentFixture();
  const id = mark();
  const run = fixture.session.prompt(`deaf ${id}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await fixture.session.close();
  expect((await done(run)).outcome).toMatchObject({ kind: "cancelled" });
  for (const process of await fixture.session.processes.list()) {
    await (await fixture.session.processes.get(process.id)).wait();
  }
  expect(marked(id)).toEqual([]);
});

test("a run cancelled while its agent is initialized leaves no process", async () => {
  await using fixture = await externalAgentFixture({ skills: { first: "silence" } });
  const run = fixture.session.prompt("echo hello");
  for await (const event of fixture.session.events()) if (event.type === "process.started") break;
  await run.cancel();
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await fixture.session.processes.list()).toEqual([]);
  expect(await facts(fixture.session, "process.settled")).toHaveLength(1);
});
