// A disk that does not answer a sync: whoever stops something does not wait for it, and nobody is told what is not so.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as round } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BelayClient, connectBelay } from "../../src/client/belay-client.ts";
import { exists, startedPid } from "./failing-server.ts";

const HERE = import.meta.dirname;
let folder = "";
let stall = "";
let child: ChildProcess;
let client: BelayClient;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "belay-stall-"));
  mkdirSync(join(folder, "tokens"), { mode: 0o700 });
  stall = join(folder, "stall");
  const words = ["--import", join(HERE, "stalled-sync.ts"), join(HERE, "stalled-server.ts"), folder];
  child = spawn(process.execPath, words, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, BELAY_TEST_STALL: stall },
  });
  if (child.stdout === null) throw new Error("no stdout");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { at, token } = JSON.parse(String(line));
  client = await connectBelay({ url: at, token });
});

afterEach(async () => {
  rmSync(stall, { force: true });
  await client.close();
  child.stdin?.end();
  if (child.exitCode === null) await once(child, "exit");
  rmSync(folder, { recursive: true, force: true });
});

test("G28: a stop is carried out while the disk stands still, and told once it is recorded", {
  meta: { id: "G28/stop-during-stalled-sync" },
}, async () => {
  const session = await client.createSession();
  const other = await client.createSession();
  const quiet = await client.createSession();
  await quiet.prompt("before").outcome;
  const run = session.prompt("sleeps");
  const pid = await startedPid(session);
  writeFileSync(stall, "");

  const told: string[] = [];
  const prompt = other.prompt("waits for the disk");
  const accepted = prompt.accepted.then(() => told.push("accepted"));
  await until(() => existsSync(`${stall}.reached`));
  const receipt = run.cancel().then((answer) => {
    told.push("cancelled");
    return answer;
  });
  await until(() => !exists(pid));
  // Whoever looks is answered meanwhile, and what is not durable is neither seen nor told.
  expect((await quiet.runs()).map(({ outcome }) => outcome)).toEqual([{ kind: "completed" }]);
  expect((await session.runs()).map(({ outcome }) => outcome)).toEqual([undefined]);
  expect(await client.status()).toMatchObject({ phase: "open", trouble: "unavailable" });
  expect(told).toEqual([]);

  rmSync(stall);
  expect(await receipt).toMatchObject({ kind: "stopping" });
  expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  await accepted;
  expect(await prompt.outcome).toEqual({ kind: "completed" });
  expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
});

/** The test's own limit ends the wait. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await round();
}
