import { expect, test } from "vitest";
import { checkExternalAgent, type ExternalAgentOptions } from "./external-agent-options.ts";

test("it is called after its program, and has nothing of Belay's own in what it is given", () => {
  const env = { KEY: "k", BELAY_TOKEN: "t", BELAY_HOME: "/h" };
  expect(checkExternalAgent({ command: ["/opt/some-agent", "--acp"], env })).toMatchObject({
    ...{ name: "some-agent", env: { KEY: "k" }, leave: "ask", startMs: 60_000, idleMs: 600_000 },
  });
});

test.each([
  [{ command: [] }, "`command` is a program"],
  [{ command: [""] }, "`command` is a program"],
  [{ command: "agent" }, "`command` is a program"],
  [{ command: ["a"], env: { A: 1 } }, "`env` is an object of texts"],
  [{ command: ["a"], cwd: "" }, "`cwd` is a path"],
  [{ command: ["a"], leave: "always" }, "`leave` is"],
  [{ command: ["a"], startMs: 0 }, "milliseconds"],
  [{ command: ["a"], idleMs: 1.5 }, "milliseconds"],
  [{ command: ["a"], stopMs: 0 }, "milliseconds"],
  [{ command: ["a"], idleMax: -1 }, "`idleMax` is a whole number"],
])("is refused: %j", (given, words) => {
  // As somebody would write it who has no types.
  expect(() => checkExternalAgent(given as unknown as ExternalAgentOptions)).toThrow(words);
});
