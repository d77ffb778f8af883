// An agent of somebody else's that does not start, does not speak, or ends in the middle: told in words, and got over.
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
  await using house = await externalAgentFixture({ skills, agent });
  const { outcome } = await done(house.session.prompt("echo hello"));
  expect(outcome).toMatchObject({ kind: "failed" });
  expect(await house.session.processes.list()).toEqual([]);
  expect(await flaws(house.session)).toEqual([]);
  return "message" in outcome ? String(outcome.message) : "";
}

test("a program that is not there is named", async () => {
  expect(await failure({}, ["no-such-agent-anywhere"])).toContain("no-such-agent-anywhere");
});

test("a program that ends at once is told of with its exit code and its last words", async () => {
  expect(await failure({ first: "exit" })).toBe(
    "foreign ended before it had answered initialize. It ended with exit code 3. " +
      "Its last words on stderr: no key is set",
  );
});

test("a program that does not speak the protocol is told of with what it said instead", async () => {
  const message = await failure({}, ["sh", "-c", "echo Hello, who is there; exit 1"]);
  expect(message).toContain("On stdout it said something that is no message: Hello, who is there");
});

test("a program that never answers is ended after a limit", async () => {
  await using house = await externalAgentFixture({ skills: { first: "silence" }, agent: { startMs: 50 } });
  const { outcome } = await done(house.session.prompt("echo hello"));
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_unusable" });
  expect(outcome).toMatchObject({ message: expect.stringContaining("did not answer initialize within 50 ms") });
  expect(await house.session.processes.list()).toEqual([]);
});

test("an agent of another version is refused", async () => {
  expect(await failure({ first: "version" })).toContain("speaks version 7 of the protocol, and version 1 is needed");
});

test("an agent that wants a login says how", async () => {
  const message = await failure({ first: "login" });
  expect(message).toContain("foreign wants you to log in first: Authentication required.");
  expect(message).toContain("It knows: With a key.");
});

test("a line without an end is not held: the agent is ended", async () => {
  expect(await failure({ first: "huge" })).toContain("ended before it had answered initialize");
});

test("G17: a crash in the middle fails the run in words, and says of its calls that nobody knows", async () => {
  await using house = await externalAgentFixture({ skills: { memory: dir, restores: "load" } });
  await done(house.session.prompt("echo first"));
  const { text, outcome } = await done(house.session.prompt("crash"));
  expect(text).toBe("so far so good");
  expect(outcome).toEqual({
    kind: "failed",
    code: "agent_ended",
    message:
      "foreign ended in the middle of the work. It ended with exit code 7. " +
      "Its last words on stderr: something is very wrong",
  });
  const call = (await facts(house.session, "call.settled")).at(-1);
  expect(call?.outcome).toMatchObject({
    kind: "failed",
    message: "foreign ended before it said what became of this. Whether it was done is not known.",
  });
  // It is started again, and takes its own session up: what it replays is not said a second time.
  expect((await done(house.session.prompt("recall"))).text).toBe("I remember: echo first | crash");
  expect(await flaws(house.session)).toEqual([]);
});

test.each(["load", "resume"] as const)(
  "its session is taken up again after a restart of Belay: %s",
  async (restores) => {
    const skills = { memory: dir, restores };
    const first = await externalAgentFixture({ dir, skills });
    await done(first.session.prompt("echo first"));
    await first[Symbol.asyncDispose]();
    const second = await externalAgentFixture({ dir, skills });
    expect((await done(second.session.prompt("recall"))).text).toBe("I remember: echo first");
    expect(await flaws(second.session)).toEqual([]);
    await second[Symbol.asyncDispose]();
  },
);

test("an agent that has lost its session is given what was said, and people are told", async () => {
  const skills = { memory: dir, restores: "load" } as const;
  const first = await externalAgentFixture({ dir, skills });
  await done(first.session.prompt("echo first"));
  await first[Symbol.asyncDispose]();
  const [made] = readdirSync(dir).filter((one) => one.startsWith("own-"));
  rmSync(join(dir, made ?? ""));
  const second = await externalAgentFixture({ dir, skills });
  await done(second.session.prompt("echo second"));
  const { text } = await done(second.session.prompt("recall"));
  expect(text).toContain("What was said in this session so far:");
  expect(text).toContain("USER: echo first");
  expect(text).toContain("YOU: first indeed");
  const [run] = (await facts(second.session, "turn.settled")).slice(1);
  expect(run?.text).toMatch(/^\[foreign does not remember this session/);
  await second[Symbol.asyncDispose]();
});
