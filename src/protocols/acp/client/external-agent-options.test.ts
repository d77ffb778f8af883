import { expect, test } from "vitest";
import { checkExternalAgent, type ExternalAgentOptions } from "./external-agent-options.ts";

test("its default name is its program's, and its environment has no variables of Belay", () => {
  const env = { KEY: "k", BELAY_TOKEN: "t", BELAY_HOME: "/h" };
  expect(checkExternalAgent({ command: ["/opt/some-agent", "--acp"], env })).toMatchObject({
    ...{ name: "some-agent", env: { KEY: "k" }, leave: "ask", startMs: 60_000, idleMs: 600_000 },
  });
});

test.each([
  [{ command: [] }, "`command` must be a program"],
  [{ command: [""] }, "`command` must be a program"],
  [{ command: "agent" }, "`command` must be a program"],
  [{ command: ["a"], env: { A: 1 } }, "`env` must be an object of strings"],
  [{ command: ["a"], cwd: "" }, "`cwd` must be a path"],
  [{ command: ["a"], leave: "always" }, "`leave` must be"],
  [{ command: ["a"], startMs: 0 }, "milliseconds"],
  [{ command: ["a"], idleMs: 1.5 }, "milliseconds"],
  [{ command: ["a"], stopMs: 0 }, "milliseconds"],
  [{ command: ["a"], idleMax: -1 }, "`idleMax` must be a whole number"],
])("invalid options are refused: %j", (given, words) => {
  // As JavaScript code could write it.
  expect(() => checkExternalAgent(given as unknown as ExternalAgentOptions)).toThrow(words);
});
