// The process tools as a model uses them, in a real Belay and with real processes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { expect, onTestFinished, test } from "vitest";
import type { Recorded } from "../../../core/model/event.ts";
import { verifyAtRest } from "../../../core/read/verify.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import type { Session } from "../../../sdk/session.ts";
import { type ModelStep, type ScriptedModel, scriptedModel } from "../../../testing/scripted-model.ts";
import { modelAgent } from "../../loop/agent.ts";
import { processTools } from "./process-tools.ts";
import type { ProcessToolsOptions } from "./process-tools-options.ts";

interface Fixture {
  readonly belay: Belay;
  readonly session: Session;
  readonly model: ScriptedModel;
}

const NO_APPROVAL: ProcessToolsOptions = { approval: { shell: false, start_process: false } };

async function openFixture(scripts: readonly (readonly ModelStep[])[], options = NO_APPROVAL): Promise<Fixture> {
  const workspace = mkdtempSync(join(tmpdir(), "belay-tools-"));
  const model = scriptedModel(...scripts);
  const belay = await openBelay({
    agent: modelAgent({ model, tools: processTools(options) }),
    ...{ store: ":memory:", graceMs: 200 },
    processes: { workspace },
  });
  onTestFinished(async () => {
    await belay.close({ mode: "cancel" });
    rmSync(workspace, { recursive: true, force: true });
  });
  return { belay, session: await belay.createSession(), model };
}

const call = (name: string, input: object): ModelStep => ({ do: "call", name, input: JSON.stringify(input) });
const say = (text: string): readonly ModelStep[] => [{ do: "say", text }];

/** The first matching event of a session. */
async function first<T extends Recorded["type"]>(session: Session, type: T): Promise<Extract<Recorded, { type: T }>> {
  for await (const event of session.events()) {
    if (isOf(event, type)) return event;
  }
  return expect.unreachable();
}

const isOf = <T extends Recorded["type"]>(
  event: { readonly type: string },
  type: T,
): event is Extract<Recorded, { type: T }> => event.type === type;

/** All results and notes in a request. */
function textsOf(prompt: LanguageModelV4Prompt | undefined): string {
  const parts = (prompt ?? []).flatMap((message): readonly { readonly type: string }[] =>
    message.role === "tool" || message.role === "user" ? message.content : [],
  );
  return parts.map((part) => JSON.stringify(part).replaceAll("\\n", "\n")).join("\n");
}

async function logOf(session: Session): Promise<readonly Recorded[]> {
  const { asOf } = await session.explain();
  const events: Recorded[] = [];
  for await (const event of session.events()) {
    if (event.type !== "gap" && "seq" in event) events.push(event);
    if ("seq" in event && event.seq >= asOf) break;
  }
  return events;
}

test("shell: the result has the exit code and the output of both streams", async () => {
  const { session, model } = await openFixture([
    [call("shell", { command: "echo out; echo err >&2; exit 3" })],
    say("It failed."),
  ]);
  expect(await session.prompt("try it").text()).toBe("It failed.");
  const told = textsOf(model.requests[1]?.options.prompt);
  expect(told).toMatch(/Ended with exit code 3 after [\d.]+ m?s\.\nOutput, 8 bytes:\n(out\nerr|err\nout)\n/);
});

test("shell: a remembered approval covers the same command, and no other", async () => {
  const { belay, session } = await openFixture(
    [
      [call("shell", { command: "true" })],
      [call("shell", { command: "true" })],
      [call("shell", { command: "false" })],
      say("done"),
    ],
    {},
  );
  const run = session.prompt("go");
  const asked = await first(session, "question.asked");
  await belay.questions.allow(asked.questionId, { remember: "session" });
  await expect.poll(async () => (await session.questions())[0]?.about).toMatchObject({ input: { command: "false" } });
  const [second] = await session.questions();
  await belay.questions.deny(second?.id ?? "", { note: "no" });
  expect(await run.text()).toBe("done");
  const asks = (await logOf(session)).filter(({ type }) => type === "question.asked");
  expect(asks.length).toBe(2);
});

test("G19: shell stopped by one cancel: its tree is gone, and its output so far is its result", async () => {
  const tree = "trap '' TERM; (trap '' TERM; sleep 300) & echo half; sleep 300; sleep 300";
  const { belay, session, model } = await openFixture([[call("shell", { command: tree })], say("I see.")]);
  const run = session.prompt("go");
  const { processId } = await first(session, "process.started");
  const handle = await session.processes.get(processId);
  for await (const { text } of handle.follow()) if (text.includes("half")) break;
  const { owner } = handle.info ?? expect.unreachable();
  const receipt = await belay.cancel(owner, { reason: { kind: "user", by: "alice", note: "enough" } });
  expect(receipt).toMatchObject({ ended: { outcome: { kind: "cancelled" } } });
  expect(await session.processes.list()).toEqual([]);
  expect(await run.outcome).toEqual({ kind: "completed" });
  const told = textsOf(model.requests[1]?.options.prompt);
  expect(told).toContain("STOPPED by alice: enough. It did not fail, and it was not completed.");
  expect(told).toContain("What there was of its output:\nOutput, 5 bytes:\nhalf\n");
  const end = await handle.wait();
  expect(end).toMatchObject({ outcome: { kind: "cancelled" }, exit: { signal: "SIGKILL" } });
  expect(end?.escaped).toBeUndefined();
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G22: a long command continues in the background, and wakes the model once when it ends", async () => {
  const { session, model } = await openFixture(
    [[call("shell", { command: "read go < go.fifo; echo built" })], say("It is running."), say("It is built.")],
    { ...NO_APPROVAL, backgroundAfterMs: 1 },
  );
  await (await session.processes.start("mkfifo go.fifo", { feedback: "silent" })).wait();
  expect(await session.prompt("build").text()).toBe("It is running.");
  expect(textsOf(model.requests[1]?.options.prompt)).toMatch(/continues in the background as proc_\S+\.2\./);
  // There is no prompt: the end of the process starts the next run.
  await (await session.processes.start("echo go > go.fifo", { feedback: "silent" })).wait();
  await expect.poll(() => model.requests.length).toBe(3);
  await expect.poll(async () => (await session.explain()).live).toBeUndefined();
  const told = textsOf(model.requests[2]?.options.prompt);
  expect(told).toContain("ended by itself with exit code 0");
  expect(told.match(/ended by itself/g)?.length).toBe(1);
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("start, read and stop report the output, and the stop verifies that nothing is left", async () => {
  const processId = "proc_fixed.1";
  const { belay, model } = await openFixture([
    [call("start_process", { command: "echo up; exec sleep 300" })],
    [call("read_output", { processId })],
    [call("stop_process", { processId, reason: "seen enough" })],
    say("done"),
  ]);
  const session = await belay.createSession({ id: "ses_fixed" });
  expect(await session.prompt("serve").text()).toBe("done");
  const [, started, read, stopped] = model.requests.map(({ options }) => textsOf(options.prompt.slice(-1)));
  expect(started).toMatch(/proc_fixed\.1 runs in the background \(pid \d+, held by tier \w+\)/);
  expect(started).toContain("up");
  expect(read).toContain("Bytes 0 to 3 of 3, stdout and stderr together. More may come, from offset 3 on.");
  expect(stopped).toContain("proc_fixed.1: Nothing of it is left.\nSTOPPED by the agent: seen enough.");
  expect(await session.processes.list()).toEqual([]);
});

test("a missing program and a missing directory are reported as such", async () => {
  const { session, model } = await openFixture([
    [call("shell", { command: ["no-such-program"] }), call("shell", { command: "true", cwd: "no-such-place" })],
    say("I see."),
  ]);
  expect(await session.prompt("go").text()).toBe("I see.");
  const told = textsOf(model.requests[1]?.options.prompt);
  expect(told).toContain("no-such-program");
  expect(told).toContain("no-such-place");
  expect(told).not.toContain("    at ");
});
