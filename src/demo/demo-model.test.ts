import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { providerPrompt } from "../agent/model/provider-prompt.ts";
import { feedbackItem } from "../core/model/process.ts";
import type { Message } from "../core/read/transcript.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { demoModel } from "./demo-model.ts";
import { DEMO_LABEL, planFor } from "./script.ts";
import { unansweredInput } from "./unanswered-input.ts";

const user = (...texts: readonly string[]): LanguageModelV4Message => ({
  role: "user",
  content: texts.map((text) => ({ type: "text", text })),
});

const plan = (...prompt: LanguageModelV4Prompt) => planFor(unansweredInput(prompt));
const callsFor = (text: string): readonly string[] => plan(user(text)).calls.map(({ name }) => name);

/** The answer of the model after a call with this result. */
function answerTo(result: object, ...more: readonly Message[]): string {
  const call = { callId: "call_1.1", name: "count_slowly", input: { to: 3 } } as const;
  const messages: readonly Message[] = [
    { role: "user", runId: "run_1", text: "count to 3" },
    { role: "assistant", runId: "run_1", turnId: "turn_1.1", text: "…", calls: [call], finish: { kind: "calls" } },
    // Any outcome, given by the test.
    { role: "tool", runId: "run_1", results: [{ ...call, ...result } as never] },
    ...more,
  ];
  return planFor(unansweredInput(providerPrompt(messages))).text;
}

describe("a stream", () => {
  test("has one word per interval, with reasoning before and calls after", async () => {
    const clock = manualClock();
    const { stream } = await demoModel({ clock, pace: { wordMs: 10 } }).doStream({ prompt: [user("list")] });
    const parts: LanguageModelV4StreamPart[] = [];
    const read = (async () => {
      for await (const part of stream) parts.push(part);
    })();
    await clock.advance(10);
    expect(parts.map(({ type }) => type)).toEqual(["stream-start", "reasoning-start", "reasoning-delta"]);
    await clock.advance(10_000);
    await read;
    const text = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []));
    expect(text.length).toBeGreaterThan(2);
    expect(text.join("")).toMatch(/^\(demo\) I call list_files\.\n$/);
    expect(parts.slice(-2)).toMatchObject([
      { type: "tool-call", toolCallId: "demo_1", toolName: "list_files", input: "{}" },
      { type: "finish", finishReason: { unified: "tool-calls" } },
    ]);
    expect(clock.pending).toEqual([]);
  });

  test.each(["abort", "cancel"] as const)("ends in the tick of an %s, and leaves no timer behind", async (how) => {
    const clock = manualClock();
    const controller = new AbortController();
    const reason = new Error("stop");
    const { stream } = await demoModel({ clock }).doStream({
      prompt: [user("hello")],
      abortSignal: controller.signal,
    });
    const reader = stream.getReader();
    while ((await reader.read()).value?.type !== "text-start");
    const next = reader.read();
    await clock.advance(1);
    expect(clock.pending.length).toBe(1);
    if (how === "abort") controller.abort(reason);
    const cancelled = how === "cancel" ? reader.cancel(reason) : undefined;
    expect(clock.pending).toEqual([]);
    await cancelled;
    if (how === "abort") await expect(next).rejects.toBe(reason);
    else expect(await next).toEqual({ done: true, value: undefined });
  });

  test("that was aborted before its start sends no text", async () => {
    const abortSignal = AbortSignal.abort(new Error("stop"));
    const { stream } = await demoModel({ clock: manualClock() }).doStream({ prompt: [user("hello")], abortSignal });
    await expect(stream.getReader().read()).rejects.toThrow("stop");
  });
});

describe("keywords", () => {
  test.each([
    ["list the files", ["list_files"]],
    ["Read it", ["read_file"]],
    ["write something", ["write_file"]],
    ["slow", ["count_slowly"]],
    ["count slowly to 5", ["count_slowly"]],
    ["spawn", ["run_command"]],
    ["go to sleep", ["run_command"]],
    ["build it", ["start_build"]],
    ["ask me", ["ask_colour"]],
    ["be stubborn", ["stubborn"]],
    ["spawn and list, and count to 3 and count to 4", ["run_command", "list_files", "count_slowly", "count_slowly"]],
    ["everything", ["list_files", "count_slowly", "run_command", "write_file", "ask_colour"]],
    ["good morning", []],
    ["a breadlist for the accountant", []],
  ])("%s", (text, names) => {
    expect(callsFor(text)).toEqual(names);
  });

  test("names and numbers in the prompt are used as arguments", () => {
    expect(plan(user("read plan.md, write a.txt and count to 12")).calls.map(({ input }) => input)).toMatchObject([
      { name: "plan.md" },
      { name: "a.txt" },
      { to: 12 },
    ]);
  });

  test("any other prompt is answered with a list of keywords, and with the label of a demo", () => {
    const { text } = plan(user("good morning"));
    expect(text.startsWith(DEMO_LABEL)).toBe(true);
    for (const word of ["list", "write", "count", "spawn", "build", "ask", "stubborn", "everything"])
      expect(text).toContain(word);
  });

  test("call ids are unique in the session", () => {
    const call = { type: "tool-call", toolCallId: "demo_1", toolName: "list_files", input: {} } as const;
    expect(unansweredInput([user("list"), { role: "assistant", content: [call] }, user("list")]).callsBefore).toBe(1);
  });
});

describe("the answer to results and notes", () => {
  const cancelled = { kind: "cancelled", reason: { kind: "user", by: "alice", note: "too slow" } } as const;
  const reminder = { kind: "reminder", text: "The call of count_slowly was stopped by alice." } as const;

  test.each([
    [{ outcome: { kind: "completed" }, result: { counted: 3 } }, 'count_slowly is done: {"counted":3}.'],
    [
      { outcome: cancelled, result: { counted: 1 }, changes: ["a.txt", "b.txt"] },
      'stopped by alice: too slow. All I have of it: {"counted":1}. It had changed a.txt and b.txt.',
    ],
    [{ outcome: { ...cancelled, abandoned: ["count_slowly"] } }, "It ignored the stop, and may still be running."],
    [
      { outcome: { kind: "failed", code: "denied", message: "Not carried out: denied by bob: not today" } },
      "count_slowly was not carried out: denied by bob: not today.",
    ],
    [{ outcome: { kind: "failed", code: "error", message: "no disk" } }, "count_slowly did not work: no disk."],
    [{ outcome: { kind: "lost" } }, "LOST"],
  ])("%j", (result, text) => {
    expect(answerTo(result)).toContain(text);
  });

  test("acknowledges reminders and added texts, and carries the latter out", () => {
    const result = { outcome: cancelled };
    const note: Message = { role: "note", runId: "run_1", item: reminder };
    const steer: Message = { role: "user", runId: "run_1", text: "list the files" };
    expect(answerTo(result, note, steer)).toMatch(
      /reminded not to repeat.*You added “list the files”.*I call list_files\./,
    );
  });

  test("reports a background process that has ended, without a list of keywords", () => {
    const item = feedbackItem(
      { phase: "running", id: "proc_1.1", owner: "ses_1", feedback: "wake", title: "make (all)" },
      {
        ...{ processId: "proc_1.1", exit: { code: 2 }, durationMs: 1_500 },
        output: { bytes: 9, stdoutBytes: 9, stderrBytes: 0, tail: "so\nand so\n" },
      },
      { kind: "completed" },
    );
    const woken = providerPrompt([
      { role: "user", runId: "run_1", text: "Something has ended." },
      { role: "note", runId: "run_1", item },
    ]);
    expect(planFor(unansweredInput(woken)).text).toBe(
      "(demo) Background report: proc_1.1 ended by itself with exit code 2 after 1.5 s. Its last line: and so.",
    );
    const odd = providerPrompt([
      { role: "user", runId: "run_1", text: "Something has ended." },
      { role: "note", runId: "run_1", item: { kind: "result", text: "The mail was sent." } },
    ]);
    expect(planFor(unansweredInput(odd)).text).toBe("(demo) I was told: The mail was sent.");
  });

  test("ignores a withdrawn text, and carries out the others", () => {
    const note = "<note>The request before, which you had not begun to answer, was stopped by the user.</note>";
    expect(plan(user("spawn", note, "list")).calls).toEqual([{ name: "list_files", input: {} }]);
    expect(plan(user("list", "spawn", note)).calls).toEqual([{ name: "list_files", input: {} }]);
  });

  test("mentions that its last answer was stopped, and does not carry it out again", () => {
    const messages: readonly Message[] = [
      { role: "user", runId: "run_1", text: "count" },
      {
        ...{ role: "assistant", runId: "run_1", turnId: "turn_1.1", text: "" },
        calls: [{ callId: "call_1.1", name: "count_slowly", input: {} }],
        finish: cancelled,
      },
      { role: "tool", runId: "run_1", results: [{ callId: "call_1.1", name: "count_slowly", outcome: cancelled }] },
      { role: "user", runId: "run_2", text: "list" },
    ];
    const { text, calls } = planFor(unansweredInput(providerPrompt(messages)));
    expect(text.trimEnd()).toBe(
      "(demo) I know: my last answer was stopped by alice: too slow. It is incomplete. I call list_files.",
    );
    expect(calls.length).toBe(1);
  });
});
