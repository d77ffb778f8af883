// Where the demo plays: a store in a folder of its own, and the means to leave at any moment.
import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outcome } from "../../../core/model/cancel.ts";
import type { Delta } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { Seq } from "../../../core/model/ids.ts";
import { demoAgent } from "../../../demo/demo-agent.ts";
import type { DemoPace } from "../../../demo/pace.ts";
import type { Notice } from "../../../ports/hooks.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { sayOutcome } from "../../shared/format/format-outcome.ts";
import { printLine } from "../../shared/terminal/terminal.ts";

export interface Pace extends DemoPace {
  /** A moment to read. */
  readonly readMs: number;
  readonly graceMs: number;
}

export const PACES = {
  reading: { readMs: 450, wordMs: 22, stepMs: 180, stubbornMs: 1_800, graceMs: 600 },
  fast: { readMs: 0, wordMs: 1, stepMs: 15, stubbornMs: 300, graceMs: 100 },
} as const satisfies Record<string, Pace>;

/** What closing may take once somebody wants to leave: the rest of the second is the operating system's. */
const LEAVE_MS = 500;

export class Stage {
  readonly pace: Pace;
  /** How often each tool has really been begun. */
  readonly begun = new Map<string, number>();
  readonly notices: Notice[] = [];
  readonly #folder: string;
  readonly #leave: AbortSignal;
  #belay: Belay | undefined;

  private constructor(folder: string, pace: Pace, leave: AbortSignal) {
    this.#folder = folder;
    this.pace = pace;
    this.#leave = leave;
  }

  static async build(pace: Pace, leave: AbortSignal): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), "belay-demo-"));
    // At the very end, whichever way that comes: also if nobody reads our output any more.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    return new Stage(folder, pace, leave);
  }

  /** Where the agent's tools work. */
  get files(): string {
    return join(this.#folder, "files");
  }

  /** Opens Belay on the file, as a server would when it starts. */
  async open(): Promise<Belay> {
    await mkdir(this.files, { recursive: true });
    this.#belay = await openBelay({
      store: join(this.#folder, "belay.db"),
      agent: demoAgent({ folder: this.files, pace: this.pace }),
      graceMs: this.pace.graceMs,
      processes: { workspace: this.files },
      hooks: { beforeCall: ({ name }) => void this.begun.set(name, (this.begun.get(name) ?? 0) + 1) },
      onNotice: (notice) => {
        if (notice.type === "late") this.notices.push(notice);
      },
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
    return this.until(firstOf(run, (event) => (isOf(event, type) ? event : undefined)));
  }

  /** The first event of a session, after a position, that is what is looked for. */
  async eventIn<T>(session: Session, after: Seq, pick: (event: Recorded) => T | undefined): Promise<T> {
    return this.until(firstIn(session, after, pick));
  }

  async close(): Promise<void> {
    await this.#belay?.close({ mode: "cancel", limitMs: LEAVE_MS });
  }
}

/** A prompt, said aloud. */
export function ask(session: Session, text: string): RunHandle {
  printLine("you", `prompt "${text}"`);
  return session.prompt(text);
}

/** Says how a run ended, and the agent's words if it said any. */
export async function ended(stage: Stage, run: RunHandle, name?: string): Promise<Outcome> {
  const outcome = await stage.until(run.outcome);
  const text = await stage.until(run.text({ all: true }));
  if (text !== "") printLine("agent", text);
  printLine("belay", `${name === undefined ? "" : `${name}: `}${sayOutcome(outcome)}`);
  await stage.pause();
  return outcome;
}

/** The first of a run's events and deltas that is what is looked for; those that came before are skipped. */
export async function firstOf<T>(run: RunHandle, pick: (event: Recorded | Delta) => T | undefined): Promise<T> {
  for await (const event of run) {
    const found = event.type === "gap" ? undefined : pick(event);
    if (found !== undefined) return found;
  }
  throw new Error("The run ended without what was looked for.");
}

async function firstIn<T>(session: Session, after: Seq, pick: (event: Recorded) => T | undefined): Promise<T> {
  for await (const event of session.events({ after })) {
    const found = "seq" in event ? pick(event) : undefined;
    if (found !== undefined) return found;
  }
  throw new Error("The session ended without what was looked for.");
}

export const isOf = <T extends Recorded["type"]>(
  event: { readonly type: string },
  type: T,
): event is Extract<Recorded, { type: T }> => event.type === type;
