// A server that does not answer for a while is still the server: stops and prompts wait for it.
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openControl } from "../../src/cli/shared/connect.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { Shell } from "../fixtures/shell.ts";

const WAITS = /belay: The server at \S+ does not answer yet\. Waiting for it; Ctrl-C leaves\./;

// Programs are started, and each waits three seconds before it says that the server is silent.
describe("while the server stands still", { timeout: 60_000 }, () => {
  test("G7: cancel and stop-all wait for it, say so, and are carried out once it goes on", async () => {
    const shell = new Shell();
    const server = await shell.serve();
    onTestFinished(() => server.signal("SIGCONT"));
    const runs = await Promise.all([1, 2].map(() => shell.belay("run", "--detach", "wait")));
    const [first = "", second = ""] = runs.map(({ out }) => out.trim());
    server.signal("SIGSTOP");
    const cancel = shell.start("cancel", first);
    const stopAll = shell.start("stop-all", "--yes", "--keep-background");
    const run = shell.start("run", "--detach", "say hello");
    await Promise.all([cancel, stopAll, run].map((one) => one.sees(WAITS)));
    expect(stopAll.err).not.toContain("kill");
    server.signal("SIGCONT");
    expect(await Promise.all([cancel.ended, stopAll.ended, run.ended])).toEqual([0, 0, 0]);
    expect(cancel.out).toContain(`${first}  `);
    const { out } = await shell.belay("runs", "--json");
    const outcomes = new Map(JSON.parse(out).runs.map((one: { id: string; phase: string }) => [one.id, one.phase]));
    for (const id of [first, second]) expect(outcomes.get(id)).not.toBe("live");
  });
});

test("a socket whose server has gone is no server, and is not waited for", async () => {
  const shell = new Shell();
  const socket = join(shell.home, "gone.sock");
  const { code, err } = await shell.belay("stop-all", "--yes", "--socket", socket);
  expect(code).toBe(EXIT_CODE.disconnected);
  expect(err).toContain(`No server answers at ${socket}.`);
});

test("a server that cuts the first connection is asked again", async () => {
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
  const door = await openControl({ socket }, { BELAY_HOME: shell.home });
  expect(door.kind).toBe("server");
  await door.close();
});
