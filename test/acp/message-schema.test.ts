// Tests of the validator: invalid messages are found, and valid ones pass.
import { describe, expect, test } from "vitest";
import { invalidMessages } from "./message-schema.ts";
import type { Message, Said, Version } from "./transcript.ts";

const agent = (message: Omit<Message, "jsonrpc">): Said => ({ by: "agent", message: { jsonrpc: "2.0", ...message } });
const client = (message: Omit<Message, "jsonrpc">): Said => ({ by: "client", message: { jsonrpc: "2.0", ...message } });

const update = (fields: object): Said =>
  agent({ method: "session/update", params: { sessionId: "ses_1", update: fields } });

const prompt = client({
  id: 1,
  method: "session/prompt",
  params: { sessionId: "ses_1", prompt: [{ type: "text", text: "hello" }] },
});

describe("valid messages", () => {
  test.each<readonly [string, Version, readonly Said[]]>([
    ["a prompt and its answer", 1, [prompt, agent({ id: 1, result: { stopReason: "cancelled" } })]],
    ["a prompt that was inserted", 2, [prompt, agent({ id: 1, result: { messageId: "run_1" } })]],
    ["a stopped call", 2, [update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "cancelled" })]],
    ["a failure", 1, [prompt, agent({ id: 1, error: { code: -32603, message: "It failed." } })]],
    ["a method of our own", 1, [client({ id: 1, method: "_belay/run/cancel", params: { runId: "run_1" } })]],
    ["a request taken back", 1, [agent({ method: "$/cancel_request", params: { requestId: 0 } })]],
  ])("%s, in version %d", (_, version, said) => {
    expect(invalidMessages(said, version)).toEqual([]);
  });
});

describe("invalid messages are caught", () => {
  test.each<readonly [string, Version, readonly Said[], string]>([
    [
      "a status the first version does not know",
      1,
      [update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "cancelled" })],
      "must be equal to constant",
    ],
    [
      "an update the first version does not know",
      1,
      [update({ sessionUpdate: "state_update", state: "idle" })],
      "must be equal to constant",
    ],
    ["an update without its text", 1, [update({ sessionUpdate: "agent_message_chunk" })], "'content'"],
    ["a stop reason that is none", 1, [prompt, agent({ id: 1, result: { stopReason: "aborted" } })], "stopReason"],
    ["the answer of the other version", 1, [prompt, agent({ id: 1, result: { messageId: "run_1" } })], "'stopReason'"],
    ["the answer of the other version", 2, [prompt, agent({ id: 1, result: { stopReason: "end_turn" } })], "messageId"],
    ["an answer to nothing", 1, [agent({ id: 7, result: {} })], "answers nothing"],
    ["an unknown method", 1, [agent({ id: 1, method: "session/ask", params: {} })], "not a method"],
    ["a method in the wrong direction", 1, [agent({ ...prompt.message })], "not a method"],
    ["a removed method", 2, [client({ id: 1, method: "session/load", params: {} })], "not a method"],
    ["an error without a code", 1, [prompt, { by: "agent", message: { id: 1, error: {} } as never }], "no JSON-RPC"],
    ["an answer that is two", 1, [prompt, agent({ id: 1, result: {}, error: { code: 1, message: "" } })], "two in one"],
    ["a field beside the envelope", 1, [{ ...prompt, message: { ...prompt.message, extra: 1 } as never }], "stray"],
    ["a prompt without a session", 1, [client({ id: 1, method: "session/prompt", params: {} })], "'sessionId'"],
  ])("%s, in version %d", (_, version, said, what) => {
    expect(invalidMessages(said, version)).toEqual([expect.stringContaining(what)]);
  });
});
