// The commands on a file that no server has open. Looking changes nothing; what is asked is recorded, and carried out
// by the server that opens the file next.
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

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
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

interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function type(...words: readonly string[]): Promise<Said> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...words, "--store", file], { stdio: ["ignore", "pipe", "pipe"] });
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

/** A run whose program was killed in the middle of it, in a file that no other test uses. */
async function leftLive(): Promise<{ readonly runId: string; readonly sessionId: string }> {
  file = join(folder, "left.db");
  const words = ["run", "--local", "--home", folder, "--agent", AGENT, "--store", file, "wait here"];
  const child = spawn(process.execPath, [main, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const said = text(child.stderr);
  // It is at work from its first words on.
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await ended;
  const [, runId = "", sessionId = ""] = /(run_\S+) in (ses_[^,]+),/.exec(await said) ?? [];
  return { runId, sessionId };
}

describe("looking", () => {
  test("shows what is there, and takes nothing up: the log is as long as before", async () => {
    const before = await type("sessions", "--json");
    const ps = await type("ps");
    expect(ps.out).toMatch(new RegExp(`^${parked} +run +parked`, "m"));
    expect(ps.out).toMatch(new RegExp(`^${queued} +third +queued`, "m"));
    expect((await type("explain", session)).out).toContain(`${parked} is parked until a worker recovers it`);
    expect((await type("runs", session)).out).toMatch(new RegExp(`^${settled} +settled +completed`, "m"));
    const followed = await type("follow", settled);
    expect(followed.out.trimEnd().split("\n").at(-1)).toMatch(/run\.settled +run_\S+ completed$/);
    expect(followed).toMatchObject({ code: 0, err: "" });
    expect((await type("sessions", "--json")).out).toBe(before.out);
  });

  test("there is nothing to follow that has not happened", async () => {
    const { code, err } = await type("follow");
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain("Nothing new happens");
  });
});

test("a stop is recorded, says that no server is at work, and is carried out by the next one", async () => {
  const { code, out } = await type("stop-all", "--reason", "enough");
  expect(code).toBe(0);
  expect(out).toContain(`${queued}  withdrawn`);
  const belay = await openBelay({ agent: scriptedAgent(), store: file });
  for (const id of [parked, queued]) {
    expect(await (await belay.run(id)).outcome).toMatchObject({ kind: "cancelled", reason: { note: "enough" } });
  }
  await belay.close();
});

test("what was set down ends with its cancel, and is not said to be ended by the next server", async () => {
  for (const words of [["cancel", parked], ["cancel", session], ["stop-all"]]) {
    const { out } = await type(...words);
    expect(out).not.toContain("the next one that opens it");
  }
  expect((await type("runs", session)).out).toMatch(new RegExp(`^${parked} +settled +cancelled`, "m"));
});

test.each([["cancel"], ["stop-all"]])("%s of what a dead server was at work on: the next one ends it", async (stop) => {
  const { runId, sessionId } = await leftLive();
  const { out } = await type(...(stop === "cancel" ? [stop, sessionId] : [stop]));
  expect(out).toContain(`${runId}  stopping`);
  expect(out).toContain(`No server has the file open: the next one that opens it ends ${runId}.`);
  expect((await type("runs", sessionId)).out).toMatch(new RegExp(`^${runId} +live`, "m"));
});

test("cancel of what was set down says that it has ended, since nobody was at work on it", async () => {
  const { out } = await type("cancel", parked);
  expect(out).toContain("No server has the file open, and nobody was at work on it: it has ended.");
});

test("one queued run is withdrawn, and the one that was set down still waits to be taken up", async () => {
  expect((await type("cancel", queued)).out).toContain("withdrawn: it had not begun, and never will");
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: file });
  (await agent.nextTurn()).complete("done");
  expect(await (await belay.run(parked)).outcome).toMatchObject({ kind: "completed" });
  await belay.close();
});

test("a name that was mistyped makes no file; a file in use is refused with its own code", async () => {
  const none = join(folder, "none.db");
  file = none;
  expect((await type("ps")).code).toBe(EXIT_CODE.not_found);
  expect(existsSync(none)).toBe(false);
  file = join(folder, "belay.db");
  const belay = await openBelay({ agent: scriptedAgent(), store: file });
  expect((await type("ps")).code).toBe(EXIT_CODE.store_locked);
  await belay.close();
});
