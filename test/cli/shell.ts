// Somebody at a shell: starts Belay's command line as it is typed, in a home of its own, and waits for what it says.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

/** The agent of these tests: it does at once what its prompt says, or waits until it is stopped. */
export const AGENT = join(import.meta.dirname, "obedient-agent.ts");

interface Waiter {
  readonly look: () => boolean;
  readonly give: (found: Error | undefined) => void;
}

/** A program that was started, what it has said so far, and how it ended. */
export class Program {
  readonly child: ChildProcess;
  /** Its exit code, or the signal it died of. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  out = "";
  err = "";
  #over = false;
  #waiters: Waiter[] = [];

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.out += text;
      this.#look();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.err += text;
      this.#look();
    });
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        this.#over = true;
        this.#look();
        resolve(signal ?? code);
      });
    });
  }

  /** Waits until it has said this, on either stream, and answers what the pattern has caught. */
  sees(pattern: RegExp): Promise<string> {
    const find = (): string | undefined => {
      const match = pattern.exec(this.err) ?? pattern.exec(this.out);
      return match === null ? undefined : (match[1] ?? match[0]);
    };
    return new Promise((resolve, reject) => {
      const give = (failed: Error | undefined): void => (failed ? reject(failed) : resolve(find() ?? ""));
      this.#waiters.push({ look: () => find() !== undefined, give });
      this.#look();
    });
  }

  type(text: string): void {
    this.child.stdin?.write(text);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  #look(): void {
    for (const waiter of this.#waiters) {
      if (waiter.look()) waiter.give(undefined);
      else if (this.#over) waiter.give(new Error(`It ended without saying so.\nout: ${this.out}\nerr: ${this.err}`));
    }
    this.#waiters = this.#waiters.filter(({ look }) => !this.#over && !look());
  }
}

export interface Said {
  readonly code: number | NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export class Shell {
  readonly home = mkdtempSync(join(tmpdir(), "belay-shell-"));
  readonly env: NodeJS.ProcessEnv;
  readonly #programs: Program[] = [];

  /** Everything that was started ends with the test, and the home goes with it. */
  constructor(env: NodeJS.ProcessEnv = {}) {
    this.env = { PATH: process.env.PATH, TMPDIR: this.home, HOME: this.home, BELAY_HOME: this.home, ...env };
    onTestFinished(async () => {
      // The second ends it at once. Not the same twice: two of a kind may arrive as one.
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        for (const program of this.#programs) program.signal(signal);
      }
      await Promise.all(this.#programs.map(({ ended }) => ended));
      rmSync(this.home, { recursive: true, force: true });
    });
  }

  /** Work that does not listen is waited for so long that a test can look around meanwhile. For what starts next. */
  patient(): this {
    writeFileSync(join(this.home, "belay.config.json"), JSON.stringify({ limits: { graceMs: 30_000 } }));
    return this;
  }

  /** Starts it and lets it run. Its stdin is a pipe. */
  start(...words: readonly string[]): Program {
    return this.#keep(spawn(process.execPath, [MAIN, ...words], { env: this.env, cwd: this.home }));
  }

  /** Any other program, in the same surroundings. */
  command(program: string, ...words: readonly string[]): Program {
    return this.#keep(spawn(program, words, { env: this.env, cwd: this.home }));
  }

  /** The same on a terminal of its own, so that it can be typed on. Both of its streams come as one. */
  onTerminal(...words: readonly string[]): Program {
    const line = [process.execPath, MAIN, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    return this.#keep(
      spawn("script", ["-qefc", line, "/dev/null"], { env: { ...this.env, TERM: "xterm" }, cwd: this.home }),
    );
  }

  /** Runs it to its end. Nothing is typed: its stdin has ended. */
  async belay(...words: readonly string[]): Promise<Said> {
    return this.piped("", ...words);
  }

  async piped(input: string | Buffer, ...words: readonly string[]): Promise<Said> {
    const program = this.start(...words);
    program.child.stdin?.end(input);
    const code = await program.ended;
    return { code, out: program.out, err: program.err };
  }

  /** A server that is ready. */
  async serve(...words: readonly string[]): Promise<Program> {
    const server = this.start("serve", "--port", "0", "--agent", AGENT, ...words);
    await server.sees(/is ready\.[\s\S]*try: .*stop-all/);
    return server;
  }

  #keep(child: ChildProcess): Program {
    const program = new Program(child);
    this.#programs.push(program);
    return program;
  }
}

/** Each line of it, parsed. Throws if anything else is among them. */
export const jsonLines = (text: string): readonly Readonly<Record<string, unknown>>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
