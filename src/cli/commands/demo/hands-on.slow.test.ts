// The hands-on demo, driven through a pipe: every kind of stop.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { identityOf } from "../../../process/tree/proc.ts";
import { EXIT_SIGNAL } from "../../shared/exit-code.ts";

const main = join(import.meta.dirname, "../../main.ts");

/** The hands-on demo as a child process. */
class Hands {
  /** Its temporary directory. */
  readonly folder = mkdtempSync(join(tmpdir(), "belay-hands-on-"));
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  out = "";
  err = "";
  #since = 0;

  constructor(...args: readonly string[]) {
    this.child = spawn(process.execPath, [main, "demo", "--hands-on", ...args], {
      env: { ...process.env, TMPDIR: this.folder },
    });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.out += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.err += text;
    });
    this.ended = new Promise((resolve) => this.child.on("close", resolve));
    onTestFinished(async () => {
      // A graceful shutdown, so that it ends its processes.
      this.child.kill("SIGTERM");
      await this.ended;
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  type(...lines: readonly string[]): this {
    this.#since = this.out.length;
    this.child.stdin?.write(lines.map((line) => `${line}\n`).join(""));
    return this;
  }

  /** Waits for output since the last typed line, and returns what the pattern captured. */
  async sees(pattern: RegExp): Promise<string> {
    await expect.poll(() => this.out.slice(this.#since), { timeout: 8_000 }).toMatch(pattern);
    return pattern.exec(this.out.slice(this.#since))?.[1] ?? "";
  }

  /** The files that are left behind. */
  get left(): readonly string[] {
    return readdirSync(this.folder);
  }
}

/** A zombie does not count as alive. */
const isAlive = (pid: number): boolean => identityOf(pid) !== undefined;

test("prompts from a pipe are carried out and printed in plain lines; then the demo exits by itself", async () => {
  const hands = new Hands("--fast").type("slow to 3");
  hands.child.stdin?.end();
  expect(await hands.ended).toBe(0);
  expect(hands.err).toBe("");
  expect(hands.out).toContain("This is a demo");
  expect(hands.out).toContain("agent   (demo) I call count_slowly.");
  expect(hands.out).toContain('call 1  … {"counted":2,"of":3}');
  expect(hands.out).toContain('call 1  completed; {"counted":3}; changed: count-to-3.txt');
  expect(hands.out).toContain("run “slow to 3” completed");
  expect(hands.out.trimEnd().endsWith("nothing is left behind.")).toBe(true);
  expect(hands.out).not.toContain("\u001b");
  expect(hands.left).toEqual([]);
});

test("a question without a user to answer it does not keep the demo running", async () => {
  const hands = new Hands("--fast").type("ask");
  hands.child.stdin?.end();
  expect(await hands.ended).toBe(0);
  expect(hands.out).toContain("no user is left to answer");
});

describe("every stop", () => {
  test("stops one call of several, a run and its processes; approvals and answers work meanwhile", async () => {
    const hands = new Hands("--fast").type("count to 9999 and spawn and write and ask");
    const pid = Number(await hands.sees(/call 2 {2}runs as process (\d+)/));
    expect(isAlive(pid)).toBe(true);
    await hands.sees(/ask 6 {3}/);
    hands.type("why");
    await hands.sees(/call 3, write_file: waits for its approval/);
    hands.type("stop 2 not needed");
    await hands.sees(/call 2 {2}cancelled \(not needed\)/);
    expect(isAlive(pid)).toBe(false);
    hands.type("no not today", "answer green", "stop 1 far enough");
    await hands.sees(/write_file was not carried out: denied by the user: not today\./);
    await hands.sees(/ask_colour is done: \{"colour":"green"\}\./);
    expect(hands.out).toContain("run_command was stopped by the user: not needed.");
    expect(hands.out).toMatch(/count_slowly was stopped by the user: far enough\. All I have of it: \{"counted":\d+/);
    await hands.sees(/run “count to 9999 and spawn .*” completed/);
    hands.type("spawn");
    const second = Number(await hands.sees(/call 7 {2}runs as process (\d+)/));
    hands.type("stop run enough");
    await hands.sees(/run “spawn” cancelled \(enough\)/);
    expect(isAlive(second)).toBe(false);
    hands.type("stop 99", "stop everything", "stop", "quit");
    await hands.sees(/there is no call number 99/);
    await hands.sees(/What should be stopped\?/);
    await hands.sees(/idle: nothing was going on/);
    expect(await hands.ended).toBe(0);
    expect(hands.err).toBe("");
    expect(hands.left).toEqual([]);
  });

  test("drops a queued run, steers, interrupts, and stops the whole session", async () => {
    const hands = new Hands("--fast").type("count to 9999", "hello", "goodbye", "queue", "drop 2");
    await hands.sees(/2\. goodbye/);
    await hands.sees(/run “goodbye” cancelled/);
    hands.type("> and list");
    await hands.sees(/the steer waits for the next turn/);
    hands.type("!be stubborn");
    await hands.sees(/run “count to 9999” cancelled \(interrupted by another prompt\)/);
    await hands.sees(/stubborn \{\}/);
    hands.type("stop", "log");
    await hands.sees(/given up: stubborn/);
    await hands.sees(/session\.cancel_requested/);
    await hands.sees(/stubborn came back late/);
    hands.type("always", "write");
    await hands.sees(/nothing waits for a yes or a no/);
    await hands.sees(/ask 4 {3}May call 3, write_file, go on\?/);
    hands.type("always");
    await hands.sees(/run “write” completed/);
    expect(hands.out).toContain("allowed, and not asked again");
    hands.type("write again.txt");
    await hands.sees(/changed: again\.txt/);
    hands.type("quit");
    expect(await hands.ended).toBe(0);
  });
});

test("a background process reports back, can be stopped by its number, and ends with the session", async () => {
  const hands = new Hands("--fast").type("build");
  await hands.sees(/proc 2 {2}in the background: echo building/);
  await hands.sees(/proc 2 {2}completed, with exit code 0/);
  await hands.sees(/no prompt: this run was started by a process that has ended/);
  await hands.sees(/Background report: proc_\S+ ended by itself/);
  hands.type("quit");
  expect(await hands.ended).toBe(0);

  const slow = new Hands().type("build");
  await slow.sees(/proc 2 {2}runs as process (\d+), held by tier \w+/);
  slow.type("stop 2 wrong branch");
  await slow.sees(/proc 2 {2}cancelled \(wrong branch\), by SIGTERM/);
  await slow.sees(/run “build” completed/);
  slow.type("build");
  const pid = Number(await slow.sees(/proc 4 {2}runs as process (\d+)/));
  await slow.sees(/run “build” completed/);
  slow.type("stop");
  await slow.sees(/it covers 1 process in the background/);
  await slow.sees(/proc 4 {2}cancelled/);
  expect(isAlive(pid)).toBe(false);
  slow.type("quit");
  expect(await slow.ended).toBe(0);
  expect(slow.left).toEqual([]);
});

describe("exiting", () => {
  test("Ctrl-C stops the session and prints the receipt; twice, the demo shuts down gracefully", async () => {
    const hands = new Hands().type("spawn");
    const pid = Number(await hands.sees(/runs as process (\d+)/));
    hands.child.kill("SIGINT");
    await hands.sees(/stop: stopping: it covers 1 run/);
    await hands.sees(/run “spawn” cancelled \(Ctrl-C\)/);
    expect(isAlive(pid)).toBe(false);
    hands.child.kill("SIGINT");
    expect(await hands.ended).toBe(EXIT_SIGNAL.SIGINT);
    expect(hands.left).toEqual([]);
  });

  test.each(["SIGTERM", "SIGHUP"] as const)("%s leaves no process and no folder behind", async (signal) => {
    const hands = new Hands().type("spawn and be stubborn");
    const pid = Number(await hands.sees(/runs as process (\d+)/));
    hands.child.kill(signal);
    expect(await hands.ended).toBe(EXIT_SIGNAL[signal]);
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(hands.left).toEqual([]);
  });

  test("a second signal exits at once, and leaves no process and no folder behind", async () => {
    const hands = new Hands().type("spawn and be stubborn");
    const pid = Number(await hands.sees(/runs as process (\d+)/));
    hands.child.kill("SIGTERM");
    hands.child.kill("SIGTERM");
    expect(await hands.ended).toBe(EXIT_SIGNAL.SIGTERM);
    // The kernel ends it, a moment after its containment helper.
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(hands.left).toEqual([]);
  });
});
