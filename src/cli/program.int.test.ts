import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test, vi } from "vitest";
import { makeProgram } from "./program.ts";
import { exampleOf, fullName } from "./shared/examples.ts";
import { EXIT_CODE } from "./shared/exit-code.ts";
import { exitMeanings } from "./shared/exit-help.ts";
import { isHidden } from "./shared/usage-error.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

const main = join(import.meta.dirname, "main.ts");

/** A loader hook that prints the URL of every module. */
const PRINT_MODULES =
  "data:text/javascript,import { registerHooks } from 'node:module'; registerHooks({ resolve(what, around, next) { " +
  "const found = next(what, around); process.stderr.write(found.url + '\\n'); return found; } });";

/** The modules that a command has loaded. */
function loadedBy(...args: readonly string[]): string {
  const { stderr } = spawnSync(process.execPath, ["--import", PRINT_MODULES, main, ...args], { encoding: "utf8" });
  return stderr;
}

describe("help, version, completion and usage errors load no implementation", () => {
  /** Every module except those of the command line itself and of its errors. */
  const HEAVY = /\/src\/(?!cli\/|core\/|ports\/|system\/)|node_modules\/(?!commander\/)/;

  test.each([["--help"], ["help", "cancel"], ["cancel", "--help"], ["--version"], ["completion", "bash"], ["cancle"]])(
    "by %s %s",
    (...args) => {
      const loaded = loadedBy(...args).split("\n");
      expect(loaded.some((url) => url.includes("/src/cli/program.ts"))).toBe(true);
      expect(loaded.filter((url) => HEAVY.test(url))).toEqual([]);
    },
  );

  test("a command that opens a store loads its implementation", () => {
    expect(loadedBy("ps", "--store", main)).toMatch(HEAVY);
  });
});

const everyCommand = (command: Command): readonly Command[] =>
  command.commands.flatMap((one) => (one.commands.length > 0 ? everyCommand(one) : [one]));

const visible = everyCommand(makeProgram()).filter((one) => !isHidden(one));

describe.each(visible.map((command) => [fullName(command), command] as const))("%s", (name, command) => {
  test("has a description, and so has each of its options and arguments", () => {
    expect(command.description()).not.toBe("");
    for (const option of command.options) expect(option.description, option.flags).not.toBe("");
    for (const argument of command.registeredArguments) expect(argument.description, argument.name()).not.toBe("");
  });

  test("has an example whose options exist", () => {
    const example = exampleOf(command);
    expect(example.startsWith(name)).toBe(true);
    const options = new Set(command.options.flatMap(({ long, short }) => [long, short]));
    for (const typed of example.split(" ").filter((word) => /^--?[a-z]/.test(word))) {
      expect([...options, "--help"]).toContain(typed);
    }
  });
});

test("every exit code is listed once in --help, with its meaning", () => {
  const codes = exitMeanings().map(([code]) => code);
  for (const code of Object.values(EXIT_CODE)) expect(codes).toContain(String(code));
  expect(new Set(codes).size).toBe(codes.length);
  const help = execFileSync(process.execPath, [main, "--help"], { encoding: "utf8" });
  for (const [code, meaning] of exitMeanings()) {
    expect(help).toContain(meaning);
    expect(help).toContain(code);
  }
});
