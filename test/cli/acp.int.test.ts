// `belay acp` as an editor starts it: real programs, real pipes, and what becomes of everything when the editor goes.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_CODE, EXIT_SIGNAL } from "../../src/cli/shared/exit-code.ts";
import { readServer } from "../../src/sdk/data-dir.ts";
import { AGENT, MAIN, Shell } from "../fixtures/shell.ts";
import { Editor } from "./editor.ts";

const ACP = ["acp", "--agent", AGENT] as const;

/** A tree that does not listen, and of which a part has left its group. */
class Tree {
  /** In the words that each of it was started with, also of a shell that is about to become its `sleep`. */
  readonly #mark = `98765.${process.pid}`;
  readonly #up: string;
  readonly command: string;

  constructor(folder: string) {
    this.#up = join(folder, "up");
    execFileSync("mkfifo", [this.#up]);
    const away = `trap '' TERM INT HUP; sleep ${this.#mark} & echo up > ${this.#up}; wait`;
    this.command = `setsid sh -c "${away}" & trap '' TERM; sleep ${this.#mark} & wait`;
  }

  /** Resolves when the part that has left is there. */
  async up(): Promise<void> {
    expect(await readFile(this.#up, "utf8")).toBe("up\n");
    expect(this.alive).toBeGreaterThan(0);
  }

  get alive(): number {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && this.#isOurs(name)).length;
  }

  #isOurs(pid: string): boolean {
    try {
      return readFileSync(join("/proc", pid, "cmdline"), "utf8").includes(this.#mark);
    } catch {
      // Gone since.
      return false;
    }
  }
}

/** The whole of a program that starts ours and hands on what both say. */
const asEditor = `(words) => {
  const child = require("node:child_process").spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
  process.stdin.pipe(child.stdin);
  child.stdout.pipe(process.stdout);
}`;

describe("belay acp", { timeout: 60_000 }, () => {
  test("one prompt, from its session to its answer; nothing but the protocol on stdout", {
    meta: { id: "acp/stray-output-on-stderr" },
  }, async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const { result } = await editor.answer(editor.prompt(session, "print into the protocol"));
    expect(result).toMatchObject({ stopReason: "end_turn" });
    expect(editor.said).toBe("printed");
    expect(await editor.hangUp()).toBe(0);
    // Reading them has parsed each.
    expect(editor.lines.length).toBeGreaterThan(3);
    expect(editor.program.out).not.toContain("\ninto the protocol");
    expect(editor.program.err.match(/^into the protocol$/gm)).toHaveLength(3);
    expect(readServer({ serverFile: join(shell.home, "server.json") })).toBeUndefined();
  });

  test("what it does is seen and stopped from any other shell, and put down in the trail", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    expect((await shell.belay("ps")).out).toMatch(new RegExp(`${session}.*running|running.*${session}`, "s"));
    expect((await shell.belay("cancel", session)).code).toBe(0);
    expect((await editor.answer(prompt)).result).toMatchObject({ stopReason: "cancelled" });
    const { out } = await shell.belay("logs");
    expect(out).toMatch(/\(acp\) \S*prompt/);
  });

  test("G19: the end of its input while a tree runs that does not listen: answered, dead, gone", async () => {
    const shell = Shell.withDataElsewhere();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const tree = new Tree(shell.home);
    const prompt = editor.prompt(session, `shell ${tree.command}`);
    await tree.up();
    expect(await editor.hangUp()).toBe(0);
    expect(tree.alive).toBe(0);
    expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
  });

  test("G19: an editor that is killed takes it along, and the tree", async () => {
    const shell = Shell.withDataElsewhere();
    const started = JSON.stringify([MAIN, ...ACP]);
    const killed = new Editor(shell.command(process.execPath, "-e", `(${asEditor})(${started})`));
    await killed.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const session = await killed.newSession(shell.home);
    const tree = new Tree(shell.home);
    killed.prompt(session, `shell ${tree.command}`);
    await tree.up();
    killed.program.signal("SIGKILL");
    // Its error output is held by whoever it had started, too: ended are both.
    expect(await killed.program.ended).toBe("SIGKILL");
    expect(killed.program.err).toContain("1 run of it had not ended: cancelled");
    expect(tree.alive).toBe(0);
  });

  test("whatever was asked before the end of the input is answered", async () => {
    const shell = new Shell();
    const editor = new Editor(shell.start(...ACP));
    const asked = [
      editor.send("initialize", { protocolVersion: 1, clientCapabilities: {} }),
      editor.send("session/new", { cwd: shell.home, mcpServers: [] }),
      editor.send("session/list", {}),
      editor.send("no/such/method", {}),
    ];
    expect(await editor.hangUp()).toBe(0);
    expect(asked.map((id) => editor.answersTo(id).length)).toEqual([1, 1, 1, 1]);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s: as if the editor had hung up", async (signal) => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    editor.program.signal(signal);
    expect(await editor.program.ended).toBe(EXIT_SIGNAL[signal]);
    expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
  });

  test("work that never listens does not keep it", async () => {
    const shell = new Shell().patient();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    editor.prompt(session, "deaf");
    await editor.sees("not listening");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.program.err).toContain("had not stopped in time");
  });

  test("F10: an editor that does not read any more is gone, whatever becomes of its other end", {
    meta: { id: "acp/closed-pipe-cancels-runs" },
  }, async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    editor.prompt(session, "drip");
    await editor.sees("drop");
    editor.program.child.stdout?.destroy();
    expect(await editor.program.ended).toBe(0);
    expect(editor.program.err).toContain("the editor is gone; 1 run of it had not ended: cancelled");
  });

  test("F13: an editor that does not read what it is told can be stopped from elsewhere", {
    meta: { id: "acp/unread-editor-stoppable-elsewhere" },
  }, async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "flood");
    await editor.sees("flood");
    editor.program.child.stdout?.pause();
    expect((await shell.belay("cancel", session, "--wait")).code).toBe(0);
    editor.program.child.stdout?.resume();
    expect((await editor.answer(prompt)).result).toMatchObject({ stopReason: "cancelled" });
  });

  test("--at-end keep: the run is set down, and the next one takes it up", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP, "--at-end", "keep");
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "resume");
    await editor.sees("begun");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.answersTo(prompt)).toEqual([]);
    expect(editor.program.err).toContain("1 run of it had not ended: set down, and taken up at the next start");
    const next = await Editor.open(shell, ...ACP);
    expect((await shell.belay("run", "--session", session, "say after it")).out).toBe("after it\n");
    expect((await next.ask("session/load", { sessionId: session, cwd: shell.home, mcpServers: [] })).error).toBe(
      undefined,
    );
    expect(next.said).toContain("taken up again");
  });

  test("on a terminal it says what it is for", async () => {
    const shell = new Shell();
    const program = shell.onTerminal(...ACP);
    await program.sees(/"agent_servers"[\s\S]*Ctrl-D ends it/);
    await program.sees(/ready for an editor/);
    program.type("\u0004");
    expect(await program.ended).toBe(0);
  });
});

describe("two windows of an editor", { timeout: 60_000 }, () => {
  test.each([
    ["closed", (first: Editor) => first.hangUp()],
    [
      "killed",
      (first: Editor) => {
        first.program.signal("SIGKILL");
        return first.program.ended;
      },
    ],
  ] as const)(
    "G25: the first is %s while the second's run is live: it goes on and is answered once",
    async (_, end) => {
      const shell = new Shell();
      const first = await Editor.open(shell, ...ACP);
      const second = await Editor.open(shell, ...ACP);
      expect(second.program.err).toContain(`in process ${first.program.child.pid}`);
      const session = await second.newSession(shell.home);
      const own = await first.newSession(shell.home);
      first.prompt(own, "wait here");
      await first.sees("here");
      const prompt = second.prompt(session, "resume");
      await second.sees("begun");
      await end(first);
      expect((await second.answer(prompt)).result).toMatchObject({ stopReason: "end_turn" });
      expect(second.said).toContain("taken up again");
      await second.program.sees(/it goes on in this program/);
      const { result } = await second.answer(second.prompt(session, "say more"));
      expect(result).toMatchObject({ stopReason: "end_turn" });
      expect(second.answersTo(prompt)).toHaveLength(1);
      expect((await shell.belay("ps")).code).toBe(0);
      expect(await second.hangUp()).toBe(0);
    },
  );

  test("one with another agent is told so", async () => {
    const shell = new Shell();
    await Editor.open(shell, ...ACP);
    const { code, err, out } = await shell.belay(...ACP, "--mode", "auto");
    expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
    expect(err).toContain("with another agent");
  });
});

describe("belay acp with a server", { timeout: 60_000 }, () => {
  test("G32: the server of the home does the work, and goes on with it when the editor has gone", async () => {
    const shell = new Shell();
    await shell.serve();
    const editor = await Editor.open(shell, "acp");
    const session = await editor.newSession(shell.home);
    editor.prompt(session, "wait here");
    await editor.sees("here");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.program.err).toContain("it goes on at the server");
    expect((await shell.belay("ps")).out).toContain("running");
  });

  test("--at-end cancel: it does not", async () => {
    const shell = new Shell();
    await shell.serve();
    const editor = await Editor.open(shell, "acp", "--at-end", "cancel");
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
  });

  test("an agent of one's own is refused, since the server has one", async () => {
    const shell = new Shell();
    await shell.serve();
    const { code, err, out } = await shell.belay(...ACP);
    expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
    expect(err).toMatch(/--agent is for work without a server/);
  });
});
