// The processes that an external agent starts belong to their run: its stop ends them, whatever the agent does.
import { expect, test } from "vitest";
import { called, done, externalAgentFixture, facts, flaws, said } from "../acp-client/external-agent-fixture.ts";
import { logOf } from "../fixtures/belay.ts";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";

const SHAPES = ["plain", "setsid", "double fork", "deaf to SIGTERM", "env -i"] as const;

test.each(SHAPES)("G19: a cancel ends the commands of an agent that leaves them running: %s", async (shape) => {
  await using fixture = await externalAgentFixture();
  const id = mark();
  const run = fixture.session.prompt(`leak ${id} ${shape}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel();
  const { text, outcome } = await done(run);
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  expect(marked(id)).toEqual([]);
  expect(text).toContain(`[Ended with the cancel: `);
  expect(text).toContain(`sleep ${id}`);
  // The agent itself is kept, with its memory.
  expect((await done(fixture.session.prompt("recall"))).text).toContain("I remember: leak");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(1);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("G9: a cancel of a run leaves earlier processes of the agent; a cancel of the session ends them", async () => {
  await using fixture = await externalAgentFixture();
  const [kept, ended] = [mark(), mark()];
  await done(fixture.session.prompt(`leave ${kept} setsid`));
  await markedAtLeast(kept, 2);
  const [left] = (await fixture.session.processes.list()).slice(1);
  expect(left).toMatchObject({ phase: "running", owner: "ses_foreign", title: expect.stringContaining(kept) });
  const run = fixture.session.prompt(`leak ${ended} double fork`);
  await said(run, "up");
  await markedAtLeast(ended, 2);
  await run.cancel();
  await run.outcome;
  expect(marked(ended)).toEqual([]);
  expect(marked(kept)).toHaveLength(2);
  expect((await fixture.session.explain()).processes).toHaveLength(2);
  const receipt = await fixture.session.cancel();
  expect(receipt).toMatchObject({ kind: "stopping", processes: [{ processId: left?.id }] });
  const result = await (await fixture.session.processes.get(left?.id ?? "")).wait();
  expect(result).toMatchObject({ outcome: { kind: "cancelled" } });
  expect(result?.output?.tail).toContain(`ended: sleep ${kept}`);
  expect(marked(kept)).toEqual([]);
  expect((await done(fixture.session.prompt("recall"))).text).toContain("I remember: leave");
  expect(await flaws(fixture.session)).toEqual([]);
});

test("G19: processes left running by a run end with the session, and by their own id", async () => {
  await using fixture = await externalAgentFixture();
  const [first, second] = [mark(), mark()];
  await done(fixture.session.prompt(`leave ${first} env -i`));
  const [one] = (await fixture.session.processes.list()).slice(1);
  await (await fixture.session.processes.get(one?.id ?? "")).cancel();
  await (await fixture.session.processes.get(one?.id ?? "")).wait();
  expect(marked(first)).toEqual([]);
  await done(fixture.session.prompt(`leave ${second} env -i`));
  await fixture.session.close();
  for (const { id } of await fixture.session.processes.list()) await (await fixture.session.processes.get(id)).wait();
  expect(marked(second)).toEqual([]);
});

test("an agent that does not answer after its commands were ended is restarted, and that is reported", async () => {
  await using fixture = await externalAgentFixture();
  const id = mark();
  const run = fixture.session.prompt(`broken ${id}`);
  await said(run, "up");
  await markedAtLeast(id, 2);
  await run.cancel();
  await run.outcome;
  expect(marked(id)).toEqual([]);
  const { text } = await done(fixture.session.prompt("echo again"));
  expect(text).toContain("[foreign did not answer after its commands were ended: it was started again.]");
  expect(text).toContain("again indeed");
});

test.each(["pending", "no status"])(
  "a call that stays announced (%s) is recorded when it is announced",
  async (how) => {
    await using fixture = await externalAgentFixture();
    const id = how === "pending" ? mark() : `8${mark()}`;
    const run = fixture.session.prompt(`announce ${id}`);
    await called(run, "Run it");
    await markedAtLeast(id, 2);
    await run.cancel();
    expect((await done(run)).outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    const call = (await facts(fixture.session, "call.settled")).at(-1);
    expect(call).toMatchObject({ outcome: { kind: "cancelled" } });
    expect(call?.begun).toBeUndefined();
    expect(marked(id)).toEqual([]);
  },
);

test("G9: one call is stopped by ending its processes, and its run continues", async () => {
  await using fixture = await externalAgentFixture();
  const id = mark();
  const run = fixture.session.prompt(`command ${id}`);
  const call = await called(run, "Run it");
  await markedAtLeast(id, 2);
  const receipt = await fixture.belay.cancel(call, { waitMs: 5_000 });
  expect(receipt).toMatchObject({ kind: "stopping", ended: { outcome: { kind: "cancelled" } } });
  expect(marked(id)).toEqual([]);
  expect(await done(run)).toEqual({ text: "went on without it", outcome: { kind: "completed" } });
});

test("G15: neither of two concurrent commands is ended alone, and the receipt names what was not stopped", async () => {
  await using fixture = await externalAgentFixture({ belay: { graceMs: 1_500 } });
  const id = mark();
  const run = fixture.session.prompt(`commands ${id}`);
  const call = await called(run, "m2");
  await said(run, "up");
  await markedAtLeast(id, 4);
  expect(await fixture.belay.cancel(call, { waitMs: 5_000 })).toMatchObject({
    ended: { outcome: { kind: "cancelled", abandoned: ["m2"] } },
  });
  expect(marked(id)).toHaveLength(4);
  await run.cancel();
  await run.outcome;
  expect(marked(id)).toEqual([]);
});

test("G17: text and calls keep the agent's order, live and in the log", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("order");
  let live = "";
  for await (const event of run) {
    if (event.type === "delta") live += event.text;
    if (event.type === "call.requested" && event.name !== "session/new") live += `<${event.name}>`;
  }
  const wanted = Array.from({ length: 10 }, (_, index) => `<call ${index + 1}>text ${index + 1}. `).join("");
  expect(live).toBe(`${wanted}end`);
  const log = (await logOf(fixture.session)).flatMap((event) => {
    if (event.type === "turn.extended") return [event.text];
    return event.type === "call.requested" && event.name !== "session/new" ? [`<${event.name}>`] : [];
  });
  // The last part is recorded with the end of the turn.
  expect(`${log.join("")}text 10. `).toBe(wanted);
  expect((await facts(fixture.session, "turn.settled")).at(-1)?.text).toBe(`${wanted.replaceAll(/<[^>]*>/g, "")}end`);
});

test("a prompt after a stop is not sent to an agent that is being ended", async () => {
  await using fixture = await externalAgentFixture({ belay: { graceMs: 400 } });
  await done(fixture.session.prompt("echo first"));
  for (const _ of Array(5)) {
    const run = fixture.session.prompt("edge");
    const next = fixture.session.prompt("echo next");
    await said(run, "waiting");
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    const { text, outcome } = await done(next);
    expect(outcome).toEqual({ kind: "completed" });
    expect(text).toContain("next indeed");
  }
});
