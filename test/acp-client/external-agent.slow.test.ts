// An external agent under Belay: a real program over real pipes. Its text, calls and requests.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asked, called, done, externalAgentFixture, facts, flaws, said } from "./external-agent-fixture.ts";

test("an external agent answers: its text is the run's text, its reasoning is not kept", async () => {
  await using fixture = await externalAgentFixture();
  const { text, outcome } = await done(fixture.session.prompt("echo hello"));
  expect(outcome).toEqual({ kind: "completed" });
  expect(text).toBe("hello indeed");
  const [process] = await fixture.session.processes.list();
  expect(process).toMatchObject({ owner: "ses_foreign", phase: "running", feedback: "silent" });
  expect(await flaws(fixture.session)).toEqual([]);
});

test("one process and one agent session serve all runs of a session, in order", async () => {
  await using fixture = await externalAgentFixture();
  const runs = ["echo one", "echo two", "recall"].map((text) => fixture.session.prompt(text));
  const ends = await Promise.all(runs.map(done));
  expect(ends.map(({ text }) => text)).toEqual(["one indeed", "two indeed", "I remember: echo one | echo two"]);
  expect(await facts(fixture.session, "process.requested")).toHaveLength(1);
});

test("its calls are calls of Belay, with their input, result, changes and failures", async () => {
  await using fixture = await externalAgentFixture();
  await done(fixture.session.prompt("tools"));
  const requested = await facts(fixture.session, "call.requested");
  const settled = await facts(fixture.session, "call.settled");
  expect(requested.map(({ name, input }) => [name, input])).toEqual([
    ["session/new", { agent: "foreign", cwd: fixture.dir }],
    ["List files", { command: "ls" }],
    ["Edit x", { kind: "edit" }],
    ["Break", {}],
  ]);
  const [, list, edit, broken] = requested.map(({ callId }) => settled.find((one) => one.callId === callId));
  expect(list).toMatchObject({ outcome: { kind: "completed" }, result: "a\nb" });
  const diffs = [{ path: "/tmp/x", before: "old", after: "new" }];
  expect(edit).toMatchObject({ outcome: { kind: "completed" }, result: { diffs }, changes: ["/tmp/x"] });
  expect(broken).toMatchObject({ outcome: { kind: "failed", message: "The agent reported that it failed." } });
  expect(await flaws(fixture.session)).toEqual([]);
});

test("a permission request is an approval of exactly that call: allowed, denied, and remembered", async () => {
  await using fixture = await externalAgentFixture();
  const first = fixture.session.prompt("ask");
  const question = await asked(fixture.session);
  expect(question.about).toMatchObject({ kind: "approval", name: "Remove x", input: { command: "rm x" } });
  await fixture.belay.questions.deny(question.id, { note: "keep it" });
  expect((await done(first)).text).toBe("answer: no");
  const second = fixture.session.prompt("ask");
  await fixture.belay.questions.allow((await asked(fixture.session)).id, { remember: "session" });
  expect((await done(second)).text).toBe("answer: yes");
  // Belay remembers it, so the agent gets its yes without a question.
  expect((await done(fixture.session.prompt("ask"))).text).toBe("answer: yes");
  expect(await facts(fixture.session, "question.asked")).toHaveLength(2);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("a second permission request of a running call becomes a question with the agent's own options", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("twice");
  await fixture.belay.questions.allow((await asked(fixture.session)).id);
  const question = await asked(fixture.session);
  const options = ["Allow", "Always allow", "Reject"];
  expect(question.about).toMatchObject({ kind: "question", text: "Deploy?", options, only: true });
  await fixture.belay.questions.answer(question.id, "Always allow");
  expect((await done(run)).text).toBe("answer: always");
});

test("a request that the agent cancels is answered at once, and the question is withdrawn", async () => {
  await using fixture = await externalAgentFixture();
  const file = join(fixture.dir, "go");
  const run = fixture.session.prompt(`withdraw ${file}`);
  await asked(fixture.session);
  mkdirSync(file);
  expect(await done(run)).toEqual({ text: "answer: cancelled", outcome: { kind: "completed" } });
  const [ended] = await facts(fixture.session, "question.settled");
  expect(ended?.ending).toMatchObject({ kind: "withdrawn" });
  expect(await fixture.session.questions()).toEqual([]);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("a cancel answers an open request of the agent at once, without permission", async () => {
  await using fixture = await externalAgentFixture();
  const run = fixture.session.prompt("ask");
  await asked(fixture.session);
  await run.cancel();
  const { text, outcome } = await done(run);
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  expect(text).toBe("answer: cancelled");
  expect((await done(fixture.session.prompt("echo next"))).text).toBe("next indeed");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(1);
  expect(await flaws(fixture.session)).toEqual([]);
});

test("one call of a capable agent is stopped alone, and its run continues", async () => {
  await using fixture = await externalAgentFixture({ skills: { cancelsCalls: true } });
  const run = fixture.session.prompt("one");
  const call = await called(run, "One of many");
  expect(await fixture.belay.cancel(call, { waitMs: 5_000 })).toMatchObject({ kind: "stopping", first: true });
  expect(await done(run)).toEqual({ text: "went on without it", outcome: { kind: "completed" } });
  const ended = (await facts(fixture.session, "call.settled")).at(-1);
  expect(ended?.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
  // Belay's reminder for the model is sent with the next prompt.
  expect((await done(fixture.session.prompt("recall"))).text).toContain("one");
  const { text } = await done(fixture.session.prompt("recall"));
  expect(text).toContain("The call of One of many was stopped by the user.");
});

test("messages during a run are delivered to an agent that accepts steering", async () => {
  await using fixture = await externalAgentFixture({ skills: { steers: true } });
  const run = fixture.session.prompt("steered");
  await said(run, "listening");
  const steer = fixture.session.prompt("turn left", { delivery: "steer" });
  expect((await done(run)).text).toBe("listening heard: turn left");
  expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
});

test("a message that the agent rejects is sent again when its prompt has ended", async () => {
  await using fixture = await externalAgentFixture({ skills: { steers: "refuses" } });
  const run = fixture.session.prompt("steered");
  await said(run, "listening");
  fixture.session.prompt("echo once more", { delivery: "steer" });
  expect((await done(run)).text).toBe("listening heard: echo once more\n\nonce more indeed");
});

test("a client's resources are passed on as far as the agent supports them, and the rest is reported", async () => {
  const server = (name: string) => ({ name, command: "x", args: [], env: [] });
  const remote = { type: "http", name: "far", url: "http://127.0.0.1:1/", headers: [] };
  const sessions = () => ({ mcpServers: [server("near"), remote], additionalDirectories: ["/srv"] });
  {
    await using fixture = await externalAgentFixture({ agent: { sessions } });
    const { text } = await done(fixture.session.prompt("luggage"));
    expect(text).toBe('[foreign cannot take these MCP servers: far.]\n\n{"servers":["near"],"further":[]}');
  }
  await using fixture = await externalAgentFixture({ agent: { sessions }, skills: { takes: "everything" } });
  const { text } = await done(fixture.session.prompt("luggage"));
  expect(JSON.parse(text)).toEqual({ servers: ["near", "far"], further: ["/srv"] });
});

test("messages for an agent without steering follow its prompt, in the same run", async () => {
  await using fixture = await externalAgentFixture();
  const file = join(fixture.dir, "go");
  const run = fixture.session.prompt(`finish ${file}`);
  await said(run, "waiting for a file");
  const steer = fixture.session.prompt("echo and then", { delivery: "steer" });
  await steer.accepted;
  mkdirSync(file);
  expect((await done(run)).text).toBe("waiting for a file there it is\n\nand then indeed");
  expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
  expect(await flaws(fixture.session)).toEqual([]);
});

test("G35: it has its user's environment and the session's directory, and no variables of Belay", async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "belay-foreign-")));
  const inherit = { ...process.env, SOME_API_KEY: "k-123", BELAY_TOKEN: "secret", LD_PRELOAD: "" };
  const agent = { inherit, env: { BELAY_TOKEN: "secret" } };
  mkdirSync(join(dir, "project"));
  const fixture = await externalAgentFixture({ dir, agent });
  try {
    const session = await fixture.belay.createSession({ cwd: join(dir, "project") });
    const { text } = await done(session.prompt("where"));
    expect(JSON.parse(text)).toEqual({ cwd: join(dir, "project"), key: "k-123" });
  } finally {
    await fixture[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("an answer cut at its length limit is marked; a cancel that Belay did not request is a failure", async () => {
  await using fixture = await externalAgentFixture();
  expect((await done(fixture.session.prompt("length"))).outcome).toEqual({ kind: "completed", finish: "length" });
  const { text, outcome } = await done(fixture.session.prompt("quit"));
  expect(text).toBe("I stop");
  expect(outcome).toEqual({
    kind: "failed",
    code: "agent_stopped",
    message: "foreign reported a cancel that Belay had not requested.",
  });
});

test("its own error fails the run with its message, and the next prompt works", async () => {
  await using fixture = await externalAgentFixture();
  const { outcome } = await done(fixture.session.prompt("error"));
  expect(outcome).toEqual({ kind: "failed", code: "agent_failed", message: "foreign failed: The model is tired." });
  expect((await done(fixture.session.prompt("echo fine"))).text).toBe("fine indeed");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(1);
});

test("a call that a host's rule forbids, made without a request, stops the run", async () => {
  const beforeCall = ({ name }: { readonly name: string }) =>
    name === "Long work" ? ({ kind: "deny", note: "not here" } as const) : undefined;
  await using fixture = await externalAgentFixture({ belay: { hooks: { beforeCall } } });
  const { outcome } = await done(fixture.session.prompt("wait"));
  const note = "foreign did without asking what a rule of the host forbids: Long work";
  expect(outcome).toEqual({ kind: "cancelled", reason: { kind: "policy", note } });
});

test("output that is not a message is skipped", async () => {
  await using fixture = await externalAgentFixture({ skills: { first: "garbage" } });
  expect((await done(fixture.session.prompt("echo hello"))).text).toBe("hello indeed");
});

test("an idle process is ended after a while, and started again when it is needed", async () => {
  await using fixture = await externalAgentFixture({ agent: { idleMs: 1 } });
  await done(fixture.session.prompt("echo one"));
  const [process] = await fixture.session.processes.list();
  if (process !== undefined) await (await fixture.session.processes.get(process.id)).wait();
  const { text } = await done(fixture.session.prompt("echo two"));
  expect(text).toContain("two indeed");
  expect(await facts(fixture.session, "process.requested")).toHaveLength(2);
});

test("G33: idle processes are limited; the longest idle one is ended", async () => {
  await using fixture = await externalAgentFixture({ agent: { idleMax: 1 } });
  await done(fixture.session.prompt("echo one"));
  const other = await fixture.belay.createSession();
  const [first] = await fixture.session.processes.list();
  await done(other.prompt("echo two"));
  expect(await (await fixture.session.processes.get(first?.id ?? "")).wait()).toMatchObject({ exit: { code: 0 } });
  expect(await other.processes.list()).toHaveLength(1);
});
