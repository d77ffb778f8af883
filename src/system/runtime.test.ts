import { expect, test } from "vitest";
import { requireRuntime, runtimeName } from "./runtime.ts";

test.each(["22.13.0", "22.20.1", "23.0.0", "24.0.0", "30.1.0"])("Node.js %s is new enough", (node) => {
  expect(() => requireRuntime({ node })).not.toThrow();
});

test.each(["18.20.8", "20.19.0", "22.12.0"])("Node.js %s is refused in one sentence", (node) => {
  const message = `Belay needs Node.js 22.13 or newer, and this is ${node}.`;
  expect(() => requireRuntime({ node })).toThrow(expect.objectContaining({ code: "unavailable", message }));
});

test("Bun and Deno are recognised although they report a Node.js version", () => {
  const versions = { ...process.versions };
  expect(runtimeName({ ...versions, bun: "1.4.4" })).toBe("bun");
  expect(runtimeName({ ...versions, deno: "2.9.6" })).toBe("deno");
  expect(runtimeName(versions)).toBe("node");
});
