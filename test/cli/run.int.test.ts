// `belay run` without a server, as a user types it, in a pipe and on a terminal.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "../../src/cli/shared/exit-code.ts";
import { until } from "../../src/process/tree/poll-until.ts";
import { identityOf } from "../../src/process/tree/proc.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { AGENT, ASKED, jsonLines, MAIN, Shell } from "../fixtures/shell.ts";

const HERE = ["run", "--agent", AGENT] as const;

// Each test starts one or more commands, on a machine that may be busy with other tests.
describe("belay run without a server", { timeout: 60_000 }, () => {
  test("G27: the run is listed and stopped from another shell, like one of a server", async () => {
    const shell = new Shell();
    const run = shell.start(...HERE, "wait here");
    await run.sees(/here\n/);
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
    expect((await shell.belay("stop-all", "--yes")).code).toBe(0);
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    const after = await shell.belay("ps");
    expect({ code: after.code, err: after.err }).toMatchObject({
      code: EXIT_CODE.disconnected,
      err: expect.stringContaining("No server is running"),
    });
  });

  test.each([
    ["in its data directory", []],
    ["on a store that is named", ["--store", "other.db"]],
  ])("G38: warns that commands of tier group can reach Belay, %s", async (_, options) => {
    const shell = new Shell();
    writeFileSync(join(shell.home, "group.json"), JSON.stringify({ processes: { mechanism: "group" } }));
    const { code, err } = await shell.belay(...HERE, ...options, "--config", "group.json", "shell true");
    expect(code).toBe(0);
    expect(err).toContain("commands of tier group can reach Belay's own files and processes");
  });

  test("a second one connects to it, and can stop its own run after the first was killed", async () => {
    const shell = new Shell();
    const first = shell.start(...HERE, "wait here");
    await first.sees(/here\n/);
    const second = shell.start(...HERE, "wait there");
    await second.sees(/there\n/);
    expect((await shell.belay("ps")).out.match(/run_\w+ +run /g)).toHaveLength(2);
    first.signal("SIGKILL");
    await first.ended;
    second.signal("SIGINT");
    expect(await second.ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("a server that is started meanwhile waits for the end of the run, and then takes over", async () => {
    const shell = new Shell();
    const run = shell.start(...HERE, "wait here");
    await run.sees(/here\n/);
    const server = shell.start("serve", "--no-tcp", "--agent", AGENT);
    await server.sees(/waiting for the end of a run/);
    run.signal("SIGINT");
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    await server.sees(/is ready/);
    expect((await shell.belay("ps")).code).toBe(0);
    server.signal("SIGTERM");
    expect(await server.ended).toBe(0);
  });

  describe("the output and the exit code", () => {
    test("the text of the run is on stdout, notes are on stderr, and a completed run exits 0", async () => {
      const { code, out, err } = await new Shell().belay(...HERE, "say hello");
      expect({ code, out }).toEqual({ code: 0, out: "hello\n" });
      expect(err).toMatch(/run_\S+ in ses_\S+, in this program \(no server\)/);
      expect(err).toMatch(/run_\S+ completed/);
      expect(err).not.toContain("\u001b");
    });

    test("each other outcome has its own exit code", async () => {
      const shell = new Shell();
      const failed = await shell.belay(...HERE, "fail because");
      expect(failed.code).toBe(EXIT_OUTCOME.failed);
      expect(failed.err).toContain("failed: because");
      const cancelled = await shell.belay(...HERE, "--timeout", "1", "wait");
      expect(cancelled.code).toBe(EXIT_OUTCOME.cancelled);
      expect(cancelled.err).toContain("cancelled (by policy: belay run --timeout 1)");
    });

    test("a refused prompt exits with the code of the error, and prints nothing on stdout", async () => {
      const { code, out, err } = await new Shell().belay(...HERE, "--session", "ses_none", "say no");
      expect({ code, out }).toEqual({ code: EXIT_CODE.not_found, out: "" });
      expect(err).toContain("ses_none");
    });

    test("--json prints only JSON lines, the outcome last", async () => {
      const { code, out } = await new Shell().belay(...HERE, "--json", "say hello");
      const lines = jsonLines(out);
      expect(code).toBe(0);
      expect(lines[0]).toMatchObject({ type: "run.accepted" });
      expect(lines.at(-2)).toMatchObject({ type: "run.settled" });
      expect(lines.at(-1)).toEqual({
        outcome: { kind: "completed" },
        runId: lines[0]?.runId,
        sessionId: expect.stringMatching(/^ses_/),
      });
    });

    test("it does not exit with 0 while its agent waits without a timer or a socket", async () => {
      const shell = new Shell();
      const run = shell.start(...HERE, "wait here");
      await run.sees(/here\n/);
      // For as long as another program takes from its start to its exit.
      expect(await Promise.race([run.ended, shell.belay("version").then(() => "at work")])).toBe("at work");
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    });

    test("a closed terminal makes it exit with 129", async () => {
      const shell = new Shell();
      const run = `'${process.execPath}' '${MAIN}' ${HERE.join(" ")} drip`;
      const line = `trap : HUP; ${run}; echo $? > code.txt; mv code.txt code`;
      const terminal = shell.command("script", "-qefc", line, "/dev/null");
      await terminal.sees(/drop/);
      terminal.signal("SIGKILL");
      const file = join(shell.home, "code");
      expect(await until(() => existsSync(file), { clock: systemClock, waitMs: 30_000 })).toBe(true);
      expect(readFileSync(file, "utf8").trim()).toBe(String(EXIT_SIGNAL.SIGHUP));
    });

    test("a closed stderr does not end it: the exit code is the outcome", async () => {
      const run = new Shell().start(...HERE, "wait here");
      await run.sees(/here\n/);
      run.child.stderr?.destroy();
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    });

    test.runIf(existsSync("/dev/full"))("output that a full disk has lost is an error", async () => {
      const shell = new Shell();
      const line = [process.execPath, MAIN, ...HERE, "say lost"].map((word) => `'${word}'`).join(" ");
      const full = shell.command("sh", "-c", `${line} > /dev/full`);
      expect(await full.ended).toBe(EXIT_CODE.store_full);
      expect(full.err).toMatch(/run_\S+ completed[\s\S]*cannot be written/);
    });

    test("--detach is refused: the run could not continue without this program", async () => {
      const { code, err } = await new Shell().belay(...HERE, "--detach", "say hello");
      expect(code).toBe(EXIT_CODE.invalid);
      expect(err).toContain("belay serve");
    });
  });

  test("--cwd sets the directory of the session: below the workspace, or anywhere if that is allowed", async () => {
    const shell = Shell.withDataElsewhere();
    const [inside, beside] = [join(shell.home, "in"), mkdtempSync(join(tmpdir(), "belay-beside-"))];
    mkdirSync(inside);
    onTestFinished(() => rmSync(beside, { recursive: true, force: true }));
    const ran = await shell.belay(...HERE, "--cwd", "in", "shell pwd > where");
    expect(ran).toMatchObject({ code: 0, out: "shell: completed\n" });
    expect(readFileSync(join(inside, "where"), "utf8")).toBe(`${realpathSync(inside)}\n`);
    const refused = await shell.belay(...HERE, "--cwd", beside, "shell pwd > where");
    expect(refused).toMatchObject({ code: EXIT_CODE.forbidden, out: "" });
    expect(refused.err).toMatch(/outside of the workspace[\s\S]*--directories any/);
    expect(existsSync(join(beside, "where"))).toBe(false);
    const allowed = await shell.belay(...HERE, "--directories", "any", "--cwd", beside, "shell pwd > where");
    expect(allowed.code).toBe(0);
    expect(readFileSync(join(beside, "where"), "utf8")).toBe(`${realpathSync(beside)}\n`);
    const both = await shell.belay(...HERE, "--cwd", "in", "--session", "ses_x", "say no");
    expect(both.err).toContain("--cwd");
    expect(both.code).not.toBe(0);
  });

  describe("the prompt", () => {
    test.each([["-"], []])("is read from stdin with %j", async (...args) => {
      const { code, out } = await new Shell().piped("say piped\nin two lines\n", ...HERE, ...args.flat());
      expect({ code, out }).toEqual({ code: 0, out: "piped\nin two lines\n" });
    });

    test("is refused with advice if it is empty, or missing on a terminal", async () => {
      const shell = new Shell();
      const empty = await shell.piped("  \n", ...HERE);
      expect(empty.code).toBe(EXIT_CODE.invalid);
      const none = shell.onTerminal(...HERE);
      await none.sees(/There is no prompt/);
      expect(await none.ended).toBe(EXIT_CODE.invalid);
    });

    test("is refused if it is not UTF-8: decoding would change the bytes", async () => {
      const { code, err } = await new Shell().piped(Buffer.from([0x73, 0x61, 0x79, 0x20, 0xff]), ...HERE);
      expect(code).toBe(EXIT_CODE.invalid);
      expect(err).toMatch(/not UTF-8 text[\s\S]*--file/);
    });

    test("has attachments, as text or as bytes", async () => {
      const shell = new Shell();
      writeFileSync(join(shell.home, "a.txt"), "some text");
      writeFileSync(join(shell.home, "b.png"), Buffer.from([0x89, 0x50, 0, 1]));
      const { out } = await shell.belay(...HERE, "--file", "a.txt", "--file", "b.png", "data");
      expect(JSON.parse(out)).toEqual({
        attachments: [
          { name: "a.txt", mediaType: "text/plain", text: "some text" },
          { name: "b.png", mediaType: "image/png", base64: "iVAAAQ==" },
        ],
      });
      const missing = await shell.belay(...HERE, "data", "--file", "c.txt");
      expect(missing.code).toBe(EXIT_CODE.not_found);
    });

    test("G2: the same key and content is the same run and outcome; other content is a conflict", async () => {
      const shell = new Shell();
      const first = await shell.belay(...HERE, "--key", "k1", "--json", "say once");
      const again = await shell.belay(...HERE, "--key", "k1", "--json", "say once");
      expect(jsonLines(again.out).at(-1)).toEqual(jsonLines(first.out).at(-1));
      const other = await shell.belay(...HERE, "--key", "k1", "say twice");
      expect(other.code).toBe(EXIT_CODE.conflict);
    });
  });

  describe("Ctrl-C", () => {
    test("once: the run is cancelled, its outcome is waited for, and the receipt is printed", async () => {
      const run = new Shell().start(...HERE, "wait here");
      await run.sees(/here\n/);
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(run.out).toBe("here\n");
      expect(run.err).toMatch(/cancel: stopping: recorded at position \d+/);
      expect(run.err).toContain("cancelled (Ctrl-C)");
    });

    test("once: the process tree of the run is dead", async () => {
      const run = new Shell().start(...HERE, "shell trap '' TERM INT; sleep 300 & wait");
      const pid = Number(await run.sees(/runs as process (\d+)/));
      expect(identityOf(pid)).toBeDefined();
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(identityOf(pid)).toBeUndefined();
    });

    test("twice: exits at once, and says what happens to the run", async () => {
      const run = new Shell().patient().start(...HERE, "deaf");
      await run.sees(/not listening/);
      run.signal("SIGINT");
      await run.sees(/cancel: stopping/);
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_SIGNAL.SIGINT);
      expect(run.err).toMatch(/Exited at once\. The stop of run_\S+ is recorded/);
    });

    test("G24: SIGTERM parks the run, and the next program resumes it", async () => {
      const shell = new Shell();
      const run = shell.start(...HERE, "--key", "k", "resume");
      await run.sees(/begun\n/);
      run.signal("SIGTERM");
      expect(await run.ended).toBe(EXIT_SIGNAL.SIGTERM);
      const again = await shell.belay(...HERE, "--key", "k", "resume");
      expect(again.code).toBe(0);
      expect(again.out).toContain("taken up again");
    });
  });

  describe("questions of the run", () => {
    test("without a terminal an approval is denied and a question is withdrawn at once", async () => {
      const shell = new Shell();
      const approval = await shell.belay(...HERE, "write x.txt");
      expect(approval.out).toBe("write_file: failed\n");
      expect(approval.err).toContain("which cannot be given here: denied");
      const question = await shell.belay(...HERE, "ask");
      expect(question.out).toBe("colour: withdrawn\n");
    });

    test("on a terminal the exact bytes are shown, invisible ones escaped, and the code approves them", async () => {
      const run = new Shell().onTerminal(...HERE, "write x.txt");
      const first = await run.sees(ASKED);
      expect(run.out).toContain('"text": "\\u{202e}evil"');
      expect(run.out).not.toContain("\u202e");
      run.type("y\r");
      const second = await run.sees(/Type [\s\S]*Type (\w{4}) to allow it .*: /);
      expect(second).not.toBe(first);
      run.type(`${second}\r`);
      await run.sees(/write_file: completed/);
      expect(await run.ended).toBe(0);
    });

    test("on a terminal `n` denies a call, with a reason; a question is answered by a line", async () => {
      const shell = new Shell();
      const denied = shell.onTerminal(...HERE, "write x.txt");
      await denied.sees(ASKED);
      denied.type("n not today\r");
      await denied.sees(/denied by the user: not today/);
      expect(await denied.ended).toBe(0);
      const question = shell.onTerminal(...HERE, "ask");
      await question.sees(/│ Which colour\?[\s\S]*│ +red[\s\S]*Answer: /);
      question.type("green\r");
      await question.sees(/colour: green/);
      expect(await question.ended).toBe(0);
    });

    test("Ctrl-D at an approval denies it, since it cannot be asked again", async () => {
      const run = new Shell().onTerminal(...HERE, "write x.txt");
      await run.sees(ASKED);
      run.type("\u0004");
      await run.sees(/which cannot be given here: denied/);
      expect(await run.ended).toBe(0);
    });

    test("Ctrl-C at the question cancels the run", async () => {
      const run = new Shell().onTerminal(...HERE, "write x.txt");
      await run.sees(ASKED);
      run.type("\u0003");
      await run.sees(/cancelled \(Ctrl-C\)/);
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    });
  });
});
