// `belay acp` as an editor starts it: real programs and pipes, and what happens when the editor disconnects.
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

/** A process tree that ignores SIGTERM, and of which a part has left its process group. */
class Tree {
  /** Is in the command line of each process, including a shell that is about to exec its `sleep`. */
  readonly #mark = `98765.${process.pid}`;
  readonly #up: string;
  readonly command: string;

  constructor(folder: string) {
    this.#up = join(folder, "up");
    execFileSync("mkfifo", [this.#up]);
    const away = `trap '' TERM INT HUP; sleep ${this.#mark} & echo up > ${this.#up}; wait`;
    this.command = `setsid sh -c "${away}" & trap '' TERM; sleep ${this.#mark} & wait`;
  }

  /** Resolves when the part in another group has started. */
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
      // Exited meanwhile.
      return false;
    }
  }
}

/** The source of a program that starts `belay acp` and forwards stdin and stdout. */
const asEditor = `(words) => {
  const child = require("node:child_process").spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
  process.stdin.pipe(child.stdin);
  child.stdout.pipe(process.stdout);
}`;

describe("belay acp", { timeout: 60_000 }, () => {
  test("a prompt is answered, and only the protocol is on stdout", {
    meta: { id: "acp/stray-output-on-stderr" },
  }, async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    const { result } = await editor.answer(editor.prompt(session, "print into the protocol"));
    expect(result).toMatchObject({ stopReason: "end_turn" });
    expect(editor.said).toBe("printed");
    expect(await editor.hangUp()).toBe(0);
    // `lines` parses each line.
    expect(editor.lines.length).toBeGreaterThan(3);
    expect(editor.program.out).not.toContain("\ninto the protocol");
    expect(editor.program.err.match(/^into the protocol$/gm)).toHaveLength(3);
    expect(readServer({ serverFile: join(shell.home, "server.json") })).toBeUndefined();
  });

  test("its runs are listed and stopped from another shell, and recorded in the audit trail", async () => {
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

  test("G19: at the end of the input a tree that ignores SIGTERM is killed, and its prompt is answered", async () => {
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

  test("G19: when the editor is killed, belay acp exits and its process tree is dead", async () => {
    const shell = Shell.withDataElsewhere();
    const started = JSON.stringify([MAIN, ...ACP]);
    const killed = new Editor(shell.command(process.execPath, "-e", `(${asEditor})(${started})`));
    await killed.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const session = await killed.newSession(shell.home);
    const tree = new Tree(shell.home);
    killed.prompt(session, `shell ${tree.command}`);
    await tree.up();
    killed.program.signal("SIGKILL");
    // stderr is shared with `belay acp`, so its end means that both have exited.
    expect(await killed.program.ended).toBe("SIGKILL");
    expect(killed.program.err).toContain("1 run of it had not ended: cancelled");
    expect(tree.alive).toBe(0);
  });

  test("every request before the end of the input is answered", async () => {
    const shell = new Shell();
    const editor = new Editor(shell.start(...ACP));
    const requests = [
      editor.send("initialize", { protocolVersion: 1, clientCapabilities: {} }),
      editor.send("session/new", { cwd: shell.home, mcpServers: [] }),
      editor.send("session/list", {}),
      editor.send("no/such/method", {}),
    ];
    expect(await editor.hangUp()).toBe(0);
    expect(requests.map((id) => editor.answersTo(id).length)).toEqual([1, 1, 1, 1]);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s is handled like a disconnect of the editor",
    async (signal) => {
      const shell = new Shell();
      const editor = await Editor.open(shell, ...ACP);
      const session = await editor.newSession(shell.home);
      const prompt = editor.prompt(session, "wait here");
      await editor.sees("here");
      editor.program.signal(signal);
      expect(await editor.program.ended).toBe(EXIT_SIGNAL[signal]);
      expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
    },
  );

  test("work that ignores the stop does not delay the exit", async () => {
    const shell = new Shell().patient();
    const editor = await Editor.open(shell, ...ACP);
    const session = await editor.newSession(shell.home);
    editor.prompt(session, "deaf");
    await editor.sees("not listening");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.program.err).toContain("had not stopped in time");
  });

  test("F10: an editor that closes its end of stdout counts as disconnected", {
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

  test("F13: the run of an editor that does not read its input can be stopped from another shell", {
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

  test("--at-end keep: the run is parked, and the next program resumes it", async () => {
    const shell = new Shell();
    const editor = await Editor.open(shell, ...ACP, "--at-end", "keep");
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "resume");
    await editor.sees("begun");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.answersTo(prompt)).toEqual([]);
    expect(editor.program.err).toContain("1 run of it had not ended: parked until the next start");
    const next = await Editor.open(shell, ...ACP);
    expect((await shell.belay("run", "--session", session, "say after it")).out).toBe("after it\n");
    expect((await next.ask("session/load", { sessionId: session, cwd: shell.home, mcpServers: [] })).error).toBe(
      undefined,
    );
    expect(next.said).toContain("taken up again");
  });

  test("on a terminal it prints the settings for an editor", async () => {
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
    "G25: the first is %s while the second's run is live: the run resumes and is answered once",
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
      await second.program.sees(/this program is the next host/);
      const { result } = await second.answer(second.prompt(session, "say more"));
      expect(result).toMatchObject({ stopReason: "end_turn" });
      expect(second.answersTo(prompt)).toHaveLength(1);
      expect((await shell.belay("ps")).code).toBe(0);
      expect(await second.hangUp()).toBe(0);
    },
  );

  test("a second one with another agent is refused", async () => {
    const shell = new Shell();
    await Editor.open(shell, ...ACP);
    const { code, err, out } = await shell.belay(...ACP, "--mode", "auto");
    expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
    expect(err).toContain("with another agent");
  });
});

describe("belay acp with a server", { timeout: 60_000 }, () => {
  test("G32: a run on the server of the home continues after the editor has disconnected", async () => {
    const shell = new Shell();
    await shell.serve();
    const editor = await Editor.open(shell, "acp");
    const session = await editor.newSession(shell.home);
    editor.prompt(session, "wait here");
    await editor.sees("here");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.program.err).toContain("it continues on the server");
    expect((await shell.belay("ps")).out).toContain("running");
  });

  test("--at-end cancel: the run is cancelled when the editor disconnects", async () => {
    const shell = new Shell();
    await shell.serve();
    const editor = await Editor.open(shell, "acp", "--at-end", "cancel");
    const session = await editor.newSession(shell.home);
    const prompt = editor.prompt(session, "wait here");
    await editor.sees("here");
    expect(await editor.hangUp()).toBe(0);
    expect(editor.answersTo(prompt)).toMatchObject([{ result: { stopReason: "cancelled" } }]);
  });

  test("an option that selects an agent is refused, since the server has its own", async () => {
    const shell = new Shell();
    await shell.serve();
    const { code, err, out } = await shell.belay(...ACP);
    expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
    expect(err).toMatch(/--agent is for work without a server/);
  });
});
