import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test, vi } from "vitest";
import { makeProgram } from "./program.ts";
import { exampleOf, fullName } from "./shared/examples.ts";
import { EXIT_CODE } from "./shared/exit-code.ts";
import { exitMeanings } from "./shared/exit-help.ts";
import { isHidden } from "./shared/usage-error.ts";

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
vi.setConfig({ testTimeout: 40_000 });

const main = join(import.meta.dirname, "main.ts");

/** Says where every module comes from. */
const TELLING =
  "data:text/javascript,import { registerHooks } from 'node:module'; registerHooks({ resolve(what, around, next) { " +
  "const found = next(what, around); process.stderr.write(found.url + '\\n'); return found; } });";

/** Which modules a command has loaded. */
function loadedBy(...words: readonly string[]): string {
  const { stderr } = spawnSync(process.execPath, ["--import", TELLING, main, ...words], { encoding: "utf8" });
  return stderr;
}

describe("what is not needed is not loaded", () => {
  /** Everything but the command line itself and what it says errors with. */
  const HEAVY = /\/src\/(?!cli\/|core\/|ports\/|system\/)|node_modules\/(?!commander\/)/;

  test.each([["--help"], ["help", "cancel"], ["cancel", "--help"], ["--version"], ["completion", "bash"], ["cancle"]])(
    "by %s %s",
    (...words) => {
      const loaded = loadedBy(...words).split("\n");
      expect(loaded.some((url) => url.includes("/src/cli/program.ts"))).toBe(true);
      expect(loaded.filter((url) => HEAVY.test(url))).toEqual([]);
    },
  );

  test("and what is needed is: the test can see it", () => {
    expect(loadedBy("ps", "--store", main)).toMatch(HEAVY);
  });
});

const everyCommand = (command: Command): readonly Command[] =>
  command.commands.flatMap((one) => (one.commands.length > 0 ? everyCommand(one) : [one]));

const visible = everyCommand(makeProgram()).filter((one) => !isHidden(one));

describe.each(visible.map((command) => [fullName(command), command] as const))("%s", (name, command) => {
  test("says what it does, and what each of its words means", () => {
    expect(command.description()).not.toBe("");
    for (const option of command.options) expect(option.description, option.flags).not.toBe("");
    for (const argument of command.registeredArguments) expect(argument.description, argument.name()).not.toBe("");
  });

  test("has examples that it would understand", () => {
    const example = exampleOf(command);
    expect(example.startsWith(name)).toBe(true);
    const options = new Set(command.options.flatMap(({ long, short }) => [long, short]));
    for (const typed of example.split(" ").filter((word) => /^--?[a-z]/.test(word))) {
      expect([...options, "--help"]).toContain(typed);
    }
  });
});

test("every exit code has a meaning, each is told once", () => {
  const codes = exitMeanings().map(([code]) => code);
  for (const code of Object.values(EXIT_CODE)) expect(codes).toContain(String(code));
  expect(new Set(codes).size).toBe(codes.length);
  const help = execFileSync(process.execPath, [main, "--help"], { encoding: "utf8" });
  for (const [code, meaning] of exitMeanings()) {
    expect(help).toContain(meaning);
    expect(help).toContain(code);
  }
});
