// Every example runs, and prints what it says it prints.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ROOT } from "./fixtures/repository.ts";

const FOLDER = join(ROOT, "examples");
const PRINTS = "// Prints:\n//\n";
const names = readdirSync(FOLDER).toSorted();
const readme = readFileSync(join(ROOT, "README.md"), "utf8");
const run = promisify(execFile);

const textOf = (name: string): string => readFileSync(join(FOLDER, name), "utf8");

/** What stands behind "Prints:", without its comment signs. */
function promised(text: string): string {
  const block = text.slice(text.indexOf(PRINTS) + PRINTS.length);
  return block.replaceAll(/^\/\/ {3}/gm, "");
}

/** The program, without its first line and what it prints. */
function program(text: string): string {
  return text.slice(text.indexOf("\n") + 1, text.indexOf(`\n${PRINTS}`)).trim();
}

test("the examples are numbered without a gap", () => {
  expect(names.map((name) => Number.parseInt(name, 10))).toEqual(names.map((_, index) => index + 1));
  for (const name of names) expect(name).toMatch(/^\d\d-[a-z-]+\.(ts|mjs)$/);
});

describe.each(names)("%s", (name) => {
  test("prints what it says", { timeout: 20_000 }, async () => {
    const text = textOf(name);
    expect(text).toContain(PRINTS);
    const { stdout, stderr } = await run(
      process.execPath,
      ["--import", join(ROOT, "test", "fixtures", "from-source.ts"), join(FOLDER, name)],
      { env: { ...process.env, NO_COLOR: "1" } },
    );
    expect(trimLines(stdout)).toBe(trimLines(promised(text)));
    expect(stderr).toBe("");
  });

  test("the README leads to it", () => {
    expect(readme).toContain(`examples/${name}`);
  });
});

test("the README shows the two commands that do everything", () => {
  for (const command of ["npm ci && npm start", "npm ci && npm test"]) expect(readme).toContain(command);
});

test("the README's example is the first one, word for word, and short", () => {
  const [, shown] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const first = program(textOf(names[0] ?? ""));
  expect(shown?.trim()).toBe(first);
  expect(first.split("\n").filter((line) => line !== "").length).toBeLessThanOrEqual(16);
});

/** A space at the end of a line cannot be seen, so it is not part of what is promised. */
const trimLines = (text: string): string => text.replaceAll(/[ \t]+$/gm, "").trim();
