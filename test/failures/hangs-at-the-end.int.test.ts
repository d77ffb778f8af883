// K2: a server that is asked to end while something in it never does. It leaves all the same, and says what it left.
import { join } from "node:path";
import { expect, test } from "vitest";
import { Shell } from "../fixtures/shell.ts";

const STRAY = join(import.meta.dirname, "stray-agent.ts");

test("K2: what a tool has left open does not keep a server that has ended in order", {
  timeout: 60_000,
  meta: { id: "cli/open-handles-delay-no-exit" },
}, async () => {
  const shell = new Shell();
  const server = await shell.serve("--agent", STRAY);
  expect((await shell.belay("run", "handles")).out).toBe("left something behind\n");
  server.signal("SIGTERM");
  expect(await server.ended).toBe(0);
  expect(server.err).toContain("shut down gracefully");
});

test("K2: a promise that never ends, with a timer and a port, keeps it no longer than --drain-ms", {
  timeout: 60_000,
  meta: { id: "G33/drain-limit-ends-server" },
}, async () => {
  const shell = new Shell().patient();
  const server = await shell.serve("--agent", STRAY, "--drain-ms", "1");
  const run = shell.start("run", "handles forever");
  const runId = await run.sees(/(run_\S+) in ses_/);
  await run.sees(/not listening/);
  server.signal("SIGTERM");
  expect(await server.ended).toBe(1);
  expect(server.err).toContain("recovered at the next start");
  // Nothing is forgotten: the next one takes it up.
  await shell.serve("--agent", STRAY);
  expect((await shell.belay("ps")).out).toContain(runId);
});
