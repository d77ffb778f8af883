// `belay serve` and its clients, as a user types them: a real server, real sockets, real signals.
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { DEFAULT_PORT } from "../../src/cli/shared/server/listeners.ts";
import { identityOf } from "../../src/process/tree/proc.ts";
import { readServer } from "../../src/sdk/data-dir.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { AGENT, jsonLines, type Program, type Said, Shell } from "../fixtures/shell.ts";

const noteOf = (shell: Shell) => readServer({ serverFile: join(shell.home, "server.json") });

const tokenOf = (shell: Shell): string => readFileSync(join(shell.home, "token"), "utf8").trim();

const ask = (shell: Shell, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${noteOf(shell)?.url}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${tokenOf(shell)}`, "content-type": "application/json" },
  });

/** The last line of JSON output. */
const lastOf = ({ out }: Said | Program) => jsonLines(out).at(-1);

// Each test starts a server and several commands, on a machine that may be busy with other tests.
describe("belay serve", { timeout: 60_000 }, () => {
  describe("when it is ready", () => {
    test("it prints its addresses, what it serves, and a login command that works; never the token", async () => {
      const shell = new Shell();
      const server = await shell.serve();
      const { url = "", socket = "" } = noteOf(shell) ?? {};
      expect(server.out).toContain(`listens: ${url}`);
      expect(server.out).toContain(`socket: ${socket}`);
      expect(server.out).toContain(`agent: ${AGENT}`);
      expect(server.out).toMatch(/processes: held by tier (namespace|cgroup|anchor|group)/);
      expect(server.out).toContain(
        `log in: curl -H "Authorization: Bearer $(cat ${join(shell.home, "token")})" ${url}/v1/status`,
      );
      expect(server.out.match(/^try: /gm)).toHaveLength(3);
      expect((await ask(shell, "/v1/status")).status).toBe(200);
      expect((await fetch(`${url}/v1/status`)).status).toBe(401);
      expect(server.out + server.err).not.toContain(tokenOf(shell));
    });

    test("G35: only its user can access its files", { meta: { id: "G35/data-files-private" } }, async () => {
      const shell = new Shell();
      await shell.serve();
      const modes = ["belay.db", "belay.db-wal", "server.json", "token", "tokens.json", "belay.sock", "audit"].map(
        (name) => [name, (statSync(join(shell.home, name)).mode & 0o077).toString(8)],
      );
      expect(modes).toEqual(modes.map(([name]) => [name, "0"]));
    });

    test("G33: the limits of changes and streams per token are those of the options", async () => {
      const shell = new Shell();
      await shell.serve("--changes-per-second", "1", "--streams-per-token", "1");
      const change = async (): Promise<number> => (await ask(shell, "/v1/sessions", { method: "POST" })).status;
      // A burst of two, then one per second: of four in a row some are refused, however slow this machine is.
      const changes = await Promise.all([change(), change(), change(), change()]);
      expect(changes.filter((status) => status === 201).length).toBeGreaterThanOrEqual(2);
      expect(changes).toContain(429);
      const stop = new AbortController();
      const open = async (): Promise<number> => (await ask(shell, "/v1/events", { signal: stop.signal })).status;
      expect([await open(), await open()]).toEqual([200, 429]);
      stop.abort();
    });

    test("without a configuration it runs the demo agent, and says so", async () => {
      const shell = new Shell();
      const server = shell.start("serve", "--port", "0");
      await server.sees(/agent: demo agent\nnote: No model is configured[^\n]*--model/);
      await server.sees(/try: belay run .*'count to 30'/);
      expect(server.out).not.toContain("mode:");
      const run = shell.start("run", "spawn");
      const pid = Number(await run.sees(/runs as process (\d+)/));
      expect((await shell.belay("stop-all", "--yes")).code).toBe(0);
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(identityOf(pid)).toBeUndefined();
    });

    test("a missing workspace is refused by name, and no file is created", async () => {
      const shell = new Shell();
      const { code, err } = await shell.belay("serve", "--port", "0", "--agent", AGENT, "--workspace", "absent");
      expect(code).toBe(EXIT_CODE.invalid);
      expect(err).toContain(`The workspace ${join(shell.home, "absent")} does not exist.`);
      expect(existsSync(join(shell.home, "belay.db"))).toBe(false);
    });

    test("G39: a found configuration is refused; --no-config, as the error says, ignores it", async () => {
      const shell = new Shell();
      const file = join(shell.home, "belay.config.json");
      writeFileSync(file, JSON.stringify({ mode: "auto" }));
      const refused = await shell.belay("serve", "--port", "0", "--agent", AGENT);
      expect(refused.code).toBe(EXIT_CODE.invalid);
      expect(refused.err).toContain(`belay trust ${file}`);
      expect(refused.err).toContain("--no-config");
      expect((await shell.serve("--no-config")).out).toContain("mode: ask");
    });

    test("--no-tcp opens no port; the command line finds the socket", async () => {
      const shell = new Shell();
      const server = await shell.serve("--no-tcp");
      expect(server.out).not.toContain("listens:");
      expect(noteOf(shell)?.url).toBeUndefined();
      expect((await shell.belay("run", "say by socket")).out).toBe("by socket\n");
    });

    test("a home whose path is too long for a socket has one elsewhere, which is removed at the end", async () => {
      const shell = new Shell();
      const deep = join(shell.home, "d".repeat(100));
      const server = await shell.serve("--home", deep);
      const { socket = "" } = readServer({ serverFile: join(deep, "server.json") }) ?? {};
      expect(socket.startsWith(deep)).toBe(false);
      expect((await shell.belay("run", "--home", deep, "say hello")).out).toBe("hello\n");
      server.signal("SIGTERM");
      expect(await server.ended).toBe(0);
      expect(existsSync(join(socket, ".."))).toBe(false);
    });

    test("a taken default port is replaced by another; a taken port of --port is an error", {
      meta: { id: "cli/default-port-taken" },
    }, async () => {
      const holder = createServer();
      // The port is taken, by this test or by another program.
      await new Promise<void>((resolve) => {
        holder.once("error", () => resolve());
        holder.listen(DEFAULT_PORT, "127.0.0.1", resolve);
      });
      onTestFinished(() => void holder.close());
      const shell = new Shell();
      const server = shell.start("serve", "--agent", AGENT);
      await server.sees(new RegExp(`listens: http://127.0.0.1:\\d+ \\(port ${DEFAULT_PORT} is taken`));
      const other = await new Shell().belay("serve", "--port", String(DEFAULT_PORT), "--agent", AGENT);
      expect(other.code).toBe(EXIT_CODE.unavailable);
      expect(other.err).toContain(String(DEFAULT_PORT));
    });

    test("a public address without TLS is refused, and the error names both solutions", async () => {
      const { code, err } = await new Shell().belay("serve", "--host", "0.0.0.0", "--port", "0");
      expect(code).toBe(EXIT_CODE.forbidden);
      expect(err).toMatch(/TLS[\s\S]*proxy/);
    });

    test("a stale server.json of a dead run is ignored while another program has the directory", async () => {
      const shell = new Shell();
      const dead = shell.command("true");
      await dead.ended;
      const left = { pid: dead.child.pid, startedAt: 1, version: "0", host: "run", socket: join(shell.home, "gone") };
      const holder = await openSqliteStore({ file: join(shell.home, "belay.db") });
      onTestFinished(() => holder.close());
      writeFileSync(join(shell.home, "server.json"), JSON.stringify(left));
      const { code, err } = await shell.belay("serve", "--no-tcp");
      expect(code).toBe(EXIT_CODE.store_locked);
      expect(err).toContain(`is in use by process ${process.pid}`);
      expect(err).not.toContain(`process ${dead.child.pid}`);
    });

    test("a second server on the same home is refused, with the process and address of the first", {
      meta: { id: "G26/second-serve-refused" },
    }, async () => {
      const shell = new Shell();
      await shell.serve();
      const { pid, url } = noteOf(shell) ?? {};
      const second = await shell.belay("serve", "--port", "0", "--agent", AGENT);
      expect(second.code).toBe(EXIT_CODE.store_locked);
      expect(second.err).toContain(`process ${pid}, at ${url}`);
      const elsewhere = await shell.belay("serve", "--port", "0", "--socket", join(shell.home, "two.sock"));
      expect(elsewhere.code).toBe(EXIT_CODE.store_locked);
      expect(noteOf(shell)?.pid).toBe(pid);
      expect((await shell.belay("run", "say still there")).out).toBe("still there\n");
    });
  });

  describe("run, ps, cancel", () => {
    test("a run is listed and cancelled from another shell, and its own shell prints the outcome", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "wait for it");
      const runId = await run.sees(/(run_\S+) in ses_/);
      await run.sees(/for it\n/);
      expect((await shell.belay("ps")).out).toContain(runId);
      const cancel = await shell.belay("cancel", runId, "--reason", "enough", "--json");
      expect(cancel.code).toBe(0);
      expect(lastOf(cancel)).toMatchObject({ kind: "stopping", first: true });
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(run.err).toContain("cancelled (enough)");
      expect((await shell.belay("logs")).out).toMatch(new RegExp(`local \\(socket\\) .*cancel.* ${runId} -> stopping`));
    });

    test("--detach prints the id of the run and exits; logs --follow shows the rest", async () => {
      const shell = new Shell();
      await shell.serve();
      const detached = await shell.belay("run", "--detach", "say later");
      expect(detached.code).toBe(0);
      const runId = detached.out.trim();
      expect(runId).toMatch(/^run_\S+$/);
      const follow = await shell.belay("logs", runId, "--follow");
      expect(follow.code).toBe(0);
      expect(follow.out).toMatch(/run\.accepted .*say later[\s\S]*run\.settled .*completed/);
      const json = await shell.belay("run", "--detach", "--json", "say later");
      expect(lastOf(json)).toMatchObject({ accepted: { kind: "accepted" }, runId: expect.stringMatching(/^run_/) });
    });

    test("logs prints the output of a process, by stream or as it arrives", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "shell echo one; echo two >&2; read -r line; echo never");
      const id = await run.sees(/(proc_\S+) runs as process/);
      expect(await run.ended).toBe(0);
      expect((await shell.belay("logs", id, "--stream", "stdout")).out).toBe("one\nnever\n");
      expect((await shell.belay("logs", id, "--stream", "stderr")).out).toBe("two\n");
      const pages = jsonLines((await shell.belay("logs", id, "--follow", "--json")).out);
      expect(pages.at(-1)).toMatchObject({ end: true });
    });

    test("without a terminal an approval waits for another client, and the run prints how to answer", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "write x.txt");
      const question = await run.sees(/Answer with: belay approve (ask_\S+), or/);
      expect((await shell.belay("approve", question, "--yes")).code).toBe(0);
      expect(await run.ended).toBe(0);
      expect(run.out).toBe("write_file: completed\n");
    });

    test("a question that another client has answered is removed from the terminal", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.onTerminal("run", "write first.txt second.txt");
      await run.sees(/"first.txt"[\s\S]*to allow it .*: /);
      const { out } = await shell.belay("approve", "--json");
      const question = /"(ask_[^"]+)"/.exec(out)?.[1] ?? "";
      expect((await shell.belay("deny", question)).code).toBe(0);
      // One at a time: the second is not asked while the first is open.
      run.type(`${await run.sees(/"second.txt"[\s\S]*Type (\w{4}) to allow it .*: /)}\r`);
      await run.sees(/write_file: failed, completed/);
      expect(await run.ended).toBe(0);
    });

    test("without a server, the run is in its own program", async () => {
      const shell = new Shell();
      const server = await shell.serve();
      const locked = await shell.belay("run", "--local", "--agent", AGENT, "say no");
      expect(locked.code).toBe(EXIT_CODE.store_locked);
      server.signal("SIGKILL");
      await server.ended;
      expect(noteOf(shell)).toBeDefined();
      const run = await shell.belay("run", "--agent", AGENT, "say here");
      expect({ code: run.code, out: run.out }).toEqual({ code: 0, out: "here\n" });
      expect(run.err).toContain("in this program (no server)");
    });

    test("an option that selects an agent is refused if the run goes to a server", async () => {
      const shell = new Shell();
      await shell.serve();
      const { code, err } = await shell.belay("run", "--model", "openai/x", "say hello");
      expect(code).toBe(EXIT_CODE.invalid);
      expect(err).toContain("--model is for runs without a server");
    });

    test("--url with --token-file is accepted; an invalid token is refused", async () => {
      const shell = new Shell();
      await shell.serve();
      const { url = "" } = noteOf(shell) ?? {};
      const file = join(shell.home, "ci-token");
      const added = await shell.belay("token", "add", "ci", "--scope", "read,prompt");
      writeFileSync(file, added.out, { mode: 0o600 });
      const run = await shell.belay("run", "--url", url, "--token-file", file, "say by token");
      expect({ code: run.code, out: run.out }).toEqual({ code: 0, out: "by token\n" });
      writeFileSync(file, `belay_${"x".repeat(43)}\n`);
      const bad = await shell.belay("run", "--url", url, "--token-file", file, "say no");
      expect(bad.code).toBe(EXIT_CODE.unauthenticated);
    });
  });
});
