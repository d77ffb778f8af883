// `belay bridge` as a host starts it: a child process, with pipes.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { openBelay } from "../../src/sdk/belay.ts";
import { auditPage } from "../../src/telemetry/audit/audit-page.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-bridge-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const AGENT = join(import.meta.dirname, "wordy-agent.ts");

// Each test starts programs, which takes long on a busy machine.
vi.setConfig({ testTimeout: 30_000 });

const started = new Set<ChildProcess>();
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started.clear();
});

let homes = 0;

function wordsFor(
  name: string,
  ...more: readonly string[]
): { readonly file: string; readonly words: readonly string[] } {
  homes += 1;
  const file = join(folder, `${name}-${homes}.db`);
  const home = join(folder, `home-${homes}`);
  return { file, words: ["bridge", "--home", home, "--store", file, "--agent", AGENT, ...more] };
}

/** Waits for a line that contains the texts; earlier lines are not searched again. */
function lineWaiter(stream: Readable) {
  const lines: string[] = [];
  const waiting: { readonly wanted: string; readonly found: (line: string) => void }[] = [];
  createInterface({ input: stream }).on("line", (line) => {
    lines.push(line);
    for (const one of waiting.filter(({ wanted }) => line.includes(wanted))) one.found(line);
  });
  const find = (wanted: string): Promise<string> => {
    const known = lines.find((line) => line.includes(wanted));
    return known === undefined ? new Promise((found) => waiting.push({ wanted, found })) : Promise.resolve(known);
  };
  return { lines, find };
}

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly event?: { readonly seq?: number } };
  readonly result?: { readonly sessionId?: string; readonly [name: string]: unknown };
}

function start(words: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...words], { stdio: ["pipe", "pipe", "pipe"] });
  started.add(child);
  const exit = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  const errors = lineWaiter(child.stderr);
  const send = (message: object): boolean => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  /** Reads only on request: a host need not read. */
  const read = () => {
    const out = lineWaiter(child.stdout);
    const answer = async (id: number): Promise<Answer> => JSON.parse(await out.find(`"id":${id},`)) as Answer;
    return { ...out, answer };
  };
  return { child, exit, errors, send, read };
}

async function withSession(words: readonly string[]) {
  const bridge = start(words);
  const out = bridge.read();
  bridge.send({ id: 1, method: "session/new" });
  const sessionId = (await out.answer(1)).result?.sessionId ?? "";
  return { ...bridge, out, sessionId };
}

/** The newest run in the store, once the bridge has released it. */
async function outcomeIn(file: string, sessionId: string) {
  await using belay = await openBelay({ store: file, agent: () => "taken up" });
  const [row] = await belay.session(sessionId).runs();
  return await (await belay.run(row?.id ?? "")).outcome;
}

test("a host prompts, receives the answer, and shuts it down; the exit code is 0", async () => {
  const { file, words } = wordsFor("round");
  const { send, out, exit, sessionId } = await withSession(words);
  send({ id: 2, method: "initialize", params: { client: "test" } });
  expect((await out.answer(2)).result).toMatchObject({ protocol: 1, version: expect.stringMatching(/^\d/) });
  send({ id: 3, method: "session/prompt", params: { sessionId, prompt: "hello" } });
  expect((await out.answer(3)).result).toMatchObject({ text: "heard hello", outcome: { kind: "completed" } });
  send({ id: 4, method: "shutdown" });
  expect((await out.answer(4)).result).toEqual({ unfinished: [] });
  expect(await exit).toBe(0);
  const { records } = await auditPage(`${file}.audit`, { limit: 10 });
  expect(records.map(({ action }) => action)).toEqual(["shutdown", "session/prompt", "session/new"]);
});

test("F11: output of the program goes to stderr; stdout contains only the protocol", {
  meta: { id: "bridge/stray-output-on-stderr" },
}, async () => {
  const { send, out, exit, sessionId, errors } = await withSession(wordsFor("print").words);
  send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "print" } });
  expect((await out.answer(2)).result).toMatchObject({ text: "printed" });
  send({ id: 3, method: "shutdown" });
  await exit;
  await errors.find("a stray line");
  for (const line of out.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
});

test("F10: when stdin ends, the run is cancelled with the reason, and the bridge exits cleanly", async () => {
  const { file, words } = wordsFor("end");
  const { send, out, exit, sessionId, errors, child } = await withSession(words);
  send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "wait" } });
  await errors.find("agent: waiting");
  child.stdin.end();
  expect((await out.answer(2)).result).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "policy" } } });
  expect(await exit).toBe(0);
  expect(await outcomeIn(file, sessionId)).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
});

test("with --on-hangup park the run is parked, and resumes at the next start", async () => {
  const { file, words } = wordsFor("park", "--on-hangup", "park");
  const { send, exit, sessionId, errors, child } = await withSession(words);
  send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "wait" } });
  await errors.find("agent: waiting");
  child.stdin.end();
  expect(await exit).toBe(0);
  expect(await outcomeIn(file, sessionId)).toEqual({ kind: "completed" });
});

test("F10: when stdout is closed, the bridge notices with its next line, cancels and exits", async () => {
  const { file, words } = wordsFor("pipe");
  const { send, exit, sessionId, errors, child } = await withSession(words);
  send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "wait" } });
  await errors.find("agent: waiting");
  child.stdout.destroy();
  send({ id: 3, method: "ping" });
  expect(await exit).toBe(0);
  expect(await outcomeIn(file, sessionId)).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
});

test("F10: when the host is killed, no bridge process and no running run are left", {
  meta: { id: "bridge/killed-host-leaves-nothing" },
}, async () => {
  const { file, words } = wordsFor("killed");
  const doomed = join(import.meta.dirname, "doomed-host.ts");
  const host = spawn(process.execPath, [doomed, MAIN, ...words], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  started.add(host);
  const lifeline = host.stdio[3] as Readable;
  const bridgeGone = new Promise<void>((resolve) => lifeline.once("close", () => resolve()));
  lifeline.resume();
  const sessionId = await lineWaiter(host.stdout as Readable).find("ses_");
  await lineWaiter(host.stderr as Readable).find("agent: waiting");
  host.kill("SIGKILL");
  // The bridge holds the other end of this stream until it exits. All its other streams are broken by now.
  (host.stderr as Readable).destroy();
  await bridgeGone;
  expect(await outcomeIn(file, sessionId)).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
});

test("F13: a host that does not read can still stop its runs, and later receives everything in order", {
  meta: { id: "bridge/unread-host-can-stop" },
}, async () => {
  const { child, send, out, exit, sessionId, errors } = await withSession(wordsFor("flood").words);
  child.stdout.pause();
  send({ id: 2, method: "session/subscribe", params: { sessionId } });
  send({ id: 3, method: "session/prompt", params: { sessionId, prompt: "flood" } });
  await errors.find("agent: waiting");
  send({ method: "session/cancel", params: { sessionId, reason: "enough" } });
  await errors.find("agent: cancelled");
  child.stdout.resume();
  expect((await out.answer(3)).result).toMatchObject({ outcome: { kind: "cancelled", reason: { note: "enough" } } });
  const seqs = out.lines.flatMap((line) => (JSON.parse(line) as Answer).params?.event?.seq ?? []);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(seqs.length).toBeGreaterThan(200);
  send({ id: 4, method: "shutdown" });
  expect(await exit).toBe(0);
});

test("SIGTERM shuts it down gracefully, with the matching exit code", async () => {
  const { file, words } = wordsFor("signal");
  const { send, exit, sessionId, errors, child } = await withSession(words);
  send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "wait" } });
  await errors.find("agent: waiting");
  child.kill("SIGTERM");
  expect(await exit).toBe(143);
  expect(await outcomeIn(file, sessionId)).toMatchObject({ kind: "cancelled" });
});

test("a usage error is reported on stderr, and stdout stays empty", async () => {
  const { child, errors, read, exit } = start(["bridge", "--store", "x.db", "--socket", "y.sock"]);
  const out = read();
  child.stdin.end();
  expect(await exit).toBe(2);
  expect(errors.lines.join("\n")).toContain("--s");
  expect(out.lines).toEqual([]);
});
