// Commands on a file that no server has open. Reading changes nothing; a request is recorded, and the server that opens
// the file next carries it out.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openBelay } from "../../sdk/belay.ts";
import { Gate } from "../../testing/gate.ts";
import { scriptedAgent } from "../../testing/scripted-agent.ts";
import { EXIT_CODE } from "./exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

const main = join(import.meta.dirname, "../main.ts");
const AGENT = join(import.meta.dirname, "../../../test/fixtures/obedient-agent.ts");

let folder: string;
let file: string;
let session: string;
let parked: string;
let queued: string;
let settled: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "br-"));
  file = join(folder, "belay.db");
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: file });
  const made = await belay.createSession({ title: "kept" });
  const first = made.prompt("first");
  (await agent.nextTurn()).complete("done");
  await first.outcome;
  const second = made.prompt("second");
  const turn = await agent.nextTurn();
  void turn.play([{ do: "wait", for: new Gate() }]);
  const third = made.prompt("third");
  await third.accepted;
  for (const run of [second, third]) run.outcome.catch(() => undefined);
  [session, settled, parked, queued] = [made.id, first.id, second.id, third.id];
  await belay.close({ mode: "park" });
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Output {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function runBelay(...args: readonly string[]): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args, "--store", file], { stdio: ["ignore", "pipe", "pipe"] });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      out += piece;
    });
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      err += piece;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

/** A run whose program was killed while it ran, in a file that no other test uses. */
async function leftLive(): Promise<{ readonly runId: string; readonly sessionId: string }> {
  file = join(folder, "left.db");
  const args = ["run", "--local", "--home", folder, "--agent", AGENT, "--store", file, "wait here"];
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const stderr = text(child.stderr);
  // The run is live once it has printed text.
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await ended;
  const [, runId = "", sessionId = ""] = /(run_\S+) in (ses_[^,]+),/.exec(await stderr) ?? [];
  return { runId, sessionId };
}

describe("reading a store that no server has open", () => {
  test("ps, explain, runs and follow show its content, and the log does not grow", async () => {
    const before = await runBelay("sessions", "--json");
    const ps = await runBelay("ps");
    expect(ps.out).toMatch(new RegExp(`^${parked} +run +parked`, "m"));
    expect(ps.out).toMatch(new RegExp(`^${queued} +third +queued`, "m"));
    expect((await runBelay("explain", session)).out).toContain(`${parked} is parked until a worker recovers it`);
    expect((await runBelay("runs", session)).out).toMatch(new RegExp(`^${settled} +settled +completed`, "m"));
    const followed = await runBelay("follow", settled);
    expect(followed.out.trimEnd().split("\n").at(-1)).toMatch(/run\.settled +run_\S+ completed$/);
    expect(followed).toMatchObject({ code: 0, err: "" });
    expect((await runBelay("sessions", "--json")).out).toBe(before.out);
  });

  test("follow of new events is refused, since none can come", async () => {
    const { code, err } = await runBelay("follow");
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain("Nothing new happens");
  });
});

test("stop-all without a server is recorded: the queued and the parked run are cancelled", async () => {
  const { code, out } = await runBelay("stop-all", "--reason", "enough");
  expect(code).toBe(0);
  expect(out).toContain(`${queued}  withdrawn`);
  const belay = await openBelay({ agent: scriptedAgent(), store: file });
  for (const id of [parked, queued]) {
    expect(await (await belay.run(id)).outcome).toMatchObject({ kind: "cancelled", reason: { note: "enough" } });
  }
  await belay.close();
});

test("a cancel ends a parked run at once, and the output does not defer it to the next server", async () => {
  for (const args of [["cancel", parked], ["cancel", session], ["stop-all"]]) {
    const { out } = await runBelay(...args);
    expect(out).not.toContain("the next one that opens it");
  }
  expect((await runBelay("runs", session)).out).toMatch(new RegExp(`^${parked} +settled +cancelled`, "m"));
});

test.each([["cancel"], ["stop-all"]])(
  "%s of a dead server's live run is carried out by the next server",
  async (stop) => {
    const { runId, sessionId } = await leftLive();
    const { out } = await runBelay(...(stop === "cancel" ? [stop, sessionId] : [stop]));
    expect(out).toContain(`${runId}  stopping`);
    expect(out).toContain(`No server has the file open: the next one that opens it ends ${runId}.`);
    expect((await runBelay("runs", sessionId)).out).toMatch(new RegExp(`^${runId} +live`, "m"));
  },
);

test("cancel of a parked run reports that it has ended, since no worker was driving it", async () => {
  const { out } = await runBelay("cancel", parked);
  expect(out).toContain("No server has the file open, and no worker was driving it: it has ended.");
});

test("cancel of a queued run withdraws it alone: the parked run still resumes", async () => {
  expect((await runBelay("cancel", queued)).out).toContain("withdrawn: it had not begun, and never will");
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: file });
  (await agent.nextTurn()).complete("done");
  expect(await (await belay.run(parked)).outcome).toMatchObject({ kind: "completed" });
  await belay.close();
});

test("a mistyped file name creates no file; a file in use is refused with `store_locked`", async () => {
  const none = join(folder, "none.db");
  file = none;
  expect((await runBelay("ps")).code).toBe(EXIT_CODE.not_found);
  expect(existsSync(none)).toBe(false);
  file = join(folder, "belay.db");
  const belay = await openBelay({ agent: scriptedAgent(), store: file });
  expect((await runBelay("ps")).code).toBe(EXIT_CODE.store_locked);
  await belay.close();
});
