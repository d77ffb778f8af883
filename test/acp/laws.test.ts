// Tests of the checker: correct transcripts break no law, and each known mistake breaks its law.
import { describe, expect, test } from "vitest";
import { brokenLaws } from "./laws.ts";
import type { Fields, Message, Said, Version } from "./transcript.ts";

const agent = (message: Omit<Message, "jsonrpc">): Said => ({ by: "agent", message: { jsonrpc: "2.0", ...message } });
const client = (message: Omit<Message, "jsonrpc">): Said => ({ by: "client", message: { jsonrpc: "2.0", ...message } });

const SESSION = "ses_1";
const meta = (runId: string): Fields => ({ _meta: { belay: { runId } } });
const update = (sessionUpdate: string, fields: Fields = {}): Said =>
  agent({ method: "session/update", params: { sessionId: SESSION, update: { sessionUpdate, ...fields } } });
const ask = (id: number, method: string): Said => client({ id, method, params: { sessionId: SESSION } });

const prompt = (id: number): Said => ask(id, "session/prompt");
const says = (run: string): Said =>
  update("agent_message_chunk", { content: { type: "text", text: "hi" }, ...meta(run) });
const calls = (id: string, run: string): Said =>
  update("tool_call", { toolCallId: id, status: "in_progress", ...meta(run) });
const called = (id: string, status: string): Said => update("tool_call_update", { toolCallId: id, status });
const ends = (id: number, run: string, stopReason = "end_turn"): Said =>
  agent({ id, result: { stopReason, ...meta(run) } });
const asks = (id: number, call: string): Said =>
  agent({ id, method: "session/request_permission", params: { toolCall: { toolCallId: call } } });
const done = (id: number): Said => agent({ id, result: {} });
const fails = (id: number, code: number, data: Fields, message = "It failed."): Said =>
  agent({ id, error: { code, message, data } });

// Version 2.
const begins = (run: string): readonly Said[] => [
  update("user_message", { messageId: run, ...meta(run) }),
  update("state_update", { state: "running" }),
];
const inserted = (id: number, run: string): Said => agent({ id, result: { messageId: run, ...meta(run) } });
const idle = (run: string): Said => update("state_update", { state: "idle", stopReason: "end_turn", ...meta(run) });
const upsert = (id: string, run: string, status: string): Said =>
  update("tool_call_update", { toolCallId: id, status, ...meta(run) });

const law = (said: readonly Said[], version: Version = 1): readonly string[] =>
  brokenLaws(said, version, { end: "finished" }).map((one) => one.split(":")[0] ?? "");

describe("correct transcripts break no law", () => {
  test.each<readonly [string, Version, readonly Said[]]>([
    ["a prompt", 1, [prompt(1), says("a"), ends(1, "a")]],
    ["two prompts", 1, [prompt(1), prompt(2), says("a"), ends(1, "a"), says("b"), ends(2, "b")]],
    [
      "one withdrawn while the other runs",
      1,
      [prompt(1), prompt(2), says("a"), ends(2, "b", "cancelled"), ends(1, "a")],
    ],
    ["a call", 1, [prompt(1), calls("c", "a"), called("c", "completed"), ends(1, "a")]],
    [
      "a question",
      1,
      [prompt(1), calls("c", "a"), asks(0, "c"), client({ id: 0, result: {} }), called("c", "completed"), ends(1, "a")],
    ],
    [
      "a history",
      1,
      [
        prompt(1),
        says("a"),
        ends(1, "a"),
        ask(2, "session/load"),
        update("user_message_chunk", meta("a")),
        says("a"),
        done(2),
      ],
    ],
    ["a refusal", 1, [prompt(1), fails(1, -32002, {})]],
    ["a failure", 1, [prompt(1), says("a"), fails(1, -32603, { runId: "a" })]],
    [
      "two prompts",
      2,
      [prompt(1), prompt(2), ...begins("a"), inserted(1, "a"), idle("a"), ...begins("b"), inserted(2, "b"), idle("b")],
    ],
    [
      "one that was held and cancelled",
      2,
      [prompt(1), prompt(2), ...begins("a"), inserted(1, "a"), fails(2, -32800, { runId: "b" }), idle("a")],
    ],
    [
      "a replay that ends idle, with the run that has begun meanwhile behind it",
      2,
      [
        ...[prompt(1), ask(3, "session/resume"), ...begins("a"), inserted(1, "a")],
        ...[update("state_update", { state: "idle" }), ...begins("a"), done(3), idle("a")],
      ],
    ],
    [
      "a question",
      2,
      [
        prompt(1),
        ...begins("a"),
        inserted(1, "a"),
        update("state_update", { state: "requires_action" }),
        update("state_update", { state: "running" }),
        idle("a"),
      ],
    ],
  ])("%s, in version %d", (_, version, said) => {
    expect(law(said, version)).toEqual([]);
  });
});

describe("each known mistake is caught", () => {
  test.each<readonly [string, Version, readonly Said[], string]>([
    ["the last update comes after the answer", 1, [prompt(1), ends(1, "a"), says("a")], "told-before"],
    ["a prompt is never answered", 1, [prompt(1), says("a")], "answered-once"],
    ["a prompt is answered twice", 1, [prompt(1), ends(1, "a"), ends(1, "a")], "answered-once"],
    ["an answer without a request", 1, [ends(9, "a")], "answered-once"],
    [
      "a notification is answered",
      1,
      [client({ method: "session/cancel", params: { sessionId: SESSION } }), done(1)],
      "answered-once",
    ],
    [
      "the next run begins before the answer",
      1,
      [prompt(1), prompt(2), says("a"), says("b"), ends(1, "a"), ends(2, "b")],
      "one-after-another",
    ],
    [
      "the next run begins before a silent one is answered",
      1,
      [prompt(1), prompt(2), says("b"), ends(1, "a"), ends(2, "b")],
      "one-after-another",
    ],
    ["a call is left open", 1, [prompt(1), calls("c", "a"), ends(1, "a")], "calls-end"],
    ["a call ends after the answer", 1, [prompt(1), calls("c", "a"), ends(1, "a"), called("c", "failed")], "calls-end"],
    [
      "a call ends twice",
      1,
      [prompt(1), calls("c", "a"), called("c", "failed"), called("c", "completed"), ends(1, "a")],
      "calls-end",
    ],
    ["the end of a call that never began", 1, [prompt(1), called("c", "failed"), ends(1, "a")], "calls-end"],
    ["a cancel is an error", 1, [prompt(1), says("a"), fails(1, -32800, { runId: "a" })], "cancel-is-no-error"],
    [
      "a cancel is the error of an aborted operation",
      1,
      [prompt(1), fails(1, -32603, { runId: "a" }, "This operation was aborted")],
      "cancel-is-no-error",
    ],
    ["an error of no run", 1, [prompt(1), fails(1, -32603, {})], "cancel-is-no-error"],
    ["the user's prompt is echoed", 1, [prompt(1), update("user_message_chunk", meta("a")), ends(1, "a")], "no-echo"],
    [
      "a permission is not taken back",
      1,
      [prompt(1), calls("c", "a"), asks(0, "c"), called("c", "failed"), ends(1, "a", "cancelled")],
      "questions-end",
    ],
    ["a closed session sends updates", 1, [ask(1, "session/close"), done(1), says("a")], "closed-is-closed"],
    [
      "something comes after idle",
      2,
      [prompt(1), ...begins("a"), inserted(1, "a"), idle("a"), says("a")],
      "told-before",
    ],
    ["idle twice", 2, [prompt(1), ...begins("a"), inserted(1, "a"), idle("a"), idle("a")], "states"],
    ["never idle", 2, [prompt(1), ...begins("a"), inserted(1, "a")], "states"],
    [
      "the next run begins before idle",
      2,
      [prompt(1), prompt(2), ...begins("a"), inserted(1, "a"), ...begins("b"), inserted(2, "b"), idle("a"), idle("b")],
      "one-after-another",
    ],
    [
      "a call is left open",
      2,
      [prompt(1), ...begins("a"), inserted(1, "a"), upsert("c", "a", "in_progress"), idle("a")],
      "calls-end",
    ],
    [
      "a run that had begun is refused",
      2,
      [prompt(1), ...begins("a"), fails(1, -32800, { runId: "a" }), idle("a")],
      "cancel-is-no-error",
    ],
  ])("%s, in version %d", (_, version, said, broken) => {
    expect(law(said, version)).toContain(broken);
  });
});
