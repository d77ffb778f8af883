// Attacks at a terminal: typing ahead, pasting, imitating, redrawing. Only what was on the screen is approved.
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { ASKED, PAINTED, type Program, Shell } from "../fixtures/shell.ts";

const HERE = ["run", "--agent", join(import.meta.dirname, "../fixtures/tricky-agent.ts")] as const;

const PAINTING = RegExp(PAINTED.query.replace("[", "\\["));

/** Denies the question, which proves that it was still open. */
async function deny(run: Program, pattern = ASKED): Promise<void> {
  await run.sees(pattern);
  run.type("n\r");
}

describe("keys typed before a question is on the screen", { timeout: 60_000 }, () => {
  test.each([
    ["before anything is shown", "y\ry\ryes\ralways\r"],
    ["twenty times", "y\r".repeat(20)],
    ["pasted", "\u001b[200~y\ryes\r\u001b[201~"],
    ["with a forged report that it is painted", `${PAINTED.reply}y\r${PAINTED.reply}y\r`],
  ])("%s approve nothing", async (_, keys) => {
    const run = new Shell().onTerminal(...HERE, "one");
    run.type(keys);
    await deny(run);
    await run.sees(/one: failed/);
    expect(run.out.match(/to allow it/g)).toHaveLength(1);
  });

  test("keys between the question and the terminal's paint report are dropped", async () => {
    const run = new Shell().onSilentTerminal(...HERE, "one");
    await run.sees(PAINTING);
    run.type("y\r");
    run.type(`y\r${PAINTED.reply}`);
    await deny(run);
    await run.sees(/one: failed/);
  });

  test("a terminal without a paint report is not waited for; keys typed meanwhile are dropped", async () => {
    const run = new Shell().onSilentTerminal(...HERE, "one");
    await run.sees(PAINTING);
    run.type("y\r");
    await deny(run);
    await run.sees(/one: failed/);
  });

  test("an answer that is typed twice counts once", async () => {
    const run = new Shell().onTerminal(...HERE, "twice");
    const code = await run.sees(ASKED);
    run.type(`${code}\r${code}\ry\r`);
    await deny(run, /curl evil[\s\S]*Type (\w{4}) to allow it .*: /);
    await run.sees(/both: completed, failed/);
  });

  test("a pasted code approves nothing; the same code typed does", async () => {
    const run = new Shell().onTerminal(...HERE, "one");
    const code = await run.sees(ASKED);
    run.type(`\u001b[200~${code}\r\u001b[201~\r`);
    run.type(`${await run.sees(/Nothing was answered[\s\S]*Type (\w{4}) to allow it .*: /)}\r`);
    await run.sees(/one: completed/);
  });
});

describe("a question that is drawn again, or withdrawn", { timeout: 60_000 }, () => {
  test("G36: each wrong answer draws the question again with another code; earlier codes approve nothing", async () => {
    const run = new Shell().onTerminal(...HERE, "one");
    const first = await run.sees(ASKED);
    run.type("zzzz\r");
    const second = await run.sees(/Nothing was answered[\s\S]*Type (\w{4}) to allow it .*: /);
    expect(second).not.toBe(first);
    // All at once, while the next one is drawn.
    run.type(`zzzz\r${first}\r${second}\r`);
    await run.sees(/(Nothing was answered[\s\S]*){2}Type \w{4} to allow it .*: /);
    run.type(`${first}\r`);
    await run.sees(/(Nothing was answered[\s\S]*){3}Type \w{4} to allow it .*: /);
    run.type("n\r");
    await run.sees(/one: failed/);
  });

  test("G36: keys typed while the terminal has not painted the second drawing are dropped", async () => {
    const run = new Shell().onSilentTerminal(...HERE, "one");
    await run.sees(PAINTING);
    run.type(PAINTED.reply);
    const code = await run.sees(ASKED);
    run.type("zzzz\r");
    await run.sees(RegExp(`Nothing was answered[\\s\\S]*${PAINTING.source}`));
    run.type(`${code}\r`.repeat(10));
    await run.sees(/Nothing was answered[\s\S]*Type \w{4} to allow it .*: /);
    run.type("n\r");
    await run.sees(/one: failed/);
  });
});

describe("model text that imitates a question", { timeout: 60_000 }, () => {
  test("is in a margin, and an answer to it approves nothing", async () => {
    const run = new Shell().onTerminal(...HERE, "imitate");
    await run.sees(/│ Type abcd to allow it/);
    run.type("abcd\ry\r");
    await run.sees(/Answer: /);
    run.type("yes\rabcd\ry\r");
    await deny(run, /curl evil[\s\S]*Type (\w{4}) to allow it .*: /);
    await run.sees(/first: failed/);
  });

  test("does not reach the first column by filling rows", async () => {
    const run = new Shell().onTerminal(...HERE, "fill 160");
    await run.sees(/filled/);
    await run.ended;
    const rows = stripVTControlCharacters(run.out).split(/\r?\n/);
    expect(rows.filter((row) => /^(Approval|May exactly|Type )/.test(row))).toEqual([]);
    expect(rows.filter((row) => row.length >= 160)).toEqual([]);
  });
});
