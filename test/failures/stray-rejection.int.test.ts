// C12: a tool that leaves a failing promise behind, after its call has ended. Its call was fine, and so is everyone.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jsonLines, Shell } from "../fixtures/shell.ts";

const STRAY = join(import.meta.dirname, "stray-agent.ts");

test("an unhandled rejection does not end the server, and is logged and counted", {
  timeout: 60_000,
  meta: { id: "cli/stray-rejection-keeps-server" },
}, async () => {
  const shell = new Shell();
  const server = await shell.serve("--agent", STRAY);
  const first = await shell.belay("run", "stray");
  expect([first.out, first.code]).toEqual(["left something behind\n", 0]);
  await server.sees(/unhandled promise rejection/);
  expect(server.err).toContain("nobody waits for me");
  const headers = { authorization: `Bearer ${readFileSync(join(shell.home, "token"), "utf8").trim()}` };
  const { url } = JSON.parse(readFileSync(join(shell.home, "server.json"), "utf8")) as { readonly url: string };
  expect(await (await fetch(`${url}/metrics`, { headers })).text()).toMatch(/^belay_rejections_stray 1$/m);
  const second = await shell.belay("run", "say it");
  expect([second.out, second.code]).toEqual(["heard say it\n", 0]);
  server.signal("SIGTERM");
  expect(await server.ended).toBe(0);
});

test("nor does it end a program that works without a server", {
  timeout: 60_000,
  meta: { id: "cli/stray-rejection-keeps-program" },
}, async () => {
  const shell = new Shell();
  const alone = await shell.belay("run", "--agent", STRAY, "stray");
  expect([alone.out, alone.code]).toEqual(["left something behind\n", 0]);
  expect(alone.err).toContain("nobody waits for me");
});

test("nor a bridge: the host hears the answer and asks again", { timeout: 60_000 }, async () => {
  const shell = new Shell();
  const bridge = shell.start("bridge", "--agent", STRAY);
  const ask = (id: number, method: string, params: object): void =>
    bridge.type(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  ask(0, "session/new", {});
  const sessionId = await bridge.sees(/"sessionId":"(ses_[^"]+)"/);
  ask(1, "session/prompt", { sessionId, prompt: "stray" });
  await bridge.sees(/"id":1[,}]/);
  await bridge.sees(/nobody waits for me/);
  ask(2, "session/prompt", { sessionId, prompt: "say it" });
  await bridge.sees(/"id":2[,}]/);
  bridge.child.stdin?.end();
  expect(await bridge.ended).toBe(0);
  expect(jsonLines(bridge.out).length).toBeGreaterThan(1);
});
