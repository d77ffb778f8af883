// A foreign agent under Belay: a real program, over real pipes. What it says, does and asks.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asked, called, done, externalAgentFixture, facts, flaws, said } from "./external-agent-fixture.ts";

test("a foreign agent answers: its words are the run's, its thoughts are not kept", async () => {
  await using house = await externalAgentFixture();
  const { text, outcome } = await done(house.session.prompt("echo hello"));
  expect(outcome).toEqual({ kind: "completed" });
  expect(text).toBe("hello indeed");
  const [process] = await house.session.processes.list();
  expect(process).toMatchObject({ owner: "ses_foreign", phase: "running", feedback: "silent" });
  expect(await flaws(house.session)).toEqual([]);
});

test("one process and one session of its own serve all runs of a session, in their order", async () => {
  await using house = await externalAgentFixture();
  const runs = ["echo one", "echo two", "recall"].map((text) => house.session.prompt(text));
  const ends = await Promise.all(runs.map(done));
  expect(ends.map(({ text }) => text)).toEqual(["one indeed", "two indeed", "I remember: echo one | echo two"]);
  expect(await facts(house.session, "process.requested")).toHaveLength(1);
});

test("its calls are calls of Belay: with their input, result, changes and failures", async () => {
  await using house = await externalAgentFixture();
  await done(house.session.prompt("tools"));
  const requested = await facts(house.session, "call.requested");
  const settled = await facts(house.session, "call.settled");
  expect(requested.map(({ name, input }) => [name, input])).toEqual([
    ["session/new", { agent: "foreign", cwd: house.dir }],
    ["List files", { command: "ls" }],
    ["Edit x", { kind: "edit" }],
    ["Break", {}],
  ]);
  const [, list, edit, broken] = requested.map(({ callId }) => settled.find((one) => one.callId === callId));
  expect(list).toMatchObject({ outcome: { kind: "completed" }, result: "a\nb" });
  const diffs = [{ path: "/tmp/x", before: "old", after: "new" }];
  expect(edit).toMatchObject({ outcome: { kind: "completed" }, result: { diffs }, changes: ["/tmp/x"] });
  expect(broken).toMatchObject({ outcome: { kind: "failed", message: "The agent says that it failed." } });
  expect(await flaws(house.session)).toEqual([]);
});

test("leave that it asks for is an approval of exactly that call: allowed, denied, and remembered", async () => {
  await using house = await externalAgentFixture();
  const first = house.session.prompt("ask");
  const question = await asked(house.session);
  expect(question.about).toMatchObject({ kind: "approval", name: "Remove x", input: { command: "rm x" } });
  await house.belay.questions.deny(question.id, { note: "keep it" });
  expect((await done(first)).text).toBe("answer: no");
  const second = house.session.prompt("ask");
  await house.belay.questions.allow((await asked(house.session)).id, { remember: "session" });
  expect((await done(second)).text).toBe("answer: yes");
  // Belay remembers it, so the agent gets its yes and nobody is asked.
  expect((await done(house.session.prompt("ask"))).text).toBe("answer: yes");
  expect(await facts(house.session, "question.asked")).toHaveLength(2);
  expect(await flaws(house.session)).toEqual([]);
});

test("a call that has begun and asks for more leave puts a question with the agent's own words", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("twice");
  await house.belay.questions.allow((await asked(house.session)).id);
  const question = await asked(house.session);
  const options = ["Allow", "Always allow", "Reject"];
  expect(question.about).toMatchObject({ kind: "question", text: "Deploy?", options, only: true });
  await house.belay.questions.answer(question.id, "Always allow");
  expect((await done(run)).text).toBe("answer: always");
});

test("a question that the agent takes back is answered at once, and nobody is asked any more", async () => {
  await using house = await externalAgentFixture();
  const file = join(house.dir, "go");
  const run = house.session.prompt(`withdraw ${file}`);
  await asked(house.session);
  mkdirSync(file);
  expect(await done(run)).toEqual({ text: "answer: cancelled", outcome: { kind: "completed" } });
  const [ended] = await facts(house.session, "question.settled");
  expect(ended?.ending).toMatchObject({ kind: "withdrawn" });
  expect(await house.session.questions()).toEqual([]);
  expect(await flaws(house.session)).toEqual([]);
});

test("a cancel answers an open question of the agent at once, and nothing was allowed", async () => {
  await using house = await externalAgentFixture();
  const run = house.session.prompt("ask");
  await asked(house.session);
  await run.cancel();
  const { text, outcome } = await done(run);
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  expect(text).toBe("answer: cancelled");
  expect((await done(house.session.prompt("echo next"))).text).toBe("next indeed");
  expect(await facts(house.session, "process.requested")).toHaveLength(1);
  expect(await flaws(house.session)).toEqual([]);
});

test("one call of an agent that can do that is stopped alone, and its run goes on", async () => {
  await using house = await externalAgentFixture({ skills: { cancelsCalls: true } });
  const run = house.session.prompt("one");
  const call = await called(run, "One of many");
  expect(await house.belay.cancel(call, { waitMs: 5_000 })).toMatchObject({ kind: "stopping", first: true });
  expect(await done(run)).toEqual({ text: "went on without it", outcome: { kind: "completed" } });
  const ended = (await facts(house.session, "call.settled")).at(-1);
  expect(ended?.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  // The reminder that Belay has for the model is told with the next prompt.
  expect((await done(house.session.prompt("recall"))).text).toContain("one");
  const { text } = await done(house.session.prompt("recall"));
  expect(text).toContain("The call of One of many was stopped by the user.");
});

test("what people say meanwhile is handed to an agent that can take it in", async () => {
  await using house = await externalAgentFixture({ skills: { steers: true } });
  const run = house.session.prompt("steered");
  await said(run, "listening");
  const steer = house.session.prompt("turn left", { delivery: "steer" });
  expect((await done(run)).text).toBe("listening heard: turn left");
  expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
});

test("what an agent says it could not take in is said once more, when its prompt has ended", async () => {
  await using house = await externalAgentFixture({ skills: { steers: "refuses" } });
  const run = house.session.prompt("steered");
  await said(run, "listening");
  house.session.prompt("echo once more", { delivery: "steer" });
  expect((await done(run)).text).toBe("listening heard: echo once more\n\nonce more indeed");
});

test("what a client brought along is handed on as far as the agent can take it, and the rest is told", async () => {
  const server = (name: string) => ({ name, command: "x", args: [], env: [] });
  const remote = { type: "http", name: "far", url: "http://127.0.0.1:1/", headers: [] };
  const sessions = () => ({ mcpServers: [server("near"), remote], additionalDirectories: ["/srv"] });
  {
    await using house = await externalAgentFixture({ agent: { sessions } });
    const { text } = await done(house.session.prompt("luggage"));
    expect(text).toBe('[foreign cannot take these MCP servers: far.]\n\n{"servers":["near"],"further":[]}');
  }
  await using house = await externalAgentFixture({ agent: { sessions }, skills: { takes: "everything" } });
  const { text } = await done(house.session.prompt("luggage"));
  expect(JSON.parse(text)).toEqual({ servers: ["near", "far"], further: ["/srv"] });
});

test("to an agent that cannot, it is said when its prompt has ended, in the same run", async () => {
  await using house = await externalAgentFixture();
  const file = join(house.dir, "go");
  const run = house.session.prompt(`finish ${file}`);
  await said(run, "waiting for a file");
  const steer = house.session.prompt("echo and then", { delivery: "steer" });
  await steer.accepted;
  mkdirSync(file);
  expect((await done(run)).text).toBe("waiting for a file there it is\n\nand then indeed");
  expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
  expect(await flaws(house.session)).toEqual([]);
});

test("G35: it has its user's keys and works in the session's directory, and has nothing of Belay's own", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "belay-foreign-")));
  const inherit = { ...process.env, SOME_API_KEY: "k-123", BELAY_TOKEN: "secret", LD_PRELOAD: "" };
  const agent = { inherit, env: { BELAY_TOKEN: "secret" } };
  mkdirSync(join(dir, "project"));
  const house = await externalAgentFixture({ dir, agent });
  try {
    const session = await house.belay.createSession({ cwd: join(dir, "project") });
    const { text } = await done(session.prompt("where"));
    expect(JSON.parse(text)).toEqual({ cwd: join(dir, "project"), key: "k-123" });
  } finally {
    await house[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("an answer that was cut at its length says so; one that ends as cancelled by itself has failed", async () => {
  await using house = await externalAgentFixture();
  expect((await done(house.session.prompt("length"))).outcome).toEqual({ kind: "completed", finish: "length" });
  const { text, outcome } = await done(house.session.prompt("quit"));
  expect(text).toBe("I stop");
  expect(outcome).toEqual({
    kind: "failed",
    code: "agent_stopped",
    message: "foreign says that it was cancelled, but nobody had cancelled it here.",
  });
});

test("its own error fails the run in its own words, and the next prompt finds it well", async () => {
  await using house = await externalAgentFixture();
  const { outcome } = await done(house.session.prompt("error"));
  expect(outcome).toEqual({ kind: "failed", code: "agent_failed", message: "foreign failed: The model is tired." });
  expect((await done(house.session.prompt("echo fine"))).text).toBe("fine indeed");
  expect(await facts(house.session, "process.requested")).toHaveLength(1);
});

test("a host's rule that forbids a call is kept: what the agent did unasked is the last thing it does", async () => {
  const beforeCall = ({ name }: { readonly name: string }) =>
    name === "Long work" ? ({ kind: "deny", note: "not here" } as const) : undefined;
  await using house = await externalAgentFixture({ belay: { hooks: { beforeCall } } });
  const { outcome } = await done(house.session.prompt("wait"));
  const note = "foreign did what a rule of the host forbids, unasked: Long work";
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "policy", note } });
});

test("what it prints besides its messages is passed over", async () => {
  await using house = await externalAgentFixture({ skills: { first: "garbage" } });
  expect((await done(house.session.prompt("echo hello"))).text).toBe("hello indeed");
});

test("a process that nobody works with is ended after a while, and started again when it is needed", async () => {
  await using house = await externalAgentFixture({ agent: { idleMs: 1 } });
  await done(house.session.prompt("echo one"));
  const [process] = await house.session.processes.list();
  if (process !== undefined) await (await house.session.processes.get(process.id)).wait();
  const { text } = await done(house.session.prompt("echo two"));
  expect(text).toContain("two indeed");
  expect(await facts(house.session, "process.requested")).toHaveLength(2);
});

test("G33: so many processes are kept that nobody works with; the one that waited longest is ended", async () => {
  await using house = await externalAgentFixture({ agent: { idleMax: 1 } });
  await done(house.session.prompt("echo one"));
  const other = await house.belay.createSession();
  const [first] = await house.session.processes.list();
  await done(other.prompt("echo two"));
  expect(await (await house.session.processes.get(first?.id ?? "")).wait()).toMatchObject({ exit: { code: 0 } });
  expect(await other.processes.list()).toHaveLength(1);
});
