// Belay works without the optional packages; a feature that needs one fails with the command that installs it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPTIONAL_PACKAGES, type OptionalPackage } from "../../src/core/optional-package.ts";
import { ROOT } from "../fixtures/repository.ts";
import { AGENT, MAIN, type Program, Shell } from "../fixtures/shell.ts";

const HOOK = join(ROOT, "test/fixtures/without-packages.ts");

const without = (shell: Shell, ...args: readonly string[]): Program =>
  shell.command(process.execPath, "--import", HOOK, MAIN, ...args);

const line = (name: OptionalPackage): string => `npm install "${name}@${OPTIONAL_PACKAGES[name]}"`;

test("every entry of the package can be imported without them, except ./acp, which needs the ACP SDK", async () => {
  const about: { exports: Record<string, { default: string }> } = JSON.parse(
    readFileSync(join(ROOT, "package.json"), "utf8"),
  );
  const failed: string[] = [];
  for (const [entry, { default: file }] of Object.entries(about.exports)) {
    if (file === undefined) continue;
    const source = join(ROOT, file.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
    const child = spawn(process.execPath, ["--import", HOOK, source], { stdio: "ignore" });
    if ((await once(child, "close"))[0] !== 0) failed.push(entry);
  }
  expect(failed).toEqual(["./acp"]);
});

test.each([
  ["openai/gpt-5", "@ai-sdk/openai", { OPENAI_API_KEY: "k".repeat(20) }],
  ["anthropic/claude-sonnet-4-5", "@ai-sdk/anthropic", { ANTHROPIC_API_KEY: "k".repeat(20) }],
  ["openai/any", "@ai-sdk/openai-compatible", { OPENAI_BASE_URL: "http://127.0.0.1:9/v1" }],
] as const)("belay run --model %s names the command that installs %s", async (model, name, env) => {
  const run = without(new Shell(env), "run", "--model", model, "hello");
  expect([await run.ended, run.err.includes(line(name)) ? "named" : run.err]).toEqual([2, "named"]);
});

test("belay acp and belay acp-front name the command that installs the SDK", async () => {
  const acp = without(new Shell(), "acp", "--agent", AGENT);
  acp.child.stdin?.end();
  await acp.ended;
  expect(acp.err).toContain(line("@agentclientprotocol/sdk"));
  const front = without(new Shell(), "acp-front", "--", "true");
  front.child.stdin?.end();
  await front.ended;
  expect(front.err).toContain(line("@agentclientprotocol/sdk"));
});

test("a server runs prompts without them; /acp answers with the command that installs the SDK", async () => {
  const shell = new Shell();
  const server = without(shell, "serve", "--port", "0", "--agent", AGENT);
  const url = await server.sees(
    /(http:\/\/127\.0\.0\.1:\d+)[\s\S]*is ready|is ready[\s\S]*?(http:\/\/127\.0\.0\.1:\d+)/,
  );
  const run = await shell.belay("run", "hello");
  expect([run.code, run.out.trim()]).not.toEqual([0, ""]);
  const token = readFileSync(join(shell.home, "token"), "utf8").trim();
  const answer = await fetch(`${/http:\/\/[\d.:]+/.exec(url)?.[0]}/acp`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1 } }),
  });
  expect([answer.status, await answer.text()]).toEqual([
    400,
    expect.stringContaining(line("@agentclientprotocol/sdk").replaceAll('"', '\\"')),
  ]);
});
