// The end of a server, by signals and by kill -9, and what its waiting clients get, with and without a next server.
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_OUTCOME, EXIT_UNREAD } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "../../src/cli/shared/exit-code.ts";
import { readServer } from "../../src/sdk/data-dir.ts";
import { AGENT, jsonLines, Shell } from "../fixtures/shell.ts";

const noteOf = (shell: Shell) => readServer({ serverFile: join(shell.home, "server.json") });

const ask = (shell: Shell, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${noteOf(shell)?.url}${path}`, {
    ...init,
    headers: {
      authorization: `Bearer ${readFileSync(join(shell.home, "token"), "utf8").trim()}`,
      "content-type": "application/json",
    },
  });

const leftBehind = (shell: Shell): readonly string[] =>
  ["server.json", "belay.sock"].filter((name) => existsSync(join(shell.home, name)));

// Each test starts servers and several commands, on a machine that may be busy with other tests.
describe("the end of a server", { timeout: 60_000 }, () => {
  describe("Ctrl-C in `belay run`", () => {
    test("once: the run is cancelled, and its receipt and outcome are printed", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "wait here");
      await run.sees(/here\n/);
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(run.err).toMatch(/cancel: stopping: .*this request was the first[\s\S]*cancelled \(Ctrl-C\)/);
    });

    test("twice: exits at once, and the server continues to stop the run", async () => {
      const shell = new Shell().patient();
      await shell.serve();
      const run = shell.start("run", "deaf");
      const runId = await run.sees(/(run_\S+) in ses_/);
      await run.sees(/not listening/);
      run.signal("SIGINT");
      await run.sees(/cancel: stopping/);
      run.signal("SIGINT");
      expect(await run.ended).toBe(EXIT_SIGNAL.SIGINT);
      expect(run.err).toContain(`Exited at once. The server is still stopping ${runId}`);
      const { sessions } = jsonLines((await shell.belay("ps", "--json")).out)[0] as {
        sessions: { live: { runId: string; phase: string } }[];
      };
      expect(sessions.map(({ live }) => live)).toMatchObject([{ runId, phase: "stopping" }]);
    });

    test("G32: exiting by SIGTERM cancels nothing", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "wait here");
      const runId = await run.sees(/(run_\S+) in ses_/);
      await run.sees(/here\n/);
      run.signal("SIGTERM");
      expect(await run.ended).toBe(EXIT_SIGNAL.SIGTERM);
      expect(run.err).toContain(`Exited. ${runId} continues`);
      expect((await shell.belay("ps")).out).toMatch(new RegExp(`${runId} .*running`));
    });

    test("without a server, a closed stdout pipe cancels the run", async () => {
      const shell = new Shell();
      const run = shell.start("run", "--agent", AGENT, "drip");
      await run.sees(/drop/);
      run.child.stdout?.destroy();
      expect(await run.ended).toBe(EXIT_UNREAD);
      expect(run.err).toContain("Its output is not read any more. Stopping it.");
      const runs = jsonLines((await shell.belay("sessions", "--store", "belay.db", "--json")).out)[0];
      const { id } = (runs as { sessions: { id: string }[] }).sessions[0] ?? { id: "" };
      expect((await shell.belay("runs", id, "--store", "belay.db")).out).toMatch(/settled +cancelled/);
    });

    test("with a server, a closed stdout pipe does not exit 0", async () => {
      const shell = new Shell();
      await shell.serve();
      const run = shell.start("run", "drip");
      await run.sees(/drop/);
      run.child.stdout?.destroy();
      expect(await run.ended).toBe(EXIT_UNREAD);
    });
  });

  describe("kill -9 of the server while `belay run` waits", () => {
    test("without a next server it gives up after its patience with `disconnected`", async () => {
      const shell = new Shell();
      const server = await shell.serve();
      const run = shell.start("run", "--patience", "1", "wait here");
      await run.sees(/here\n/);
      server.signal("SIGKILL");
      expect(await run.ended).toBe(EXIT_CODE.disconnected);
      expect(run.out).toBe("here\n");
    });

    test("G25: a next server within its patience resumes the run, and the outcome is printed", async () => {
      const shell = new Shell();
      const server = await shell.serve();
      const run = shell.start("run", "resume");
      await run.sees(/begun\n/);
      server.signal("SIGKILL");
      await server.ended;
      // The files of the killed server are recognised as stale.
      expect(leftBehind(shell)).toEqual(["server.json", "belay.sock"]);
      await shell.serve();
      expect(await run.ended).toBe(0);
      expect(run.out).toBe("begun\ntaken up again\n");
      expect(run.err).toMatch(/resumed after its worker had gone/);
    });
  });

  describe("SIGTERM", () => {
    test.each(["SIGTERM", "SIGINT"] as const)(
      "%s: parks live runs, leaves no files behind, and exits 0",
      { meta: { id: "cli/signal-parks-live-runs" } },
      async (signal) => {
        const shell = new Shell();
        const server = await shell.serve();
        const run = shell.start("run", "resume");
        await run.sees(/begun\n/);
        server.signal(signal);
        expect(await server.ended).toBe(0);
        expect(server.err).toContain("shut down gracefully");
        expect(leftBehind(shell)).toEqual([]);
        await shell.serve();
        expect(await run.ended).toBe(0);
        expect(run.out).toBe("begun\ntaken up again\n");
      },
    );

    test("--on-stop cancel: live runs end as cancelled, and waiting clients get the outcome", async () => {
      const shell = new Shell();
      const server = await shell.serve("--on-stop", "cancel");
      const run = shell.start("run", "wait here");
      await run.sees(/here\n/);
      server.signal("SIGTERM");
      expect(await server.ended).toBe(0);
      expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
      expect(run.err).toContain("cancelled (Belay was shut down)");
    });

    test("during the shutdown it is not ready, refuses prompts and accepts cancels; a second signal forces it", {
      meta: { id: "cli/shutdown-still-takes-cancels" },
    }, async () => {
      const shell = new Shell().patient();
      const server = await shell.serve("--drain-ms", "600000");
      const run = shell.start("run", "deaf");
      const sessionId = await run.sees(/in (ses_[^,]+),/);
      await run.sees(/not listening/);
      server.signal("SIGTERM");
      await server.sees(/shutting down gracefully/);
      const readiness = await ask(shell, "/readyz");
      expect([readiness.status, await readiness.json()]).toEqual([503, { status: "closing" }]);
      const prompt = await ask(shell, "/v1/runs", { method: "POST", body: JSON.stringify({ prompt: "say no" }) });
      expect([prompt.status, await prompt.json()]).toMatchObject([503, { error: { code: "shutting_down" } }]);
      const cancel = await ask(shell, `/v1/sessions/${sessionId}/cancel`, { method: "POST", body: "{}" });
      expect([cancel.status, await cancel.json()]).toMatchObject([200, { kind: "stopping" }]);
      server.signal("SIGTERM");
      expect(await server.ended).toBe(EXIT_SIGNAL.SIGTERM);
      expect(leftBehind(shell)).toEqual([]);
    });

    test("followers get a `bye` event, so that they reconnect", async () => {
      const shell = new Shell();
      const server = await shell.serve();
      const stream = await ask(shell, "/v1/events");
      expect(stream.headers.get("content-type")).toContain("text/event-stream");
      server.signal("SIGTERM");
      expect(await stream.text()).toMatch(/event: bye\ndata: \{"reason":"shutting_down"\}\n\n$/);
      expect(await server.ended).toBe(0);
    });

    test("work that does not come to rest within --drain-ms is logged, and recovered at the next start", async () => {
      const shell = new Shell().patient();
      const server = await shell.serve("--drain-ms", "1");
      const run = shell.start("run", "deaf");
      const runId = await run.sees(/(run_\S+) in ses_/);
      await run.sees(/not listening/);
      server.signal("SIGTERM");
      expect(await server.ended).toBe(1);
      expect(server.err).toContain("recovered at the next start");
      await shell.serve();
      expect((await shell.belay("ps")).out).toContain(runId);
    });
  });

  test("SIGHUP reads the log level again and logs it; a rotated token needs no signal", {
    meta: { id: "cli/sighup-reloads-settings" },
  }, async () => {
    const shell = new Shell();
    const server = await shell.serve();
    expect(server.err).not.toContain('"msg":"answered"');
    writeFileSync(join(shell.home, "log-level"), "debug\n");
    server.signal("SIGHUP");
    await server.sees(/read again: tokens, certificate, log level \(debug\)/);
    const old = readFileSync(join(shell.home, "token"), "utf8").trim();
    const headers = { authorization: `Bearer ${old}` };
    expect((await fetch(`${noteOf(shell)?.url}/v1/sessions`, { headers })).status).toBe(200);
    await server.sees(/"msg":"answered"/);
    expect((await shell.belay("token", "rotate", "local")).code).toBe(0);
    server.signal("SIGHUP");
    await server.sees(/read again[\s\S]*read again/);
    expect((await fetch(`${noteOf(shell)?.url}/v1/sessions`, { headers })).status).toBe(401);
    expect((await ask(shell, "/v1/sessions")).status).toBe(200);
  });

  test("an invalid log level at SIGHUP is logged, and the old one stays in effect", async () => {
    const shell = new Shell();
    const server = await shell.serve();
    const file = join(shell.home, "log-level");
    writeFileSync(file, "loud\n");
    server.signal("SIGHUP");
    await server.sees(/not read again.*\n/);
    const warning = jsonLines(server.err).find(({ msg }) => String(msg).startsWith("not read again"));
    expect(warning).toMatchObject({ level: 40, error: { message: expect.stringContaining(file) } });
    expect((await shell.belay("run", "say still there")).out).toBe("still there\n");
  });

  test("a reader of stdout or stderr that closes the pipe does not end the server", async () => {
    const shell = new Shell();
    const server = await shell.serve("--log-level", "debug");
    server.child.stdout?.destroy();
    server.child.stderr?.destroy();
    if (server.child.stderr?.closed === false) await once(server.child.stderr, "close");
    expect((await shell.belay("run", "say one")).out).toBe("one\n");
    expect((await shell.belay("run", "say two")).out).toBe("two\n");
    server.signal("SIGTERM");
    expect(await server.ended).toBe(0);
  });

  test("G35: provider keys are in no process, log or event", async () => {
    const canary = "sk-canary-0123456789abcdef";
    const shell = new Shell({ OPENAI_API_KEY: canary, ANTHROPIC_API_KEY: canary });
    const server = await shell.serve("--log-level", "debug");
    const run = shell.start("run", "shell env; tr '\\0' '\\n' < /proc/self/environ; echo done");
    const id = await run.sees(/(proc_\S+) runs as process/);
    expect(await run.ended).toBe(0);
    const output = await shell.belay("logs", id);
    expect(output.out).toContain("done");
    const session = await run.sees(/in (ses_[^,]+),/);
    const events = await shell.belay("logs", session, "--json");
    expect(events.out).toContain("run.settled");
    expect([output.out, events.out, run.err, server.out, server.err].join("\n")).not.toContain("canary");
    const kept = readdirSync(shell.home, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    expect(kept.length).toBeGreaterThan(5);
    const leaks = kept.filter((one) => readFileSync(join(one.parentPath, one.name)).includes(canary));
    expect(leaks.map(({ name }) => name)).toEqual([]);
  });
});
