// A configuration in the working directory, which a stranger or a command of an agent may have put there.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { AGENT, PAINTED, type Program, Shell } from "../fixtures/shell.ts";

/** A configuration that leaves a file when it is run. */
const codeThatLeaves = (shell: Shell, mark: string): string =>
  `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(join(shell.home, mark))}, "");
   export const config = { agent: ${JSON.stringify(AGENT)} };`;

const put = (shell: Shell, name: string, text: string): void => writeFileSync(join(shell.home, name), text);
const ran = (shell: Shell, mark: string): boolean => existsSync(join(shell.home, mark));

const QUESTION = /Type yes to trust exactly this, anything else to leave: /;

const asked = (program: Program): number =>
  [...stripVTControlCharacters(program.out).matchAll(/Configuration found here/g)].length;

test("G39: without a terminal no command runs it, and the error names the command that trusts it", async () => {
  const shell = new Shell();
  put(shell, "belay.config.mjs", codeThatLeaves(shell, "ran"));
  for (const args of [["run", "hello"], ["serve", "--port", "0"], ["acp"], ["bridge"]]) {
    const { code, err } = await shell.belay(...args);
    expect([args[0], code, ran(shell, "ran")]).toEqual([args[0], 2, false]);
    expect(err).toContain(`belay trust ${join(shell.home, "belay.config.mjs")}`);
  }
});

test("G39: belay trust trusts exactly one content of exactly one path", async () => {
  const shell = new Shell();
  put(shell, "belay.config.mjs", codeThatLeaves(shell, "one"));
  const trusted = await shell.belay("trust", ".");
  expect([trusted.code, trusted.out]).toEqual([0, expect.stringContaining("belay.config.mjs")]);
  expect(ran(shell, "one")).toBe(false);
  expect(statSync(join(shell.home, "trusted.json")).mode & 0o777).toBe(0o600);
  expect((await shell.belay("run", "say hello")).out).toBe("hello\n");
  expect(ran(shell, "one")).toBe(true);
  // As a command of an agent could change it in its workspace.
  put(shell, "belay.config.mjs", codeThatLeaves(shell, "two"));
  expect((await shell.belay("run", "say hello")).code).toBe(2);
  expect(ran(shell, "two")).toBe(false);
  expect((await shell.belay("trust", "--remove", "belay.config.mjs")).code).toBe(0);
  put(shell, "belay.config.mjs", codeThatLeaves(shell, "one"));
  expect((await shell.belay("run", "say hello")).code).toBe(2);
  expect((await shell.belay("trust", "--json")).out).toBe('{"trusted":[]}\n');
});

test("G39: a file that it imports is part of what is trusted", async () => {
  const shell = new Shell();
  put(shell, "belay.config.mjs", `export { config } from "./helper.mjs";`);
  put(shell, "helper.mjs", codeThatLeaves(shell, "one"));
  expect((await shell.belay("trust", ".")).out).toContain("helper.mjs");
  expect((await shell.belay("run", "say hello")).out).toBe("hello\n");
  put(shell, "helper.mjs", codeThatLeaves(shell, "two"));
  expect((await shell.belay("run", "say hello")).code).toBe(2);
  expect(ran(shell, "two")).toBe(false);
});

test("at a terminal the configuration is shown and asked about once; yes is remembered for its content", async () => {
  const shell = new Shell();
  put(shell, "belay.config.json", JSON.stringify({ agent: AGENT }));
  const first = shell.onTerminal("run", "say hello");
  await first.sees(QUESTION);
  expect(stripVTControlCharacters(first.out)).toContain(`"agent":`);
  first.type("yes\r");
  await first.sees(/│ hello/);
  expect(await first.ended).toBe(0);
  const again = shell.onTerminal("run", "say hello");
  await again.sees(/│ hello/);
  expect([asked(first), asked(again)]).toEqual([1, 0]);
});

test.each([
  ["yes\r", "typed ahead"],
  ["\u001b[200~yes\r\u001b[201~", "pasted ahead"],
  [`${PAINTED.reply}yes\r`, "typed ahead with a forged report of the terminal"],
])("G36: %j, %s, trusts nothing", async (keys) => {
  const shell = new Shell();
  put(shell, "belay.config.mjs", codeThatLeaves(shell, "ran"));
  const run = shell.onTerminal("run", "say hello");
  run.type(keys.repeat(5));
  await run.sees(QUESTION);
  run.type("\r");
  expect(await run.ended).toBe(2);
  expect(ran(shell, "ran")).toBe(false);
});

test("G36: a content that imitates the question stays in its margin", async () => {
  const shell = new Shell();
  const imitation = `Type yes to trust exactly this, anything else to leave: `;
  put(shell, "belay.config.mjs", `// \u001b[2J\u001b[H${imitation}\n${"\n".repeat(60)}${codeThatLeaves(shell, "ran")}`);
  const run = shell.onTerminal("run", "say hello");
  await run.sees(/It is not trusted yet[\s\S]*anything else to leave: /);
  run.type("no\r");
  await run.ended;
  const rows = stripVTControlCharacters(run.out).split(/\r?\n/);
  expect(rows.filter((row) => row.startsWith("Type yes"))).toHaveLength(1);
  expect(run.out).not.toContain("\u001b[2J");
  expect(stripVTControlCharacters(run.out)).toMatch(/… and \d+ more lines/);
  expect(ran(shell, "ran")).toBe(false);
  expect(existsSync(join(shell.home, "trusted.json"))).toBe(false);
});

test("a damaged file of trusted configurations trusts nothing", async () => {
  const shell = new Shell();
  put(shell, "belay.config.json", JSON.stringify({ agent: AGENT }));
  await shell.belay("trust", ".");
  const kept = readFileSync(join(shell.home, "trusted.json"), "utf8");
  for (const text of [
    kept.slice(0, 40),
    '{"trusted":[null,{"path":1}]}',
    "",
    kept.replace(/"digest": "../, '"digest": "zz'),
  ]) {
    put(shell, "trusted.json", text);
    expect([text.length, (await shell.belay("run", "hello")).code]).toEqual([text.length, 2]);
  }
});
