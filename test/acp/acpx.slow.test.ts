// An independent client drives `belay acp` end to end, with its own data directory.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CHILD_ENV } from "../fixtures/child-env.ts";
import { MAIN } from "../fixtures/cli-server.ts";
import { Gates } from "./gates.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import type { Fields, Message, Said } from "./transcript.ts";

const CLI = join(createRequire(import.meta.url).resolve("acpx/package.json"), "../dist/cli.js");
const AGENT = join(import.meta.dirname, "script-agent.ts");

interface Typed {
  readonly code: number | null;
  readonly lines: readonly Fields[];
  readonly err: string;
}

class Typist {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "belay-acpx-")));
  readonly #home = join(this.dir, "home");
  readonly #command: string;

  constructor() {
    mkdirSync(this.#home, { mode: 0o700 });
    const belay = [process.execPath, MAIN, "acp", "--home", this.#home, "--agent", AGENT, "--no-config"];
    this.#command = belay.map((word) => `'${word}'`).join(" ");
  }

  /** Runs a command and waits for its end. */
  type(...words: readonly string[]): Promise<Typed> {
    const options = ["--cwd", this.dir, "--ttl", "60", "--format", "json", "--approve-all", "--agent", this.#command];
    const env = { ...CHILD_ENV, HOME: this.#home, TMPDIR: this.dir };
    const child = spawn(process.execPath, [CLI, ...options, ...words], { cwd: this.dir, env });
    child.stdin.end();
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => {
        const lines = out.split("\n").filter((line) => line !== "");
        resolve({ code, err, lines: lines.map((line) => JSON.parse(line) as Fields) });
      });
    });
  }
}

const FROM_AGENT = new Set(["session/update", "session/request_permission", "$/cancel_request"]);

/** The messages between the two, as printed. */
const transcriptOf = ({ lines }: Typed): readonly Said[] =>
  lines
    // Each is checked against the schema.
    .map((line) => line as unknown as Message)
    .filter(({ jsonrpc }) => jsonrpc === "2.0")
    .map((message) => {
      const isAnswer = message.result?.outcome !== undefined;
      const isClient = isAnswer || (message.method !== undefined && !FROM_AGENT.has(message.method));
      return { by: isClient ? "client" : "agent", message } as const;
    });

const stopReason = (typed: Typed): unknown =>
  transcriptOf(typed).findLast(({ message }) => message.result?.stopReason !== undefined)?.message.result?.stopReason;

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("an independent client starts a session, prompts, queues, cancels, lists and closes", {
  timeout: 120_000,
}, async () => {
  const typist = new Typist();
  const gates = await Gates.open(typist.dir);
  let owner = 0;
  onTestFinished(async () => {
    if (owner !== 0 && isAlive(owner)) process.kill(owner, "SIGKILL");
    await gates.close();
    rmSync(typist.dir, { recursive: true, force: true });
  });
  const made = await typist.type("sessions", "new");
  expect(made.lines, made.err).toMatchObject([{ created: true, acpxSessionId: expect.stringMatching(/^ses_/) }]);

  const first = typist.type("prompt", "say one; call read_file held");
  await gates.reached("held");
  const queued = await typist.type("prompt", "--no-wait", "say two; gate queued");
  expect(queued.code, queued.err).toBe(0);
  const status = await typist.type("status");
  expect(status.lines).toMatchObject([{ status: expect.any(String), pid: expect.any(Number) }]);
  owner = Number(status.lines[0]?.pid);

  const cancelled = await typist.type("cancel");
  expect(cancelled.code, cancelled.err).toBe(0);
  const answered = await first;
  expect(stopReason(answered), JSON.stringify(answered)).toBe("cancelled");

  // The queued prompt runs, and the next one after it.
  await gates.reached("queued");
  const last = typist.type("prompt", "say three; approve write_file");
  gates.open("queued");
  const done = await last;
  expect(stopReason(done), done.err).toBe("end_turn");
  expect(JSON.stringify(done.lines)).toContain("[write_file completed]");
  expect(gates.count("held")).toBe(1);
  expect(gates.count("queued")).toBe(1);

  const closed = await typist.type("sessions", "close");
  expect(closed.lines, closed.err).toMatchObject([{ action: "session_closed" }]);
  for (const typed of [answered, done]) {
    const said = transcriptOf(typed);
    expect(said.length).toBeGreaterThan(3);
    expect(invalidMessages(said, 1)).toEqual([]);
    expect(brokenLaws(said, 1, { end: "open" })).toEqual([]);
  }
  expect(isAlive(owner)).toBe(false);
});
