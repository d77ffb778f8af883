// The agent of the demo: a script instead of a model, so that it needs no key and no network.
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent, Turn } from "../ports.ts";

/** How the demo's time is spent. A word is spoken every `wordMs`; tools take multiples of `toolMs`. */
export interface Pace {
  readonly readMs: number;
  readonly wordMs: number;
  readonly toolMs: number;
  readonly graceMs: number;
}

export const PACES = {
  reading: { readMs: 450, wordMs: 60, toolMs: 400, graceMs: 600 },
  fast: { readMs: 0, wordMs: 5, toolMs: 40, graceMs: 100 },
} as const satisfies Record<string, Pace>;

/** What the agent does with a prompt; the demo names it in the prompt's `data`. */
export type Script = "answer" | "call" | "ignore" | "report";

/** Longer than the demo lasts: a tool that only a cancel ends. */
const ENDLESS_MS = 3_600_000;

export class DemoAgent {
  readonly #pace: Pace;
  /** How often the tool of the last scene has really run. */
  collected = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  readonly act: Agent = async (turn) => {
    switch (turn.prompt.data) {
      case "call":
        return this.#call(turn);
      case "ignore":
        return this.#ignore(turn);
      case "report":
        return this.#report(turn);
      default:
        return this.#answer(turn);
    }
  };

  /** Talks for a while, and takes in what people add meanwhile. */
  async #answer(turn: Turn): Promise<void> {
    await this.#say(turn, `I ${turn.prompt.text}, one word after the other, as agents do.`);
    for (const { text } of await turn.takeSteers()) await this.#say(turn, ` And, since you added it: ${text}.`);
  }

  /** Two tools at once; one of them goes on until somebody stops it. */
  async #call(turn: Turn): Promise<string> {
    const build = turn.call("build", { target: "site" }, async ({ signal }) => {
      await sleep(2 * this.#pace.toolMs, undefined, { signal });
      return "built";
    });
    const tests = turn.call("tests", { suite: "all" }, async ({ signal, partial }) => {
      partial({ passed: 212, of: 900 });
      await sleep(ENDLESS_MS, undefined, { signal });
    });
    const [built, tested] = await Promise.all([build, tests]);
    const known = tested.kind === "cancelled" ? `; so far: ${JSON.stringify(tested.partial)}` : "";
    return `build ${built.kind}, tests ${tested.kind}${known}. I go on with what I have.`;
  }

  /** A tool that does not listen: it has a signal and never looks at it. */
  async #ignore(turn: Turn): Promise<void> {
    await turn.call("legacy_sync", {}, async () => {
      await sleep(this.#pace.toolMs + 2 * this.#pace.graceMs);
      return "synced, long after anybody wanted to know";
    });
  }

  /** A tool with an effect, then a long answer: what a restart must not repeat, and what it must take up. */
  async #report(turn: Turn): Promise<void> {
    const figures = await turn.call("collect_figures", { month: "October" }, async ({ signal }) => {
      this.collected += 1;
      await sleep(this.#pace.toolMs, undefined, { signal });
      return { visits: 1204 };
    });
    const visits = figures.kind === "completed" ? JSON.stringify(figures.value) : figures.kind;
    await this.#say(turn, `The figures of October are ${visits}, and this sentence survived a restart of its server.`);
  }

  async #say(turn: Turn, text: string): Promise<void> {
    for (const piece of text.split(/(?<= )/)) {
      turn.emit(piece);
      await sleep(this.#pace.wordMs, undefined, { signal: turn.signal });
    }
  }
}
