import { expect, test } from "vitest";
import { readCapabilities } from "./capabilities.ts";

test("an agent without capabilities has only those that every agent has", () => {
  const nothing = {
    ...{ restore: undefined, images: false, embedded: false, mcp: { http: false, sse: false }, directories: false },
    ...{ steers: false, cancelsCalls: false, version: undefined, logins: [] },
  };
  for (const answer of [undefined, 7, {}, { agentCapabilities: null, authMethods: "x", _meta: [] }]) {
    expect(readCapabilities(answer)).toEqual(nothing);
  }
});

test("capabilities are read, and resume is preferred to load", () => {
  const agentCapabilities = {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    mcpCapabilities: { http: true, sse: true },
    sessionCapabilities: { resume: {}, additionalDirectories: {} },
    _meta: { belay: { methods: ["_belay/tool_call/cancel"] } },
  };
  const authMethods = [{ id: "a", name: "By hand" }, { id: "b" }];
  const answer = { protocolVersion: 1, agentCapabilities, authMethods, _meta: { steering: { supported: true } } };
  expect(readCapabilities(answer)).toEqual({
    ...{ restore: "resume", images: true, embedded: true, mcp: { http: true, sse: true }, directories: true },
    ...{ steers: true, cancelsCalls: true, version: 1, logins: ["By hand"] },
  });
  expect(readCapabilities({ agentCapabilities: { loadSession: true } }).restore).toBe("load");
});
