// A server that does not answer for a while: stops and prompts wait for it.
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { openControl } from "../../src/cli/shared/connect.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { takeLock } from "../../src/store/sqlite/file/owner.ts";
import { Shell } from "../fixtures/shell.ts";

const WAITS = /belay: The server at \S+ does not answer yet\. Waiting for it; Ctrl-C leaves\./;

// Each test starts programs that wait three seconds before they report that the server is silent.
describe("while the server is suspended", { timeout: 60_000 }, () => {
  test("G7: cancel waits for it, says so, and stops the run once the server resumes; a prompt waits too", async () => {
    const { shell, server, ids } = await twoRuns();
    const [first = "", second = ""] = ids;
    server.signal("SIGSTOP");
    const cancel = shell.start("cancel", first);
    const run = shell.start("run", "--detach", "say hello");
    await Promise.all([cancel, run].map((one) => one.sees(WAITS)));
    server.signal("SIGCONT");
    expect(await Promise.all([cancel.ended, run.ended])).toEqual([0, 0]);
    expect(cancel.out).toContain(`${first}  `);
    const outcomes = await outcomesOf(shell);
    expect([outcomes.get(first), outcomes.get(second)]).toEqual(["cancelled", undefined]);
  });

  test("G7: stop-all waits for it, and its message does not advise to kill the server", async () => {
    const { shell, server, ids } = await twoRuns();
    server.signal("SIGSTOP");
    const stopAll = shell.start("stop-all", "--yes");
    await stopAll.sees(WAITS);
    expect(stopAll.err).not.toContain("kill");
    server.signal("SIGCONT");
    expect(await stopAll.ended).toBe(0);
    const outcomes = await outcomesOf(shell);
    for (const id of ids) expect(outcomes.get(id)).toBe("cancelled");
  });

  test("G7: Ctrl-C in `belay run` says that the cancel has no answer yet, and stops the run", async () => {
    const shell = new Shell();
    const server = await shell.serve();
    onTestFinished(() => server.signal("SIGCONT"));
    const run = shell.start("run", "wait here");
    await run.sees(/here\n/);
    server.signal("SIGSTOP");
    run.signal("SIGINT");
    await run.sees(/The cancel has no answer yet/);
    server.signal("SIGCONT");
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
  });
});

async function twoRuns() {
  const shell = new Shell();
  const server = await shell.serve();
  onTestFinished(() => server.signal("SIGCONT"));
  const runs = await Promise.all([1, 2].map(() => shell.belay("run", "--detach", "wait")));
  return { shell, server, ids: runs.map(({ out }) => out.trim()) };
}

/** The outcomes of a server's runs, by id. */
async function outcomesOf(shell: Shell): Promise<ReadonlyMap<string, string | undefined>> {
  type Row = { readonly id: string; readonly outcome?: { readonly kind: string } };
  const { runs }: { readonly runs: readonly Row[] } = JSON.parse((await shell.belay("runs", "--json")).out);
  return new Map(runs.map(({ id, outcome }) => [id, outcome?.kind]));
}

test("G7: a stop prints that it waits for a server that stops answering after it was found", {
  timeout: 60_000,
}, async () => {
  const shell = new Shell();
  const socket = join(shell.home, "silent.sock");
  let stop: ServerResponse | undefined;
  let isSilent = false;
  const server = createHttpServer((request, response) => {
    if (request.url === "/v1/cancel") {
      isSilent = true;
      stop = response;
    } else if (!isSilent) response.setHeader("content-type", "application/json").end('{"sessions":[]}');
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const stopAll = shell.start("stop-all", "--yes", "--socket", socket);
  await stopAll.sees(WAITS);
  stop?.setHeader("content-type", "application/json").end('{"sessions":[]}');
  expect(await stopAll.ended).toBe(0);
});

test("G7: a stop waits for a program that has the data directory but no socket yet", {
  timeout: 60_000,
}, async () => {
  const shell = new Shell();
  const lock = takeLock(join(shell.home, "belay.db"));
  onTestFinished(() => lock.release());
  const stopAll = shell.start("stop-all", "--yes");
  await stopAll.sees(/belay: The server at \S+, a process, does not answer yet\. Waiting for it; Ctrl-C leaves\./);
  const server = createHttpServer((_, response) => {
    response.setHeader("content-type", "application/json").end('{"sessions":[]}');
  });
  await new Promise<void>((resolve) => server.listen(join(shell.home, "belay.sock"), resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  expect(await stopAll.ended).toBe(0);
});

test("a socket without a server is an error at once", async () => {
  const shell = new Shell();
  const socket = join(shell.home, "gone.sock");
  const { code, err } = await shell.belay("stop-all", "--yes", "--socket", socket);
  expect(code).toBe(EXIT_CODE.disconnected);
  expect(err).toContain(`No server answers at ${socket}.`);
});

test("a connection that the server cuts is retried", async () => {
  const shell = new Shell();
  const socket = join(shell.home, "cut.sock");
  let connections = 0;
  const server = createServer((connection) => {
    connections += 1;
    if (connections === 1) connection.destroy();
    const body = '{"sessions":[],"next":null}';
    connection.on("error", () => {});
    connection.on("data", () =>
      connection.end(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  const connection = await openControl({ socket }, { BELAY_HOME: shell.home });
  expect(connection.kind).toBe("server");
  await connection.close();
});
