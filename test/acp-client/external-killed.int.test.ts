// Belay itself ends during a prompt of an external agent: killed, or gracefully.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";
import { done, externalAgentFixture, facts, flaws, said } from "./external-agent-fixture.ts";

let dir = "";
let memory = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-foreign-"));
  memory = join(dir, "memory");
  mkdirSync(memory);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("G20, G25: after kill -9 the prompt is lost and not sent again, its tree is dead, the next works", async () => {
  const id = mark();
  const script = join(import.meta.dirname, "doomed-front.ts");
  const front = spawn(process.execPath, [script, dir, memory, id], { stdio: ["ignore", "pipe", "inherit"] });
  await once(front.stdout, "data");
  await markedAtLeast(id, 2);
  front.kill("SIGKILL");
  await once(front, "exit");
  const fixture = await externalAgentFixture({ dir, skills: { memory, restores: "load" } });
  expect(marked(id)).toEqual([]);
  const [, cut, next] = (await fixture.session.runs()).toReversed();
  expect(await (await fixture.belay.run(cut?.id ?? "")).outcome).toEqual({ kind: "lost" });
  // The next prompt runs, and the agent has its own memory: it was sent once.
  const { text } = await done(await fixture.belay.run(next?.id ?? ""));
  expect(text).toBe(`I remember: echo first | deaf ${id}`);
  expect(await flaws(fixture.session)).toEqual([]);
  await fixture[Symbol.asyncDispose]();
});

test("G25: after a graceful shutdown the agent gets a request to continue, instead of the same prompt", async () => {
  const skills = { memory, restores: "load" } as const;
  const file = join(dir, "go");
  const first = await externalAgentFixture({ dir, skills });
  const run = first.session.prompt(`finish ${file}`);
  await said(run, "waiting for a file");
  await first.belay.close({ mode: "park" });
  mkdirSync(file);
  const second = await externalAgentFixture({ dir, skills });
  const taken = await second.belay.run(run.id);
  expect(await taken.outcome).toEqual({ kind: "completed" });
  const { text } = await done(second.session.prompt("recall"));
  expect(text).toContain("You had begun to work on the following prompt when the program around you was shut down.");
  expect(await facts(second.session, "run.recovered")).toHaveLength(1);
  expect(await flaws(second.session)).toEqual([]);
  await second[Symbol.asyncDispose]();
});
