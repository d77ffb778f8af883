// `belay acp-front` as an editor starts it. The external agent is another `belay acp`.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { AGENT, MAIN, Shell } from "../fixtures/shell.ts";
import { Editor } from "./editor.ts";

const EXTERNAL = [process.execPath, MAIN, "acp", "--agent", AGENT] as const;
const FRONT = ["acp-front", "--", ...EXTERNAL] as const;

const homeOf = (editor: Editor): Promise<string> => editor.program.sees(/belay ps --home (\S+?)["\s]/);

describe("belay acp-front", { timeout: 60_000 }, () => {
  test("the editor gets the text of the external agent, whose runs are recorded by Belay", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...FRONT);
    const session = await editor.newSession(shell.home);
    const { result } = await editor.answer(editor.prompt(session, "say hello"));
    expect(result).toMatchObject({ stopReason: "end_turn" });
    expect(editor.said).toBe("hello");
    const home = await homeOf(editor);
    expect(home.startsWith(join(shell.home, "fronts"))).toBe(true);
    expect((await shell.belay("runs", session, "--home", home)).out).toContain("completed");
    expect(await editor.hangUp()).toBe(0);
  });

  test("the external agent gets the provider keys, and no variable of Belay", async () => {
    const shell = new Shell({ OPENAI_API_KEY: "key-of-the-agent" });
    const editor = await Editor.open(shell, ...FRONT);
    const session = await editor.newSession(shell.home);
    await editor.answer(editor.prompt(session, "env OPENAI_API_KEY"));
    await editor.answer(editor.prompt(session, "env BELAY_HOME"));
    expect(editor.said).toBe("key-of-the-agentnot set");
    expect(editor.program.err).not.toContain("key-of-the-agent");
  });

  test("a cancel from another shell ends the external agent's run, and the session can continue", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...FRONT);
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    const home = await homeOf(editor);
    expect((await shell.belay("ps", "--home", home)).out).toContain("running");
    expect((await shell.belay("cancel", session, "--home", home)).code).toBe(0);
    expect((await editor.answer(prompt)).result).toMatchObject({ stopReason: "cancelled" });
    const { result } = await editor.answer(editor.prompt(session, "say more"));
    expect(result).toMatchObject({ stopReason: "end_turn" });
  });

  test("the end of the input ends the external agent too", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...FRONT);
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    const home = await homeOf(editor);
    expect(await editor.hangUp()).toBe(0);
    expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
    // The external agent would still be found in its own home.
    expect((await shell.belay("ps", "--home", join(shell.home, ".local/state/belay"))).code).toBe(
      EXIT_CODE.disconnected,
    );
    expect((await shell.belay("ps", "--home", home)).code).toBe(EXIT_CODE.disconnected);
  });

  test("another command is another agent, with its own home", async () => {
    const shell = new Shell();
    const one = await Editor.open(shell, ...FRONT);
    const other = await Editor.open(shell, ...FRONT, "--at-end", "cancel");
    expect(await homeOf(one)).not.toBe(await homeOf(other));
  });

  test("two windows with one command share a home; the second's run continues when the first is closed", async () => {
    const shell = new Shell();
    const first = await Editor.open(shell, ...FRONT);
    const second = await Editor.open(shell, ...FRONT);
    expect(await homeOf(first)).toBe(await homeOf(second));
    const session = await second.newSession(shell.home);
    const prompt = second.prompt(session, "wait here");
    await second.sees("here");
    await first.hangUp();
    await second.program.sees(/this program is the next host/);
    second.notify("session/cancel", { sessionId: session });
    expect((await second.answer(prompt)).result).toMatchObject({ stopReason: "cancelled" });
    expect(second.answersTo(prompt)).toHaveLength(1);
  });

  test("without a command it exits 2 and names the missing argument", async () => {
    const { code, err, out } = await new Shell().belay("acp-front");
    expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
    expect(err).toContain("acp-front needs to know which command");
  });

  test("if the program is missing, each prompt fails with its name, and Belay keeps running", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, "acp-front", "--", "no-such-agent");
    const session = await editor.newSession(shell.home);
    const { error } = await editor.answer(editor.prompt(session, "say hello"));
    expect(error?.message).toContain("no-such-agent");
    expect(await editor.hangUp()).toBe(0);
  });
});
