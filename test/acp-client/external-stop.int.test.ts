// The stop button on somebody else's program: asked, asked again, ended as a tree; within the grace, and told truly.
import { expect, test } from "vitest";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";
import { called, done, externalAgentFixture, facts, flaws, said } from "./external-agent-fixture.ts";

const CANCELLED = { kind: "cancelled", reason: { kind: "user" } };

test("an agent that stops when it is asked to is kept, with its memory", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("wait");
  await called(run, "Long work");
  await run.cancel();
  expect(await done(run)).toEqual({ text: "waiting", outcome: CANCELLED });
  const call = (await facts(house.session, "call.settled")).at(-1);
  expect(call?.outcome).toEqual(CANCELLED);
  expect((await done(house.session.prompt("recall"))).text).toBe("I remember: wait");
  expect(await facts(house.session, "process.requested")).toHaveLength(1);
  expect(await flaws(house.session)).toEqual([]);
});

test("a cancel of the whole session asks the agent to stop, and does not end the agent", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("wait");
  const queued = house.session.prompt("echo later");
  await said(run, "waiting");
  expect(await house.session.cancel()).toMatchObject({ kind: "stopping" });
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await queued.outcome).toEqual(CANCELLED);
  expect((await done(house.session.prompt("recall"))).text).toBe("I remember: wait");
  expect(await facts(house.session, "process.cancel_requested")).toEqual([]);
});

test("an agent that hears only the cancel of its request is asked that way, and kept", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("again");
  await said(run, "waiting");
  await run.cancel();
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await facts(house.session, "process.cancel_requested")).toEqual([]);
});

test("G12, G19: an agent deaf to everything is ended with its whole tree, and nothing is abandoned", async () => {
  await using house = await externalAgentFixture();
  const id = mark();
  await done(house.session.prompt("echo first"));
  const run = house.session.prompt(`deaf ${id}`);
  const queued = house.session.prompt("recall");
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel({ reason: "enough" });
  const { outcome } = await done(run);
  // Nothing of it was given up: all of it is gone, and somebody has looked.
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user", note: "enough" } });
  expect(marked(id)).toEqual([]);
  const [ended] = await facts(house.session, "process.settled");
  expect(ended).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "policy" } } });
  expect(ended?.escaped).toBeUndefined();
  expect(house.late).toEqual([]);
  const { text, outcome: next } = await done(queued);
  expect(next).toEqual({ kind: "completed" });
  expect(text).toContain("[foreign does not remember this session. It was given what was said so far, as text.]");
  expect(text).toContain("I remember: ");
  expect(await facts(house.session, "process.requested")).toHaveLength(2);
  expect(await flaws(house.session)).toEqual([]);
});

test("a call of an agent that cannot stop one alone is given up by name, and the run goes on", async () => {
  await using house = await externalAgentFixture({ belay: { graceMs: 100 } });
  const run = house.session.prompt("wait");
  expect(await house.belay.cancel(await called(run, "Long work"), { waitMs: 5_000 })).toMatchObject({
    kind: "stopping",
    ended: { kind: "settled", outcome: { kind: "cancelled", abandoned: ["Long work"] } },
  });
  expect((await run.row()).phase).toBe("live");
  await run.cancel();
  expect((await done(run)).outcome).toMatchObject({ kind: "cancelled" });
});

test("G19: the end of the session ends the agent with everything it has started", async () => {
  await using house = await externalAgentFixture();
  const id = mark();
  const run = house.session.prompt(`deaf ${id}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await house.session.close();
  expect((await done(run)).outcome).toMatchObject({ kind: "cancelled" });
  for (const process of await house.session.processes.list()) {
    await (await house.session.processes.get(process.id)).wait();
  }
  expect(marked(id)).toEqual([]);
});

test("a run that is cancelled while its agent is still being greeted leaves no process", async () => {
  await using house = await externalAgentFixture({ skills: { first: "silence" } });
  const run = house.session.prompt("echo hello");
  for await (const event of house.session.events()) if (event.type === "process.started") break;
  await run.cancel();
  expect(await run.outcome).toEqual(CANCELLED);
  expect(await house.session.processes.list()).toEqual([]);
  expect(await facts(house.session, "process.settled")).toHaveLength(1);
});
