// Every TypeScript block of the documentation compiles, and reads how the run that it prompts ended.
import { describe, expect, test } from "vitest";
import { filesUnder } from "../fixtures/repository.ts";
import { ignoresTheEnd, snippets, snippetsOf, typeErrors } from "./snippets.ts";

const page = (...lines: readonly string[]) => ({ path: "docs/a.md", text: ["# A", "", ...lines, ""].join("\n") });
const block = (...lines: readonly string[]) => page("```ts", ...lines, "```");

test("every ts block of the README and of docs/ compiles against the sources", { timeout: 120_000 }, () => {
  const mistakes = snippetsOf(
    block(
      'import { openBelay } from "agent-belay";',
      "const limit: number | undefined = undefined;",
      'await openBelay({ store: "a.db", agent, runLimitMs: limit });',
      'await openBelay({ store: "a.db" });',
      'import { gone } from "agent-belay";',
    ),
  );
  // Blocks that name their files import each other.
  const named = [
    block("// a/one.ts", "export const one = 1;"),
    block("// b/two.ts", "", "", "", "", "", "", 'import { one } from "../a/one.ts";', "const two: string = one;"),
  ].flatMap(snippetsOf);
  const found = typeErrors([...snippets(), ...mistakes, ...named]);
  expect(found.filter((one) => !one.startsWith("docs/a.md:"))).toEqual([]);
  // Each mistake is found: an optional property set to undefined, a missing one, a missing export, a wrong type.
  expect(found.map((one) => /^docs\/a\.md:\d+/.exec(one)?.[0]).filter(Boolean)).toEqual(
    [6, 7, 8, 12].map((line) => `docs/a.md:${line}`),
  );
});

test("every snippet and every example that prompts reads the result, the outcome or the end of the events", () => {
  expect([...snippets(), ...filesUnder("examples")].filter(ignoresTheEnd).map(({ path }) => path)).toEqual([]);
});

describe("a snippet", () => {
  const [prompting] = snippetsOf(block("const run = session.prompt('hello');", "console.log(await run.text());"));

  test("has the line numbers of its page", () => {
    expect(prompting?.text.split("\n").findIndex((line) => line.startsWith("const run"))).toBe(3);
  });

  test.each([
    ["prints text alone", "console.log(await session.prompt('hello').text());", true],
    ["prints deltas alone", "for await (const { type } of session.prompt('hello')) console.log(type);", true],
    ["reads the result", "console.log((await session.prompt('hello').result()).text);", false],
    ["reads the outcome", "console.log(await session.prompt('hello').outcome);", false],
    ["waits for several outcomes", "await Promise.all([session.prompt('a').outcome, b.outcome]);", false],
    ["reads the outcome of a call alone", "session.prompt('a'); console.log(event.outcome, event.result);", true],
    ["waits for run.settled", "session.prompt('a'); wait('run.settled');", false],
    ["does not prompt", "console.log(turn.prompt.text);", false],
  ])("that %s", (_, text, ignores) => {
    expect(ignoresTheEnd({ path: "a.ts", text })).toBe(ignores);
  });
});
