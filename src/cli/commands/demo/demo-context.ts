// The context of the demo: a store in a temporary folder, and an abort signal that ends every wait.
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
import { formatOutcome } from "../../shared/format/format-outcome.ts";
import { printLine } from "../../shared/terminal/terminal.ts";

export interface Pace extends DemoPace {
  /** The pause for reading. */
  readonly readMs: number;
  readonly graceMs: number;
}

export const PACES = {
  reading: { readMs: 450, wordMs: 22, stepMs: 180, stubbornMs: 1_800, graceMs: 600 },
  fast: { readMs: 0, wordMs: 1, stepMs: 15, stubbornMs: 300, graceMs: 100 },
} as const satisfies Record<string, Pace>;

/** How long closing may take after a signal. */
const LEAVE_MS = 500;

export class DemoContext {
  readonly pace: Pace;
  /** How often each tool was really started. */
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

  static async build(pace: Pace, leave: AbortSignal): Promise<DemoContext> {
    const folder = await mkdtemp(join(tmpdir(), "belay-demo-"));
    // Runs at every exit, even if the reader of stdout has closed the pipe.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    return new DemoContext(folder, pace, leave);
  }

  /** The folder of the agent's tools. */
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

  /** The open Belay. */
  get belay(): Belay {
    if (this.#belay === undefined) throw new Error("Nothing is open yet.");
    return this.#belay;
  }

  /** Waits for a promise; rejects at once after a signal. */
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

  /** Pauses for reading. */
  async pause(ms: number = this.pace.readMs): Promise<void> {
    await sleep(ms, undefined, { signal: this.#leave });
  }

  /** The first event of this type in a run. */
  async event<T extends Recorded["type"]>(run: RunHandle, type: T): Promise<Extract<Recorded, { type: T }>> {
    return this.until(firstOf(run, (event) => (isOf(event, type) ? event : undefined)));
  }

  /** The first result of `pick` for the events of a session after a position. */
  async eventIn<T>(session: Session, after: Seq, pick: (event: Recorded) => T | undefined): Promise<T> {
    return this.until(firstIn(session, after, pick));
  }

  async close(): Promise<void> {
    await this.#belay?.close({ mode: "cancel", limitMs: LEAVE_MS });
  }
}

/** Prints a prompt and sends it. */
export function ask(session: Session, text: string): RunHandle {
  printLine("you", `prompt "${text}"`);
  return session.prompt(text);
}

/** Prints the text and the outcome of a run. */
export async function ended(context: DemoContext, run: RunHandle, name?: string): Promise<Outcome> {
  const outcome = await context.until(run.outcome);
  const text = await context.until(run.text({ all: true }));
  if (text !== "") printLine("agent", text);
  printLine("belay", `${name === undefined ? "" : `${name}: `}${formatOutcome(outcome)}`);
  await context.pause();
  return outcome;
}

/** The first result of `pick` for the events and deltas of a run. */
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
