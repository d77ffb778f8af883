// Where the demo plays: a store in a folder of its own, and the means to leave at any moment.
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Recorded } from "../core/event.ts";
import { type Belay, openBelay } from "../library/belay.ts";
import type { RunHandle } from "../library/run.ts";
import type { Notice } from "../ports.ts";
import { DemoAgent, type Pace, type Script } from "./demo-agent.ts";
import { printLine } from "./terminal.ts";

/** What closing may take once somebody wants to leave: the rest of the second is the operating system's. */
const LEAVE_MS = 500;

export class Stage {
  readonly pace: Pace;
  readonly agent: DemoAgent;
  readonly notices: Notice[] = [];
  readonly #folder: string;
  readonly #leave: AbortSignal;
  #belay: Belay | undefined;

  private constructor(folder: string, pace: Pace, leave: AbortSignal) {
    this.#folder = folder;
    this.pace = pace;
    this.agent = new DemoAgent(pace);
    this.#leave = leave;
  }

  static async build(pace: Pace, leave: AbortSignal): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), "belay-demo-"));
    // At the very end, whichever way that comes: also if nobody reads our output any more.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    return new Stage(folder, pace, leave);
  }

  get file(): string {
    return join(this.#folder, "belay.db");
  }

  /** Opens Belay on the file, as a server would when it starts. */
  async open(): Promise<Belay> {
    this.#belay = await openBelay({
      store: this.file,
      agent: this.agent.act,
      graceMs: this.pace.graceMs,
      onNotice: (notice) => this.notices.push(notice),
    });
    return this.#belay;
  }

  /** The one that is open. */
  get belay(): Belay {
    if (this.#belay === undefined) throw new Error("Nothing is open yet.");
    return this.#belay;
  }

  /** Waits for something, but not longer than the audience stays. */
  async until<T>(coming: Promise<T>): Promise<T> {
    this.#leave.throwIfAborted();
    let leave = (): void => {};
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(this.#leave.reason);
      this.#leave.addEventListener("abort", leave, { once: true });
    });
    try {
      return await Promise.race([coming, left]);
    } finally {
      this.#leave.removeEventListener("abort", leave);
    }
  }

  /** A moment to read. */
  async pause(ms: number = this.pace.readMs): Promise<void> {
    await sleep(ms, undefined, { signal: this.#leave });
  }

  /** The first event of this type in a run's life; those that came before are skipped. */
  async event<T extends Recorded["type"]>(run: RunHandle, type: T): Promise<Extract<Recorded, { type: T }>> {
    return this.until(firstOf(run, type));
  }

  async close(): Promise<void> {
    await this.#belay?.close({ mode: "cancel", limitMs: LEAVE_MS });
  }
}

/** A prompt, said aloud. */
export function ask(session: { prompt: Prompting }, text: string, script: Script = "answer"): RunHandle {
  printLine("you", `prompt "${text}"`);
  return session.prompt({ text, data: script });
}

type Prompting = (prompt: { readonly text: string; readonly data: Script }) => RunHandle;

async function firstOf<T extends Recorded["type"]>(run: RunHandle, type: T): Promise<Extract<Recorded, { type: T }>> {
  for await (const event of run) {
    if (isOf(event, type)) return event;
  }
  throw new Error(`The run ended without ${type}.`);
}

const isOf = <T extends Recorded["type"]>(
  event: { readonly type: string },
  type: T,
): event is Extract<Recorded, { type: T }> => event.type === type;
