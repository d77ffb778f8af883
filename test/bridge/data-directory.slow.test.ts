// `belay bridge` in a data directory: found and stopped like any other program there, and shared with others.
import { describe, expect, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { AGENT, type Program, Shell } from "../fixtures/shell.ts";

const HERE = ["bridge", "--agent", AGENT] as const;

function send(bridge: Program, id: number, method: string, params: object = {}): void {
  bridge.type(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
}

/** Starts a run that waits until it is stopped. */
async function waiting(bridge: Program, words: string): Promise<void> {
  send(bridge, 1, "session/new");
  const sessionId = await bridge.sees(/"sessionId":"(ses_\w+)"/);
  send(bridge, 2, "session/prompt", { sessionId, prompt: `wait ${words}` });
  await bridge.sees(/"runId":"run_\w+"/);
}

describe("belay bridge without a server", { timeout: 60_000 }, () => {
  test("G27: ps shows its run, and stop-all stops it", async () => {
    const shell = new Shell();
    const bridge = shell.start(...HERE);
    await waiting(bridge, "here");
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
    expect((await shell.belay("stop-all", "--yes")).code).toBe(0);
    await bridge.sees(/"id":2,.*"kind":"cancelled"/);
    send(bridge, 3, "shutdown");
    expect(await bridge.ended).toBe(0);
    expect(bridge.out).toContain('"result":{"unfinished":[]}');
    expect((await shell.belay("ps")).code).toBe(EXIT_CODE.disconnected);
  });

  test("a run that joined it continues when the host of the bridge is gone", async () => {
    const shell = new Shell();
    const bridge = shell.start(...HERE);
    await waiting(bridge, "here");
    const run = shell.start("run", "--agent", AGENT, "wait there");
    await run.sees(/there\n/);
    expect((await shell.belay("ps")).out.match(/run_\w+ +run /g)).toHaveLength(2);
    bridge.child.stdin?.end();
    expect(await bridge.ended).toBe(0);
    expect(bridge.out).toMatch(/"id":2,.*"kind":"cancelled"/);
    run.signal("SIGINT");
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("it connects to a running server, unless an agent was given", async () => {
    const shell = new Shell();
    const server = shell.start("serve", "--no-tcp", "--agent", AGENT);
    await server.sees(/is ready/);
    const bridge = shell.start("bridge");
    await waiting(bridge, "here");
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
    const other = await shell.belay(...HERE);
    expect(other).toMatchObject({ code: EXIT_CODE.invalid, err: expect.stringContaining("--agent is for a bridge") });
    bridge.child.stdin?.end();
    expect(await bridge.ended).toBe(0);
  });
});
