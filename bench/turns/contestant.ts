// A side in its child process, as the bench sees it: it is asked for one cell at a time and idle in between.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Cell, Measured, SideName } from "./side.ts";

/** Far longer than the whole bench. A side that hangs must not hang the bench. */
const LIFE_MS_MAX = 10 * 60_000;
const MEASURE = new URL("./measure.ts", import.meta.url).pathname;

export class Contestant {
  readonly name: SideName;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(name: SideName) {
    this.name = name;
    this.#child = spawn(process.execPath, [MEASURE, name], {
      stdio: ["pipe", "pipe", "inherit"],
      timeout: LIFE_MS_MAX,
      killSignal: "SIGKILL",
    });
    // A child that died is noticed by its silence; the broken pipe says nothing more.
    this.#child.stdin.on("error", () => {});
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async measure({ kind, concurrency, ms }: Cell): Promise<Measured> {
    this.#child.stdin.write(`${kind} ${concurrency} ${ms}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${this.name} ended before it had a figure for ${kind} at concurrency ${concurrency}.`);
    return JSON.parse(value);
  }

  /** Without further lines to answer it closes its side and ends; what it could not close, it must say. */
  async end(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.stdin.end();
    const [code] = await closed;
    if (code !== 0) throw new Error(`${this.name} could not be closed: its process ended with ${code}.`);
  }

  /** For when the bench has failed anyway. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
