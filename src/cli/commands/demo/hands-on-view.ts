// Prints the events and deltas of a session as lines, and numbers its calls and questions.
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq } from "../../../core/model/ids.ts";
import { titleOf } from "../../../core/model/process.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { QuestionOutcome, Subject } from "../../../core/model/question.ts";
import type { Clock } from "../../../ports/clock.ts";
import { formatExit, formatOutcome, formatReason } from "../../shared/format/format-outcome.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { QUIET_MS } from "../../shared/terminal/held-terminal.ts";
import type { Screen } from "../../shared/terminal/screen.ts";
import type { Begun } from "./prompt-line.ts";

/** Inputs and results are cut to this length. */
const JSON_CHARS_MAX = 160;

/** Prompts that name their run are cut to this length. */
const PROMPT_CHARS_MAX = 40;

interface SeenCall {
  readonly number: number;
  readonly name: string;
  progress: string;
}

interface SeenQuestion {
  readonly number: number;
  readonly paintedMs: number;
  readonly code: string | undefined;
}

export class HandsOnView {
  readonly #screen: Screen;
  readonly #clock: Clock;
  readonly #newCode: (() => string) | undefined;
  /** Calls, questions and background processes share one sequence, so that a number is unique. */
  #numbers = 0;
  readonly #calls = new Map<CallId, SeenCall>();
  readonly #questions = new Map<QuestionId, SeenQuestion>();
  /** The source of a process's lines: its call, or in the background the process itself. */
  readonly #processes = new Map<ProcessId, `call ${number}` | `proc ${number}`>();
  readonly #live = new Set<CallId>();
  /** The prompts of the runs that have not ended. */
  readonly #prompts = new Map<RunId, string>();
  #seen: Seq = 0;
  #waiters: { readonly seq: Seq; readonly wake: () => void }[] = [];

  /** `newCode`: given if the terminal does not report when a line was begun. Each question then has a code. */
  constructor(screen: Screen, clock: Clock, newCode?: () => string) {
    this.#screen = screen;
    this.#clock = clock;
    this.#newCode = newCode;
  }

  /** The call or the background process with this number. */
  numbered(number: number): CallId | ProcessId | undefined {
    const call = [...this.#calls].find(([, seen]) => seen.number === number)?.[0];
    return call ?? [...this.#processes].find(([, source]) => source === `proc ${number}`)?.[0];
  }

  numberOf(id: CallId | QuestionId): number | undefined {
    return id.startsWith("call_")
      ? this.#calls.get(id as CallId)?.number
      : this.#questions.get(id as QuestionId)?.number;
  }

  /**
   * Whether a question was on the screen when the line that answers it was begun. `line`: the time of its first key, or
   * the question whose code it ends with.
   */
  wasSeen(id: QuestionId, line: Begun | QuestionId): boolean {
    const asked = this.#questions.get(id);
    if (typeof line === "number") return asked !== undefined && line >= asked.paintedMs + QUIET_MS;
    return line === "pipe" || line === id;
  }

  /** Splits a line that ends with the code of a question into its text and the question. */
  coded(line: string): { readonly text: string; readonly id: QuestionId } | undefined {
    const [, text, code] = /^(\S[\s\S]*?)\s+(\S+)$/.exec(line.trim()) ?? [];
    if (text === undefined || code === undefined) return undefined;
    const id = [...this.#questions].find(([, asked]) => asked.code === code.toLowerCase())?.[0];
    return id === undefined ? undefined : { text, id };
  }

  /** Resolves when everything up to this position has been shown. */
  shown(seq: Seq): Promise<void> {
    if (this.#seen >= seq) return Promise.resolve();
    return new Promise((wake) => this.#waiters.push({ seq, wake }));
  }

  show(event: Recorded | Delta | Gap): void {
    switch (event.type) {
      case "gap":
      case "output":
        break;
      case "delta":
        this.#screen.append(event.kind === "reasoning" ? "thinks" : "agent", event.text);
        break;
      case "progress":
        this.#progress(event.callId, event.data);
        break;
      default:
        this.#recorded(event);
        this.#seen = event.seq;
        for (const { wake } of this.#waiters.filter(({ seq }) => seq <= this.#seen)) wake();
        this.#waiters = this.#waiters.filter(({ seq }) => seq > this.#seen);
    }
  }

  #recorded(event: Recorded): void {
    switch (event.type) {
      case "run.accepted":
        if (event.wake === true)
          this.#screen.print("belay", "no prompt: this run was started by a process that has ended");
        this.#prompts.set(event.runId, plainLine(event.prompt.text, PROMPT_CHARS_MAX));
        break;
      case "run.edited":
        this.#prompts.set(event.runId, plainLine(event.prompt.text, PROMPT_CHARS_MAX));
        break;
      case "turn.settled":
        this.#screen.close();
        break;
      case "call.requested":
      case "call.cancel_requested":
      case "call.settled":
        this.#call(event);
        break;
      case "process.requested":
      case "process.started":
      case "process.cancel_requested":
      case "process.settled":
        this.#process(event);
        break;
      case "question.asked":
        this.#asked(event);
        break;
      case "question.settled":
        this.#screen.print(this.#asker(event.questionId), ending(event.ending));
        break;
      case "run.cancel_requested":
        this.#screen.print("belay", `the run is being stopped (${formatReason(event.reason)})`);
        break;
      case "run.taken":
        this.#screen.print("belay", "the steer was taken into the live run");
        break;
      case "run.requeued":
        this.#screen.print("belay", "the run has ended before the steer: it becomes a separate run");
        break;
      case "run.settled":
        // A steer that was taken into the live run was reported before.
        if (event.outcome.kind === "completed" && event.outcome.into !== undefined) break;
        this.#screen.print("belay", `run “${this.#prompts.get(event.runId) ?? ""}” ${formatOutcome(event.outcome)}`);
        this.#prompts.delete(event.runId);
        break;
      default:
        break;
    }
  }

  #call(event: Extract<Recorded, { type: `call.${string}` }>): void {
    const { callId } = event;
    if (event.type === "call.requested") {
      this.#numbers += 1;
      this.#calls.set(callId, { number: this.#numbers, name: event.name, progress: "" });
      this.#live.add(callId);
      this.#screen.print(`call ${this.#numbers}`, `${event.name} ${brief(event.input)}`);
    } else if (event.type === "call.cancel_requested") {
      this.#screen.print(this.#caller(callId), `is being stopped (${formatReason(event.reason)})`);
    } else {
      this.#live.delete(callId);
      this.#screen.print(this.#caller(callId), settled(event));
    }
    this.#status();
  }

  #process(event: Exclude<Extract<Recorded, { type: `process.${string}` }>, { type: "process.detached" }>): void {
    const { processId } = event;
    if (event.type === "process.requested") {
      const { owner, command } = event;
      const call = owner.startsWith("call_") ? this.#calls.get(owner as CallId) : undefined;
      if (call === undefined) this.#numbers += 1;
      const source = call === undefined ? (`proc ${this.#numbers}` as const) : (`call ${call.number}` as const);
      this.#processes.set(processId, source);
      if (call === undefined) this.#screen.print(source, `in the background: ${plainLine(titleOf(command))}`);
      return;
    }
    const source = this.#processes.get(processId) ?? "proc 0";
    if (event.type === "process.started") {
      this.#screen.print(source, `runs as process ${event.pid}, held by tier ${event.tier}`);
    } else if (event.type === "process.cancel_requested") {
      this.#screen.print(source, `is being stopped (${formatReason(event.reason)})`);
    } else if (source.startsWith("proc")) {
      // The end of a foreground process is reported by its call.
      this.#screen.print(source, `${formatOutcome(event.outcome)}${formatExit(event.exit)}`);
    }
  }

  #progress(callId: CallId, data: Json): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    call.progress = brief(data);
    // On a terminal progress is in the status row, so that it does not scroll other lines away.
    if (this.#screen.terminal) this.#status();
    else this.#screen.print(`call ${call.number}`, `… ${call.progress}`);
  }

  #asked({ questionId, owner, about }: Extract<Recorded, { type: "question.asked" }>): void {
    this.#numbers += 1;
    const call = owner.startsWith("call_") ? this.#calls.get(owner as CallId) : undefined;
    const code = this.#newCode?.();
    const added = code === undefined ? "" : `, and at its end ${code}`;
    this.#screen.print(`ask ${this.#numbers}`, `${question(about, call?.number)}${added}`);
    this.#questions.set(questionId, { number: this.#numbers, paintedMs: this.#clock.elapsed(), code });
  }

  #status(): void {
    const calls = [...this.#live].flatMap((id) => this.#calls.get(id) ?? []);
    this.#screen.status(
      calls.map(({ number, name, progress }) => `${number} ${name} ${progress}`.trim()).join("  |  "),
    );
  }

  #caller(id: CallId): `call ${number}` {
    return `call ${this.#calls.get(id)?.number ?? 0}`;
  }

  #asker(id: QuestionId): `ask ${number}` {
    return `ask ${this.#questions.get(id)?.number ?? 0}`;
  }
}

export const brief = (data: Json): string =>
  plainLine(typeof data === "string" ? data : JSON.stringify(data), JSON_CHARS_MAX);

function question(about: Subject, call: number | undefined): string {
  if (about.kind === "question") {
    const options = about.options === undefined ? "" : ` (${about.options.join(", ")})`;
    return `${about.text}${options} Type: answer TEXT`;
  }
  const which = call === undefined ? about.name : `call ${call}, ${about.name}`;
  return `May ${which}, go on? ${about.note ?? ""} Type: yes, no or always`;
}

function ending(end: QuestionOutcome): string {
  switch (end.kind) {
    case "allowed":
      return end.remember === "session" ? "allowed, and not asked again in this session" : "allowed";
    case "denied":
      return `denied${end.note === undefined ? "" : `: ${end.note}`}`;
    case "answered":
      return `answered: ${brief(end.value)}`;
    case "expired":
      return `no answer within ${end.limitMs} ms`;
    case "withdrawn":
      return `withdrawn (${formatReason(end.reason)})`;
  }
}

function settled({ outcome, result, changes }: Extract<Recorded, { type: "call.settled" }>): string {
  const parts = [formatOutcome(outcome)];
  if (result !== undefined) parts.push(`${outcome.kind === "completed" ? "" : "so far: "}${brief(result)}`);
  if (changes !== undefined) parts.push(`changed: ${changes.join(", ")}`);
  return parts.join("; ");
}
