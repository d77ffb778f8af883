// An external agent that does not start, does not speak the protocol, or ends during its work: reported clearly, and
// survived.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { done, externalAgentFixture, facts, flaws } from "./external-agent-fixture.ts";
import type { Skills } from "./external-program.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-foreign-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function failure(skills: Skills, command?: readonly [string, ...string[]]): Promise<string> {
  const agent = { startMs: 5_000, ...(command === undefined ? {} : { command }) };
  await using fixture = await externalAgentFixture({ skills, agent });
  const { outcome } = await done(fixture.session.prompt("echo hello"));
  expect(outcome).toMatchObject({ kind: "failed" });
  expect(await fixture.session.processes.list()).toEqual([]);
  expect(await flaws(fixture.session)).toEqual([]);
  return "message" in outcome ? String(outcome.message) : "";
}

test("a missing program is named", async () => {
  expect(await failure({}, ["no-such-agent-anywhere"])).toContain("no-such-agent-anywhere");
});

test("a program that ends at once is reported with its exit code and the end of its stderr", async () => {
  expect(await failure({ first: "exit" })).toBe(
    "foreign ended before it answered initialize. It ended with exit code 3. " + "The end of its stderr: no key is set",
  );
});

test("a program that does not speak the protocol is reported with its output", async () => {
  const message = await failure({}, ["sh", "-c", "echo Hello, who is there; exit 1"]);
  expect(message).toContain("It wrote a line to stdout that is not a message: Hello, who is there");
});

test("a program that never answers is ended after a timeout", async () => {
  await using fixture = await externalAgentFixture({ skills: { first: "silence" }, agent: { startMs: 50 } });
  const { outcome } = await done(fixture.session.prompt("echo hello"));
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_unusable" });
  expect(outcome).toMatchObject({ message: expect.stringContaining("did not answer initialize within 50 ms") });
  expect(await fixture.session.processes.list()).toEqual([]);
});

test("an agent of another version is refused", async () => {
  expect(await failure({ first: "version" })).toContain("speaks version 7 of the protocol, but version 1 is needed");
});

test("an agent that requires a login reports how", async () => {
  const message = await failure({ first: "login" });
  expect(message).toContain("foreign requires a login: Authentication required.");
  expect(message).toContain("It supports: With a key.");
});

test("an endless line is not buffered: the agent is ended", async () => {
  expect(await failure({ first: "huge" })).toContain("ended before it answered initialize");
});

test("G17: a crash during the work fails the run with a message, and its calls have an unknown outcome", async () => {
  await using fixture = await externalAgentFixture({ skills: { memory: dir, restores: "load" } });
  await done(fixture.session.prompt("echo first"));
  const { text, outcome } = await done(fixture.session.prompt("crash"));
  expect(text).toBe("so far so good");
  expect(outcome).toEqual({
    kind: "failed",
    code: "agent_ended",
    message:
      "foreign ended in the middle of the work. It ended with exit code 7. " +
      "The end of its stderr: something is very wrong",
  });
  const call = (await facts(fixture.session, "call.settled")).at(-1);
  expect(call?.outcome).toMatchObject({
    kind: "failed",
    message: "foreign ended before it reported the outcome of this call. Whether it was done is not known.",
  });
  // It is started again and restores its session: the replayed history is not repeated.
  expect((await done(fixture.session.prompt("recall"))).text).toBe("I remember: echo first | crash");
  expect(await flaws(fixture.session)).toEqual([]);
});

test.each(["load", "resume"] as const)("its session is restored after a restart of Belay: %s", async (restores) => {
  const skills = { memory: dir, restores };
  const first = await externalAgentFixture({ dir, skills });
  await done(first.session.prompt("echo first"));
  await first[Symbol.asyncDispose]();
  const second = await externalAgentFixture({ dir, skills });
  expect((await done(second.session.prompt("recall"))).text).toBe("I remember: echo first");
  expect(await flaws(second.session)).toEqual([]);
  await second[Symbol.asyncDispose]();
});

test("an agent that has lost its session gets the conversation as text, and this is reported", async () => {
  const skills = { memory: dir, restores: "load" } as const;
  const first = await externalAgentFixture({ dir, skills });
  await done(first.session.prompt("echo first"));
  await first[Symbol.asyncDispose]();
  const [made] = readdirSync(dir).filter((one) => one.startsWith("own-"));
  rmSync(join(dir, made ?? ""));
  const second = await externalAgentFixture({ dir, skills });
  await done(second.session.prompt("echo second"));
  const { text } = await done(second.session.prompt("recall"));
  expect(text).toContain("The conversation in this session so far:");
  expect(text).toContain("USER: echo first");
  expect(text).toContain("YOU: first indeed");
  const [run] = (await facts(second.session, "turn.settled")).slice(1);
  expect(run?.text).toMatch(/^\[foreign does not remember this session/);
  await second[Symbol.asyncDispose]();
});
