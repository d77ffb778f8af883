// The attacks of typed-ahead.slow.test.ts on the other prompts: the hands-on demo and `belay approve`; and a terminal
// whose size changes while a question is open.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { ASKED, MAIN, type Program, Shell } from "../fixtures/shell.ts";

const HANDS_ON = ["demo", "--hands-on", "--fast"] as const;
const TRICKY = join(import.meta.dirname, "../fixtures/tricky-agent.ts");

/** The text on the screen, without escape sequences. */
const seen = ({ out }: Program): string => stripVTControlCharacters(out);

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

describe("the hands-on demo", { timeout: 60_000 }, () => {
  test("G36: a yes whose first key was typed before the question is ignored; one typed after it approves", async () => {
    const hands = new Shell().onTerminal(...HANDS_ON);
    await hands.sees(/There is more: help/);
    hands.type("write\ry");
    await hands.sees(/May call 1, write_file, go on\?/);
    hands.type("es\r");
    await hands.sees(/begun before the question was on the screen/);
    expect(seen(hands)).not.toContain("completed");
    // Lines that are begun too early are refused; a later one is accepted.
    const refusals = (): number => count(seen(hands), /begun before the question was on the screen/g);
    for (let refused = 0; !seen(hands).includes("completed"); refused = refusals()) {
      hands.type("yes\r");
      await expect.poll(() => refusals() > refused || seen(hands).includes("completed")).toBe(true);
    }
    hands.type("quit\r");
    expect(await hands.ended).toBe(0);
  });

  test("G36: a conversation that is pasted before the first output approves nothing", async () => {
    const hands = new Shell().onTerminal(...HANDS_ON);
    hands.type("\u001b[200~write\ryes\ralways\ryes 1\r\u001b[201~");
    await hands.sees(/May call 1, write_file, go on\?/);
    await expect.poll(() => count(seen(hands), /nothing waits for a yes|begun before the question/g)).toBe(3);
    hands.type("why\r");
    await hands.sees(/call 1, write_file: waits for its approval/);
    hands.type("quit\r");
    await hands.ended;
  });

  test.each([
    ["a dumb terminal", `TERM=dumb '${process.execPath}' '${MAIN}' ${HANDS_ON.join(" ")}`],
    ["a terminal whose output is piped on", `'${process.execPath}' '${MAIN}' ${HANDS_ON.join(" ")} | cat`],
  ])("G36: at %s only the code of the question approves", async (_, line) => {
    const hands = new Shell({ TERM: "xterm" }).command("script", "-qefc", line, "/dev/null");
    await hands.sees(/There is more: help/);
    hands.type("write\nyes\nyes\nyes\n");
    const code = await hands.sees(/May call 1, write_file, go on\?[^\n]* and at its end (\w{4})/);
    hands.type("yes\nwhy\n");
    await hands.sees(/call 1, write_file: waits for its approval/);
    await hands.sees(/nothing was answered: end the line with the code/);
    hands.type(`yes ${code}\n`);
    await hands.sees(/run “write” completed/);
    hands.type("quit\n");
    expect(await hands.ended).toBe(0);
  });
});

test("G36: belay approve ignores keys that were typed before its question", { timeout: 60_000 }, async () => {
  const shell = new Shell();
  const server = await shell.serve();
  await shell.belay("run", "--detach", "write a.txt");
  const listed = (): Promise<string> => shell.belay("approve").then(({ out }) => /ask_\S+/.exec(out)?.[0] ?? "");
  await expect.poll(listed, { timeout: 20_000 }).not.toBe("");
  const question = await listed();
  const hasty = shell.onTerminal("approve", question);
  hasty.type("y\ryes\ralways\r");
  const code = await hasty.sees(ASKED);
  hasty.type("y\r");
  await hasty.sees(/Nothing was answered/);
  expect(await hasty.ended).not.toBe(0);
  const second = shell.onTerminal("approve", question);
  const fresh = await second.sees(ASKED);
  expect(fresh).not.toBe(code);
  second.type(`${fresh}\r`);
  expect(await second.ended).toBe(0);
  server.signal("SIGTERM");
  await server.ended;
});

test("G36: after a resize the question is drawn again in the new width, and the typed code is dropped", {
  timeout: 60_000,
}, async () => {
  const shell = new Shell();
  const command = [process.execPath, MAIN, "run", "--agent", TRICKY, "one"].map((word) => `'${word}'`).join(" ");
  const run = shell.command("script", "-qefc", `tty; stty cols 160 rows 50; TERM=xterm ${command}`, "/dev/null");
  const terminal = await run.sees(/(\/dev\/pts\/\d+)/);
  const code = await run.sees(ASKED);
  run.type(code);
  execFileSync("stty", ["-F", terminal, "cols", "40"]);
  const second = /Type \w{4} to allow it .*: [\s\S]*(Approval ask_[\s\S]*Type \w{4} to allow it .*: )/;
  const redrawn = stripVTControlCharacters(await run.sees(second));
  const rows = redrawn.split(/\r?\n/).filter((row) => row.startsWith("│"));
  expect(rows.length).toBeGreaterThan(1);
  for (const row of rows) expect(row.length).toBeLessThan(40);
  // Keys typed on the first drawing are dropped.
  run.type("\r");
  const last = await run.sees(/Nothing was answered[\s\S]*Type (\w{4}) to allow it .*: /);
  expect(last).not.toBe(code);
  run.type(`${last}\r`);
  await run.sees(/one: completed/);
});
