// Prints a run: its text on stdout, and its other events as notes on stderr.
//
// Invariants
// 1. Text for a terminal is sanitised, and every row of it is in a margin. A file or a pipe gets the exact text.
// 2. While a question is on the screen no line is printed below it.
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { CallId, ProcessId, RunId, TurnId } from "../../../core/model/ids.ts";
import { titleOf } from "../../../core/model/process.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { Clock } from "../../../ports/clock.ts";
import { formatExit, formatOutcome, formatReason } from "../../shared/format/format-outcome.ts";
import { formatEnding } from "../../shared/format/format-receipt.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { AGENT_MARK, inMargin, Margin, REPORT_MARK } from "../../shared/terminal/margin.ts";
import { RunTextSoFar } from "./run-text-so-far.ts";
import { within } from "./within.ts";

/** Inputs, results and notes are cut to this length. */
const BRIEF_CHARS_MAX = 160;

type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface RunViewOptions {
  readonly out: Output;
  readonly err: Output;
  /** `lines`: events as JSON on stdout, and no text there. */
  readonly form: "text" | "lines";
  /** The options with which other commands find the run. */
  readonly options: string;
  readonly clock: Clock;
}

export class RunView {
  readonly #options: RunViewOptions;
  readonly #text = new RunTextSoFar();
  readonly #names = new Map<CallId, string>();
  /** The processes that calls of this run have started. The end of a foreground process is reported by its call. */
  readonly #processes = new Map<ProcessId, "foreground" | "background">();
  #thinking: TurnId | undefined;
  /** Whether the last character on stdout was the end of a line. */
  #fresh = true;
  /** How often this view waited for the reader of stdout. */
  #waits = 0;
  readonly #margin: Margin;
  /** The output that waits while a question is on the screen. */
  #held: (() => void)[] | undefined;

  constructor(options: RunViewOptions) {
    this.#options = options;
    this.#margin = new Margin(AGENT_MARK, () => options.out.columns);
  }

  /** Prints an event if it belongs to this run; other events of its session are skipped. */
  show(event: Recorded | Delta | Gap, runId: RunId): void {
    if (!this.#belongs(event, runId)) return;
    if (this.#options.form === "lines") this.#options.out.write(`${JSON.stringify(event)}\n`);
    else this.#showText(event);
  }

  /** Backpressure: resolves when stdout accepts more. Until then no more events should be fetched. */
  async room(signal: AbortSignal): Promise<void> {
    const { out } = this.#options;
    if (!out.writableNeedDrain || signal.aborted) return;
    this.#waits += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    const listen = (): void => resolve();
    for (const event of ["drain", "close", "error"] as const) out.on(event, listen);
    signal.addEventListener("abort", listen, { once: true });
    await promise;
    for (const event of ["drain", "close", "error"] as const) out.off(event, listen);
    signal.removeEventListener("abort", listen);
  }

  /** The result of the work, or undefined after the timeout, not counting the time spent waiting for a slow reader. */
  async shownWithin<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
    for (;;) {
      const waits = this.#waits;
      const found = await within(this.#options.clock, limitMs, work);
      if (found !== undefined || (!this.#options.out.writableNeedDrain && this.#waits === waits)) return found;
    }
  }

  /** Prints the text of a turn, as read from the run, except what was already printed. */
  answer(turnId: TurnId, text: string): void {
    this.#write(this.#text.whole(turnId, text));
    this.endLine();
  }

  /** Prints a line on stderr. */
  note(text: string): void {
    this.#print(() => {
      const { out, err } = this.#options;
      // Both on one terminal: a note starts on a new line.
      if (!this.#fresh && out.isTTY === true && err.isTTY === true) this.#endLine();
      err.write(this.noted(text));
    });
  }

  /** Formats a note. */
  noted(text: string): string {
    const { err } = this.#options;
    const line = plainLine(text);
    if (err.isTTY !== true) return `${line}\n`;
    return this.#dim(inMargin(REPORT_MARK, line, err.columns));
  }

  /** Holds back all output while a question is on the screen. */
  hold(): void {
    this.#endLine();
    this.#held ??= [];
  }

  /** Prints the output that was held back. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const print of held) print();
  }

  /** Makes the next output start on a new line. */
  endLine(): void {
    this.#print(() => this.#endLine());
  }

  #endLine(): void {
    if (!this.#fresh) this.#options.out.write(this.#onTerminal ? this.#margin.end() : "\n");
    this.#fresh = true;
  }

  get #onTerminal(): boolean {
    return this.#options.out.isTTY === true;
  }

  #print(print: () => void): void {
    if (this.#held === undefined) print();
    else this.#held.push(print);
  }

  /** Leaves the text unchanged if the stream is not a terminal. */
  #dim(text: string): string {
    return styleText("dim", text, { stream: this.#options.err });
  }

  #belongs(event: Recorded | Delta | Gap, runId: RunId): boolean {
    if (event.type === "gap") return true;
    if ("runId" in event) return event.runId === runId;
    if (event.type === "process.requested") {
      // Background processes belong to the session. They are shown too, since they were started during this run.
      this.#processes.set(event.processId, event.owner.startsWith("call_") ? "foreground" : "background");
      return event.owner.startsWith("ses_") || this.#names.has(event.owner as CallId);
    }
    return "processId" in event && event.processId !== undefined && this.#processes.has(event.processId);
  }

  #showText(event: Recorded | Delta | Gap): void {
    switch (event.type) {
      case "gap":
        this.note("Some earlier output is no longer kept.");
        break;
      case "delta":
        if (event.kind === "reasoning") this.#thinks(event.turnId);
        else this.#write(this.#text.delta(event));
        break;
      case "turn.extended":
        this.#write(this.#text.extended(event));
        break;
      case "turn.settled":
        this.#write(this.#text.settled(event));
        this.endLine();
        break;
      case "progress":
      case "output":
        break;
      default:
        this.#noteEvent(event);
    }
  }

  #thinks(turn: TurnId): void {
    if (this.#thinking !== turn) this.note("thinking …");
    this.#thinking = turn;
  }

  #write(text: string): void {
    this.#print(() => {
      // Escape sequences are dangerous only on a terminal; a file or a pipe gets every character.
      const safe = this.#onTerminal ? plainText(text) : text;
      if (safe === "") return;
      this.#options.out.write(this.#onTerminal ? this.#margin.format(safe) : safe);
      this.#fresh = safe.endsWith("\n");
    });
  }

  #noteEvent(event: Recorded): void {
    if (event.type === "call.requested") this.#names.set(event.callId, event.name);
    if (event.type === "process.detached") this.#processes.set(event.processId, "background");
    const line = this.#lineOf(event);
    if (line !== undefined) this.note(line);
  }

  #lineOf(event: Recorded): string | undefined {
    switch (event.type) {
      case "call.requested":
        return `${event.callId} ${event.name} ${brief(event.input)}`;
      case "call.cancel_requested":
        return `${this.#call(event.callId)} is being stopped (${formatReason(event.reason)})`;
      case "call.settled":
        return `${this.#call(event.callId)} ${settled(event)}`;
      case "process.requested":
        return `${event.processId} ${plainLine(titleOf(event.command), BRIEF_CHARS_MAX)}`;
      case "process.started":
        return `${event.processId} runs as process ${event.pid}, held by tier ${event.tier}`;
      case "process.detached":
        return `${event.processId} continues in the background of the session`;
      case "process.settled":
        if (this.#processes.get(event.processId) !== "background") return undefined;
        return `${event.processId} ${formatOutcome(event.outcome)}${formatExit(event.exit)}`;
      case "question.settled":
        return `${event.questionId} ${formatEnding(event.ending)}`;
      case "run.cancel_requested":
        return `${event.runId} is being stopped (${formatReason(event.reason)})`;
      case "run.parked":
        return `${event.runId} was parked: its worker is shutting down, and the next start resumes it`;
      case "run.recovered":
        return `${event.runId} was resumed after its worker had gone; its last text is repeated`;
      case "run.taken":
        return (
          `${event.runId} was taken into ${event.into}, which answers it: ` +
          `belay follow ${event.into}${this.#options.options}`
        );
      case "run.requeued":
        return `${event.runId} found no live run, and became a separate run`;
      default:
        return undefined;
    }
  }

  #call(id: CallId): string {
    const name = this.#names.get(id);
    return name === undefined ? id : `${id} ${name}`;
  }
}

export const brief = (data: Json): string =>
  plainLine(typeof data === "string" ? data : JSON.stringify(data), BRIEF_CHARS_MAX);

function settled({ outcome, result, changes }: Extract<Recorded, { type: "call.settled" }>): string {
  const parts = [formatOutcome(outcome)];
  if (result !== undefined) parts.push(`${outcome.kind === "completed" ? "" : "so far: "}${brief(result)}`);
  if (changes !== undefined) parts.push(`changed: ${changes.join(", ")}`);
  return parts.join("; ");
}
