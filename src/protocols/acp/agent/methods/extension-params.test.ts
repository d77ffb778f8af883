import { describe, expect, test } from "vitest";
import { callStopParams, runStopParams, sessionParams, steerParams } from "./extension-params.ts";

const INVALID = expect.objectContaining({ code: -32602 });

describe("the stop of a call", () => {
  test.each(["toolCallId", "tool_call_id", "callId", "call_id"])("names it as %s", (name) => {
    expect(callStopParams({ sessionId: "s", [name]: "c" })).toMatchObject({ sessionId: "s", toolCallId: "c" });
  });

  test("accepts the session in either spelling, and all optional fields", () => {
    const params = { session_id: "s", callId: "c", reason: "enough", inject_reminder: false, timeout_ms: 0 };
    expect(callStopParams(params)).toEqual({
      ...{ sessionId: "s", toolCallId: "c", reason: "enough", remind: false, waitMs: 0 },
    });
    expect(callStopParams({ sessionId: "s", callId: "c", reason: null, timeoutMs: null })).toMatchObject({
      ...{ reason: undefined, remind: undefined, waitMs: undefined },
    });
  });

  test.each<readonly [string, unknown]>([
    ["nothing", undefined],
    ["a list", []],
    ["no session", { callId: "c" }],
    ["no call", { sessionId: "s" }],
    ["an empty call", { sessionId: "s", callId: "" }],
    ["a call that is a number", { sessionId: "s", callId: 7 }],
  ])("%s is refused", (_, params) => {
    expect(() => callStopParams(params)).toThrow(INVALID);
  });

  test.each<readonly [object, object]>([
    [{ reason: 7 }, { reason: "[unreadable reason]" }],
    [{ reason: { kind: "user", note: "why" } }, { reason: "why" }],
    [{ timeout_ms: -1 }, { waitMs: 0 }],
    [{ timeout_ms: "5" }, { waitMs: undefined }],
    [{ timeout_ms: 600_001 }, { waitMs: 600_000 }],
    [{ inject_reminder: "no" }, { remind: undefined }],
  ])("G7: with %j it is still a stop", (odd, read) => {
    expect(callStopParams({ sessionId: "s", callId: "c", ...odd })).toMatchObject(read);
  });
});

describe("a steer", () => {
  test.each<readonly [string, unknown]>([
    ["a text", { type: "text", text: "x" }],
    ["a link", { type: "resource_link", name: "a", uri: "file:///a" }],
    ["a picture", { type: "image", data: "", mimeType: "image/png" }],
    ["a file", { type: "resource", resource: { uri: "file:///a", text: "x" } }],
    ["something that is refused elsewhere", { type: "hologram" }],
  ])("%s is a valid block", (_, block) => {
    expect(steerParams({ sessionId: "s", prompt: [block] })).toEqual({ sessionId: "s", prompt: [block] });
  });

  test.each<readonly [string, unknown]>([
    ["a text without its text", { type: "text" }],
    ["a link without its address", { type: "resource_link", name: "a" }],
    ["a picture without its kind", { type: "image", data: "" }],
    ["a file without its content", { type: "resource", resource: { uri: "file:///a" } }],
    ["a file that is null", { type: "resource", resource: null }],
    ["no kind", {}],
    ["null", null],
    ["a text that is one", "x"],
  ])("%s is not a valid block", (_, block) => {
    expect(() => steerParams({ sessionId: "s", prompt: [block] })).toThrow(INVALID);
  });

  test("a prompt is a list", () => {
    expect(() => steerParams({ sessionId: "s", prompt: "x" })).toThrow(INVALID);
    expect(() => steerParams({ sessionId: "s" })).toThrow(INVALID);
  });
});

test("a run and a session are named", () => {
  expect(runStopParams({ runId: "run_1", reason: "so" })).toEqual({ runId: "run_1", reason: "so" });
  expect(sessionParams({ sessionId: "s" })).toEqual({ sessionId: "s" });
  expect(() => runStopParams({ runId: 7 })).toThrow(INVALID);
  expect(() => sessionParams({})).toThrow(INVALID);
});
