// What a foreign agent starts belongs to the run in which it was started: its stop ends it, whatever the agent does.
import { expect, test } from "vitest";
import { called, done, externalAgentFixture, facts, flaws, said } from "../acp-client/external-agent-fixture.ts";
import { logOf } from "../fixtures/belay.ts";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";

const SHAPES = ["plain", "setsid", "double fork", "deaf to SIGTERM", "env -i"] as const;

test.each(SHAPES)("G19: a cancel ends the commands of an agent that leaves them running: %s", async (shape) => {
  await using house = await externalAgentFixture();
  const id = mark();
  const run = house.session.prompt(`leak ${id} ${shape}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel();
  const { text, outcome } = await done(run);
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  expect(marked(id)).toEqual([]);
  expect(text).toContain(`[Ended with the cancel: `);
  expect(text).toContain(`sleep ${id}`);
  // The agent itself is kept, with its memory.
  expect((await done(house.session.prompt("recall"))).text).toContain("I remember: leak");
  expect(await facts(house.session, "process.requested")).toHaveLength(1);
  expect(await flaws(house.session)).toEqual([]);
});

test("G9: a cancel of one run leaves what the agent had running before it; one of the session ends that", async () => {
  await using house = await externalAgentFixture();
  const [kept, ended] = [mark(), mark()];
  await done(house.session.prompt(`leave ${kept} setsid`));
  await markedAtLeast(kept, 2);
  const [left] = (await house.session.processes.list()).slice(1);
  expect(left).toMatchObject({ phase: "running", owner: "ses_foreign", title: expect.stringContaining(kept) });
  const run = house.session.prompt(`leak ${ended} double fork`);
  await said(run, "up");
  await markedAtLeast(ended, 2);
  await run.cancel();
  await run.outcome;
  expect(marked(ended)).toEqual([]);
  expect(marked(kept)).toHaveLength(2);
  expect((await house.session.explain()).processes).toHaveLength(2);
  const receipt = await house.session.cancel();
  expect(receipt).toMatchObject({ kind: "stopping", processes: [{ processId: left?.id }] });
  const result = await (await house.session.processes.get(left?.id ?? "")).wait();
  expect(result).toMatchObject({ outcome: { kind: "cancelled" } });
  expect(result?.output?.tail).toContain(`ended: sleep ${kept}`);
  expect(marked(kept)).toEqual([]);
  expect((await done(house.session.prompt("recall"))).text).toContain("I remember: leave");
  expect(await flaws(house.session)).toEqual([]);
});

test("G19: what a run has left running ends with the session, and by its own id", async () => {
  await using house = await externalAgentFixture();
  const [first, second] = [mark(), mark()];
  await done(house.session.prompt(`leave ${first} env -i`));
  const [one] = (await house.session.processes.list()).slice(1);
  await (await house.session.processes.get(one?.id ?? "")).cancel();
  await (await house.session.processes.get(one?.id ?? "")).wait();
  expect(marked(first)).toEqual([]);
  await done(house.session.prompt(`leave ${second} env -i`));
  await house.session.close();
  for (const { id } of await house.session.processes.list()) await (await house.session.processes.get(id)).wait();
  expect(marked(second)).toEqual([]);
});

test("an agent that does not answer after its commands were ended is started again, and that is shown", async () => {
  await using house = await externalAgentFixture();
  const id = mark();
  const run = house.session.prompt(`broken ${id}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel();
  await run.outcome;
  expect(marked(id)).toEqual([]);
  const { text } = await done(house.session.prompt("echo again"));
  expect(text).toContain("[foreign did not answer after its commands were ended: it was started again.]");
  expect(text).toContain("again indeed");
});

test.each(["pending", "no status"])(
  "a call that stays announced (%s) is recorded when it is announced",
  async (how) => {
    await using house = await externalAgentFixture();
    const id = how === "pending" ? mark() : `8${mark()}`;
    const run = house.session.prompt(`announce ${id}`);
    await called(run, "Run it");
    await markedAtLeast(id, 2);
    await run.cancel();
    expect((await done(run)).outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    const call = (await facts(house.session, "call.settled")).at(-1);
    expect(call).toMatchObject({ outcome: { kind: "cancelled" } });
    expect(call?.begun).toBeUndefined();
    expect(marked(id)).toEqual([]);
  },
);

test("G9: one call is stopped by ending what it has started, and its run goes on", async () => {
  await using house = await externalAgentFixture();
  const id = mark();
  const run = house.session.prompt(`command ${id}`);
  const call = await called(run, "Run it");
  await markedAtLeast(id, 2);
  const receipt = await house.belay.cancel(call, { waitMs: 5_000 });
  expect(receipt).toMatchObject({ kind: "stopping", ended: { outcome: { kind: "cancelled" } } });
  expect(marked(id)).toEqual([]);
  expect(await done(run)).toEqual({ text: "went on without it", outcome: { kind: "completed" } });
});

test("G15: of two commands at once none is ended alone, and the receipt names what could not be stopped", async () => {
  await using house = await externalAgentFixture({ belay: { graceMs: 1_500 } });
  const id = mark();
  const run = house.session.prompt(`commands ${id}`);
  const call = await called(run, "m2");
  await said(run, "up");
  await markedAtLeast(id, 4);
  expect(await house.belay.cancel(call, { waitMs: 5_000 })).toMatchObject({
    ended: { outcome: { kind: "cancelled", abandoned: ["m2"] } },
  });
  expect(marked(id)).toHaveLength(4);
  await run.cancel();
  await run.outcome;
  expect(marked(id)).toEqual([]);
});

test("G17: text and calls keep the agent's order, live and in the log", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("order");
  let live = "";
  for await (const event of run) {
    if (event.type === "delta") live += event.text;
    if (event.type === "call.requested" && event.name !== "session/new") live += `<${event.name}>`;
  }
  const wanted = Array.from({ length: 10 }, (_, index) => `<call ${index + 1}>text ${index + 1}. `).join("");
  expect(live).toBe(`${wanted}end`);
  const log = (await logOf(house.session)).flatMap((event) => {
    if (event.type === "turn.extended") return [event.text];
    return event.type === "call.requested" && event.name !== "session/new" ? [`<${event.name}>`] : [];
  });
  // The last of it is recorded with the end of the turn.
  expect(`${log.join("")}text 10. `).toBe(wanted);
  expect((await facts(house.session, "turn.settled")).at(-1)?.text).toBe(`${wanted.replaceAll(/<[^>]*>/g, "")}end`);
});

test("a prompt after a stop is not sent to an agent that is being ended", async () => {
  await using house = await externalAgentFixture({ belay: { graceMs: 400 } });
  await done(house.session.prompt("echo first"));
  for (const _ of Array(5)) {
    const run = house.session.prompt("edge");
    const next = house.session.prompt("echo next");
    await said(run, "waiting");
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    const { text, outcome } = await done(next);
    expect(outcome).toEqual({ kind: "completed" });
    expect(text).toContain("next indeed");
  }
});
