// Carries out the commands of the hands-on demo, and prints their results.
import { toControlError } from "../../../core/errors.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { QuestionId } from "../../../core/model/ids.ts";
import type { Question } from "../../../core/model/question.ts";
import type { Belay } from "../../../sdk/belay.ts";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { count, formatReceipt, formatSessionReceipt } from "../../shared/format/format-outcome.ts";
import type { Screen } from "../../shared/terminal/screen.ts";
import { type Command, HANDS_ON_HELP } from "./hands-on-input.ts";
import { brief, type HandsOnView } from "./hands-on-view.ts";
import type { Begun } from "./prompt-line.ts";

/** How much of the log is shown. */
const LOG_EVENTS = 12;

/** When the first key of a line was read, or the question whose code the line ends with. */
type Line = Begun | QuestionId;

export interface HandsOnParts {
  readonly belay: Belay;
  readonly session: Session;
  readonly screen: Screen;
  readonly view: HandsOnView;
}

/** Commands about the queue, the state and the log. */
type InspectCommand = Extract<Command, { kind: "drop" }> | { readonly kind: "queue" | "why" | "log" };

export class HandsOnActions {
  readonly #parts: HandsOnParts;
  /** All runs that were prompted here. */
  readonly runs: RunHandle[] = [];

  constructor(parts: HandsOnParts) {
    this.#parts = parts;
  }

  /** Never rejects: errors are printed. */
  async run(command: Exclude<Command, { kind: "quit" }>, line: Line = "unknown"): Promise<void> {
    try {
      await this.#execute(command, line);
    } catch (error) {
      const { message, hint } = toControlError(error);
      this.#print(`${message} ${hint}`);
    }
  }

  async #execute(command: Exclude<Command, { kind: "quit" }>, line: Line): Promise<void> {
    switch (command.kind) {
      case "nothing":
        break;
      case "unclear":
        this.#print(command.advice);
        break;
      case "help":
        for (const line of HANDS_ON_HELP) this.#parts.screen.printRaw(`  ${line}`);
        break;
      case "prompt":
        await this.#prompt(command);
        break;
      case "stop-session":
        await this.#stopSession(command.note);
        break;
      case "stop-run":
        await this.#stopRun(command.note);
        break;
      case "stop-call":
        await this.#stopCall(command.call, command.note);
        break;
      case "allow":
      case "deny":
        await this.#approve(command, line);
        break;
      case "answer":
        await this.#answer(command.text, line);
        break;
      default:
        await this.#inspect(command);
    }
  }

  async #inspect(command: InspectCommand): Promise<void> {
    switch (command.kind) {
      case "queue":
        await this.#queue();
        break;
      case "drop":
        await this.#drop(command.place);
        break;
      case "why":
        await this.#why();
        break;
      case "log":
        await this.#log();
        break;
    }
  }

  async #stopSession(note?: string): Promise<void> {
    const receipt = await this.#parts.session.cancel(reasonOf(note));
    this.#print(`stop: ${formatSessionReceipt(receipt)}`);
  }

  /** Cancels the session if a question is open: no user is left to answer it. */
  async cancelUnanswered(): Promise<void> {
    const { session } = this.#parts;
    if ((await session.questions()).length > 0) await session.cancel({ reason: "no user is left to answer" });
  }

  async #prompt({ text, delivery }: Extract<Command, { kind: "prompt" }>): Promise<void> {
    const run = this.#parts.session.prompt(text, { delivery });
    this.runs.push(run);
    const { ahead, joined } = await run.accepted;
    if (delivery === "queue" && ahead > 0) this.#print(`queued; ${count(ahead, "run")} before it`);
    if (delivery !== "steer") return;
    if (joined === "queue") this.#print("the session was idle, so the steer became a separate run");
    else this.#print("the steer waits for the next turn of the live run");
  }

  async #stopRun(note: string | undefined): Promise<void> {
    const live = (await this.#parts.session.explain()).live;
    if (live === undefined) return this.#print("no run is live");
    this.#print(`stop run: ${formatReceipt(await this.#parts.belay.cancel(live.runId, reasonOf(note)))}`);
  }

  async #stopCall(number: number, note: string | undefined): Promise<void> {
    const target = this.#parts.view.numbered(number);
    if (target === undefined) return this.#print(`there is no call number ${number}`);
    // Its end is shown by the view, so this does not wait for it.
    const receipt = await this.#parts.belay.cancel(target, { ...reasonOf(note), waitMs: 0 });
    const what = target.startsWith("call_") ? "call" : "process";
    this.#print(`stop ${what} ${number}: ${formatReceipt(receipt)}`);
  }

  async #approve(command: Extract<Command, { kind: "allow" | "deny" }>, line: Line): Promise<void> {
    const found = await this.#question("approval", command.question);
    if (found === undefined || !this.#wasSeen(found, line)) return;
    const { questions } = this.#parts.belay;
    const digest = found.about.kind === "approval" ? { digest: found.about.digest } : {};
    const receipt =
      command.kind === "deny"
        ? await questions.deny(found.id, { ...digest, ...(command.note === undefined ? {} : { note: command.note }) })
        : await questions.allow(found.id, { ...digest, ...(command.remember ? { remember: "session" } : {}) });
    if (receipt.kind !== "recorded") this.#print("too late: that was settled already");
  }

  async #answer(text: string, line: Line): Promise<void> {
    const open = (await this.#parts.session.questions()).filter(({ about }) => about.kind === "question");
    const [, digits, rest] = /^#?(\d{1,6})\s+([\s\S]+)$/.exec(text) ?? [];
    // With one question open a number is part of the answer.
    const numbered = open.length > 1 && digits !== undefined;
    const found = await this.#question("question", numbered ? Number(digits) : undefined);
    if (found === undefined || !this.#wasSeen(found, line)) return;
    const receipt = await this.#parts.belay.questions.answer(found.id, numbered ? (rest ?? "") : text);
    if (receipt.kind !== "recorded") this.#print("too late: that was settled already");
  }

  /** Whether the question was on the screen when the line was begun. If not, explains that, and the line is ignored. */
  #wasSeen({ id }: Question, line: Line): boolean {
    if (this.#parts.view.wasSeen(id, line)) return true;
    if (typeof line === "number")
      this.#print("that line was begun before the question was on the screen: read it, and type the answer again");
    else this.#print("nothing was answered: end the line with the code that was shown with the question");
    return false;
  }

  /** The question with this number, or the only open one. Otherwise prints which ones are open. */
  async #question(kind: "approval" | "question", number: number | undefined): Promise<Question | undefined> {
    const { session, view } = this.#parts;
    const open = (await session.questions()).filter(({ about }) => about.kind === kind);
    const numbers = open.map(({ id }) => view.numberOf(id));
    const word = kind === "approval" ? "a yes or a no" : "an answer";
    if (open.length === 0) this.#print(`nothing waits for ${word}`);
    else if (number === undefined && open.length > 1) this.#print(`which of them: ${numbers.join(" or ")}?`);
    else if (number === undefined) return open[0];
    else if (!numbers.includes(number))
      this.#print(`number ${number} does not wait for ${word}; ${numbers.join(", ")} does`);
    return number === undefined ? undefined : open.find(({ id }) => view.numberOf(id) === number);
  }

  async #queue(): Promise<void> {
    const queued = await this.#parts.session.queue.list();
    if (queued.length === 0) this.#print("nothing waits");
    for (const [at, { prompt, joined }] of queued.entries()) {
      this.#print(`${at + 1}. ${prompt.text}${joined === "steer" ? " (a steer)" : ""}`);
    }
  }

  async #drop(place: number): Promise<void> {
    const queued = (await this.#parts.session.queue.list())[place - 1];
    if (queued === undefined) return this.#print(`nothing waits at place ${place}`);
    const receipt = await this.#parts.session.queue.withdraw(queued.runId);
    this.#print(receipt.kind === "changed" ? `withdrawn: ${queued.prompt.text}` : `not withdrawn: ${receipt.kind}`);
  }

  async #why(): Promise<void> {
    const { session, view } = this.#parts;
    const { summary, live, asOf } = await session.explain();
    this.#print(summary);
    for (const { callId, name, phase, waits } of live?.calls ?? []) {
      const how = waits === undefined ? phase : `waits for its ${waits}`;
      this.#print(`call ${view.numberOf(callId) ?? "?"}, ${name}: ${how}`);
    }
    this.#print(`(as of position ${asOf} of the log)`);
  }

  async #log(): Promise<void> {
    const { session, screen } = this.#parts;
    const { asOf } = await session.explain();
    for await (const event of session.events({ after: Math.max(0, asOf - LOG_EVENTS) })) {
      if (!("seq" in event)) continue;
      screen.printRaw(`  ${String(event.seq).padStart(4)}  ${event.type.padEnd(24)} ${detail(event)}`);
      if (event.seq >= asOf) return;
    }
  }

  #print(text: string): void {
    this.#parts.screen.print("belay", text);
  }
}

const reasonOf = (note: string | undefined): { readonly reason?: string } =>
  note === undefined ? {} : { reason: note };

/** The most telling detail of an event. */
function detail(event: Recorded): string {
  switch (event.type) {
    case "run.accepted":
      return brief(event.prompt.text);
    case "call.requested":
      return `${event.name} ${event.callId}`;
    case "process.requested":
      return brief(typeof event.command === "string" ? event.command : event.command.join(" "));
    case "process.started":
      return `process ${event.pid}`;
    case "turn.extended":
      return brief(event.text);
    case "run.settled":
    case "turn.settled":
    case "call.settled":
    case "process.settled":
      return event.outcome.kind;
    case "question.settled":
      return event.ending.kind;
    case "session.cancel_requested":
    case "run.cancel_requested":
    case "call.cancel_requested":
    case "process.cancel_requested":
      return brief(event.reason);
    default:
      return "";
  }
}
