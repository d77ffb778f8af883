// The whole life of a server in the surroundings of a container: it holds its promises there, or is refused with an
// error that says what to do.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { type BelayClient, connectBelay } from "../../src/client/belay-client.ts";
import type { RunControl } from "../../src/ports/control.ts";
import { until } from "../../src/process/tree/poll-until.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { mark, marked } from "../fixtures/marked-process.ts";
import { ROOT } from "../fixtures/repository.ts";
import { makeGroups, missingFor, SURROUNDINGS, type Surroundings, wordsFor } from "./surroundings.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-course-"));
chmodSync(folder, 0o755);
mkdirSync(join(folder, "bin"));
copyFileSync(join(ROOT, "bin/belay.js"), join(folder, "bin/belay.js"));
symlinkSync(join(ROOT, "src"), join(folder, "src"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BELAY = join(folder, "bin/belay.js");
const AGENT = join(import.meta.dirname, "agent.ts");

/** How long one step may take on a busy machine. */
const STEP_MS_MAX = 60_000;
/** How long a tree may live once its stop is settled (G19). */
const DEAD_MS_MAX = 2_000;

let courses = 0;

/** A data directory, and the servers that have it one after the other. */
class Course {
  readonly dir: string;
  readonly #one: Surroundings;
  readonly #name: string;
  readonly #removeGroups: () => void;
  said = "";
  child: ChildProcess | undefined;
  exit: Promise<number | string> = Promise.resolve(0);

  constructor(one: Surroundings) {
    courses += 1;
    this.#one = one;
    this.#name = `belay-course-${process.pid}-${courses}`;
    this.dir = join(folder, `d${courses}`);
    mkdirSync(this.dir, { mode: 0o700 });
    if (one.uid !== undefined) chownSync(this.dir, one.uid, one.uid);
    this.#removeGroups = makeGroups(one, this.#name);
    onTestFinished(async () => {
      await this.kill();
      this.#removeGroups();
    });
  }

  get store(): string {
    return join(this.dir, "belay.db");
  }

  start(): void {
    const [file = "", ...args] = [
      ...wordsFor(this.#one, this.#name, this.dir),
      ...[process.execPath, BELAY, "serve", "--home", this.dir, "--port", "0", "--agent", AGENT],
    ];
    this.said = "";
    const env = this.#one.uid === undefined ? process.env : { PATH: process.env.PATH ?? "" };
    this.child = spawn(file, args, { cwd: this.dir, env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (data: Buffer) => {
        this.said += data.toString();
      });
    }
    this.exit = once(this.child, "close").then(([code, signal]) => code ?? signal);
  }

  async connect(): Promise<BelayClient> {
    const isOver = (): boolean => /is ready/.test(this.said) || this.child?.exitCode !== null;
    await until(isOver, { clock: systemClock, waitMs: STEP_MS_MAX });
    if (!/is ready/.test(this.said)) throw new Error(`It did not start: ${this.said}`);
    return connectBelay({ socket: join(this.dir, "belay.sock") });
  }

  /** As this machine counts: the program itself, not what has put it there. */
  server(): number {
    const found = readdirSync("/proc").find((pid) => {
      const [program, ...args] = /^\d+$/.test(pid) ? argumentsOf(pid) : [];
      return program === process.execPath && args.includes(this.dir) && args.includes("serve");
    });
    if (found === undefined) throw new Error("The server is not running.");
    return Number(found);
  }

  async kill(): Promise<void> {
    try {
      process.kill(this.server(), "SIGKILL");
    } catch {
      // It has ended.
    }
    this.child?.kill("SIGKILL");
    await this.exit;
  }
}

function argumentsOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

const isDead = (id: string): Promise<boolean> =>
  until(() => marked(id).length === 0, { clock: systemClock, waitMs: DEAD_MS_MAX });

/** Prompts for a tree, and waits until all of it is there. */
async function tree(belay: BelayClient): Promise<{ readonly id: string; readonly run: RunControl }> {
  const id = mark();
  const run = (await belay.createSession()).prompt(`tree ${id}`);
  await run.accepted;
  const isUp = await until(() => marked(id).length >= 4, { clock: systemClock, waitMs: STEP_MS_MAX });
  expect(isUp).toBe(true);
  return { id, run };
}

/** What is stopped, and how its run ends then. */
const SCOPES: Readonly<Record<string, readonly [(belay: BelayClient, run: RunControl) => Promise<unknown>, string]>> = {
  process: [(belay, run) => stopProcess(belay, run), "completed"],
  call: [(belay, run) => stopCall(belay, run), "completed"],
  run: [(_, run) => run.cancel(), "cancelled"],
  session: [(belay, run) => belay.session(run.sessionId).cancel(), "cancelled"],
  all: [(belay) => belay.cancelAll(), "cancelled"],
};

async function stopProcess(belay: BelayClient, run: RunControl): Promise<void> {
  const [child] = await belay.session(run.sessionId).processes.list();
  await belay.cancel(child?.id ?? "");
}

async function stopCall(belay: BelayClient, run: RunControl): Promise<void> {
  for await (const event of belay.session(run.sessionId).events()) {
    if (event.type === "call.requested") return void (await belay.cancel(event.callId));
  }
}

async function holds(one: Surroundings): Promise<void> {
  const course = new Course(one);
  course.start();
  let belay = await course.connect();
  const [, tier = ""] = /held by tier (\w+)/.exec(course.said) ?? [];
  expect(one.tiers ?? ["namespace", "cgroup", "anchor"]).toContain(tier);

  expect((await (await belay.createSession()).prompt("hello").outcome).kind).toBe("completed");
  expect(await (await belay.createSession()).prompt("commands 150").outcome).toMatchObject({ kind: "completed" });
  if (one.group?.memory !== undefined) {
    const eats = (await belay.createSession()).prompt("memory 900");
    expect((await eats.outcome).kind).toBe("completed");
  }
  for (const [scope, [stop, end]] of Object.entries(SCOPES)) {
    const { id, run } = await tree(belay);
    await stop(belay, run);
    expect([scope, (await run.outcome).kind, await isDead(id)]).toEqual([scope, end, true]);
  }

  const cutOff = await tree(belay);
  await belay.close();
  await course.kill();
  course.start();
  belay = await course.connect();
  // The call whose end is not known is not repeated; the run comes to its end without it.
  expect(await isDead(cutOff.id)).toBe(true);
  await belay.cancelAll();
  const again = await belay.run(cutOff.run.id);
  expect((await again.outcome).kind).toMatch(/^(completed|cancelled|failed)$/);

  await belay.close();
  process.kill(course.server(), "SIGTERM");
  expect(await course.exit).toBe(0);
  const verified = spawnSync(process.execPath, [BELAY, "verify", course.store], { encoding: "utf8" });
  expect([verified.status, verified.stdout]).toEqual([0, expect.any(String)]);
}

async function refuses(one: Surroundings, words: RegExp): Promise<void> {
  const course = new Course(one);
  course.start();
  const code = await course.exit;
  expect(code).not.toBe(0);
  expect(course.said).toMatch(words);
  // A stack trace is no answer.
  expect(course.said).not.toMatch(/^ {4}at /m);
}

describe("G19, G20: belay serve", () => {
  const shown = SURROUNDINGS.filter((one) => missingFor(one) === undefined);
  test.each(shown.map((one) => [one.name, one] as const))(
    "%s: holds, or is refused with what to do",
    { timeout: 300_000 },
    async (_, one) => {
      if (one.refused === undefined) await holds(one);
      else await refuses(one, one.refused);
    },
  );

  // Not passed: the report counts them, and says why each is not shown.
  const absent = SURROUNDINGS.flatMap((one) => {
    const missing = missingFor(one);
    return missing === undefined ? [] : [`${one.name}: not shown here, because ${missing}`];
  });
  test.skipIf(true).each(absent)("%s", () => undefined);
});
