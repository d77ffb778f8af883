// A run as a person at a shell sees it: its words on stdout, and what happens besides on stderr.
//
// Invariants
// 1. A terminal shows nothing that could steer it, and every row of it stands in a margin. A file gets what was said.
// 2. While a question is on the screen nothing is printed below it.
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { CallId, ProcessId, RunId, TurnId } from "../../../core/model/ids.ts";
import { titleOf } from "../../../core/model/process.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { Clock } from "../../../ports/clock.ts";
import { sayExit, sayOutcome, sayReason } from "../../shared/format/format-outcome.ts";
import { sayEnding } from "../../shared/format/format-receipt.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { inMargin, Margin, REPORTED, SPOKEN } from "../../shared/terminal/margin.ts";
import { RunTextSoFar } from "./run-text-so-far.ts";
import { within } from "./within.ts";

/** Of an input, a result or a note: enough to know which it is. */
const BRIEF_CHARS_MAX = 160;

type Paper = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface RunViewOptions {
  readonly out: Paper;
  readonly err: Paper;
  /** `lines`: events as JSON on stdout, and no text there. */
  readonly form: "text" | "lines";
  /** What other commands need to find the place where the run goes on. */
  readonly options: string;
  readonly clock: Clock;
}

export class RunView {
  readonly #options: RunViewOptions;
  readonly #said = new RunTextSoFar();
  readonly #names = new Map<CallId, string>();
  /** Those that calls of this run have started; how one in the foreground ended is told by its call. */
  readonly #processes = new Map<ProcessId, "foreground" | "background">();
  #thinking: TurnId | undefined;
  /** Whether the last character on stdout was the end of a line. */
  #fresh = true;
  /** How often the reader of stdout was waited for. */
  #waits = 0;
  readonly #spoken: Margin;
  /** What would be printed, while a question is on the screen. */
  #held: (() => void)[] | undefined;

  constructor(options: RunViewOptions) {
    this.#options = options;
    this.#spoken = new Margin(SPOKEN, () => options.out.columns);
  }

  /** Shows what belongs to this run; everything else in its session is left out. */
  show(event: Recorded | Delta | Gap, runId: RunId): void {
    if (!this.#belongs(event, runId)) return;
    if (this.#options.form === "lines") this.#options.out.write(`${JSON.stringify(event)}\n`);
    else this.#person(event);
  }

  /** Resolves when stdout takes more. Until then what is not shown yet stays where it is kept. */
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

  /** What the work resolves with, in time. The time in which the reader of stdout holds it up does not count. */
  async shownWithin<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
    for (;;) {
      const waits = this.#waits;
      const found = await within(this.#options.clock, limitMs, work);
      if (found !== undefined || (!this.#options.out.writableNeedDrain && this.#waits === waits)) return found;
    }
  }

  /** The text of a turn, read from the run: what of it was not shown yet. */
  answer(turnId: TurnId, text: string): void {
    this.#say(this.#said.whole(turnId, text));
    this.endLine();
  }

  /** A line beside the text. */
  note(text: string): void {
    this.#print(() => {
      const { out, err } = this.#options;
      // Both on one screen: a note does not begin in the middle of a sentence.
      if (!this.#fresh && out.isTTY === true && err.isTTY === true) this.#endLine();
      err.write(this.noted(text));
    });
  }

  /** A note as it is written. */
  noted(text: string): string {
    const { err } = this.#options;
    const line = plainLine(text);
    if (err.isTTY !== true) return `${line}\n`;
    return this.#dim(inMargin(REPORTED, line, err.columns));
  }

  /** A question is put on the screen: what else there is to show waits. */
  hold(): void {
    this.#endLine();
    this.#held ??= [];
  }

  /** It is over. */
  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const print of held) print();
  }

  /** What comes next begins at the beginning of a line. */
  endLine(): void {
    this.#print(() => this.#endLine());
  }

  #endLine(): void {
    if (!this.#fresh) this.#options.out.write(this.#onTerminal ? this.#spoken.end() : "\n");
    this.#fresh = true;
  }

  get #onTerminal(): boolean {
    return this.#options.out.isTTY === true;
  }

  #print(print: () => void): void {
    if (this.#held === undefined) print();
    else this.#held.push(print);
  }

  /** A stream that is no terminal takes it as it is. */
  #dim(text: string): string {
    return styleText("dim", text, { stream: this.#options.err });
  }

  #belongs(event: Recorded | Delta | Gap, runId: RunId): boolean {
    if (event.type === "gap") return true;
    if ("runId" in event) return event.runId === runId;
    if (event.type === "process.requested") {
      // In the background it is the session's; those are shown, as somebody of this session has just started them.
      this.#processes.set(event.processId, event.owner.startsWith("call_") ? "foreground" : "background");
      return event.owner.startsWith("ses_") || this.#names.has(event.owner as CallId);
    }
    return "processId" in event && event.processId !== undefined && this.#processes.has(event.processId);
  }

  #person(event: Recorded | Delta | Gap): void {
    switch (event.type) {
      case "gap":
        this.note("Some of what was said is not kept any more.");
        break;
      case "delta":
        if (event.kind === "reasoning") this.#thinks(event.turnId);
        else this.#say(this.#said.delta(event));
        break;
      case "turn.extended":
        this.#say(this.#said.extended(event));
        break;
      case "turn.settled":
        this.#say(this.#said.settled(event));
        this.endLine();
        break;
      case "progress":
      case "output":
        break;
      default:
        this.#tell(event);
    }
  }

  #thinks(turn: TurnId): void {
    if (this.#thinking !== turn) this.note("thinking …");
    this.#thinking = turn;
  }

  #say(text: string): void {
    this.#print(() => {
      // Escapes are dangerous on a terminal alone; a file or a pipe gets every character.
      const said = this.#onTerminal ? plainText(text) : text;
      if (said === "") return;
      this.#options.out.write(this.#onTerminal ? this.#spoken.lay(said) : said);
      this.#fresh = said.endsWith("\n");
    });
  }

  #tell(event: Recorded): void {
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
        return `${this.#call(event.callId)} is being stopped (${sayReason(event.reason)})`;
      case "call.settled":
        return `${this.#call(event.callId)} ${settled(event)}`;
      case "process.requested":
        return `${event.processId} ${plainLine(titleOf(event.command), BRIEF_CHARS_MAX)}`;
      case "process.started":
        return `${event.processId} runs as process ${event.pid}, held by tier ${event.tier}`;
      case "process.detached":
        return `${event.processId} goes on in the background of the session`;
      case "process.settled":
        if (this.#processes.get(event.processId) !== "background") return undefined;
        return `${event.processId} ${sayOutcome(event.outcome)}${sayExit(event.exit)}`;
      case "question.settled":
        return `${event.questionId} ${sayEnding(event.ending)}`;
      case "run.cancel_requested":
        return `${event.runId} is being stopped (${sayReason(event.reason)})`;
      case "run.parked":
        return `${event.runId} was set down: what it ran in is shutting down, and the next start takes it up`;
      case "run.recovered":
        return `${event.runId} was taken up again after its worker had gone; what it said last is said anew`;
      case "run.taken":
        return (
          `${event.runId} was taken into ${event.into}, which answers it: ` +
          `belay follow ${event.into}${this.#options.options}`
        );
      case "run.requeued":
        return `${event.runId} found no live run any more, and is a run of its own`;
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
  const parts = [sayOutcome(outcome)];
  if (result !== undefined) parts.push(`${outcome.kind === "completed" ? "" : "so far: "}${brief(result)}`);
  if (changes !== undefined) parts.push(`changed: ${changes.join(", ")}`);
  return parts.join("; ");
}
