// The conversation, built from the log alone. For people and for the next request to a model alike.
//
// Invariants
// 1. Every run that is in it has a user message and an assistant message with a finish, even if it never began.
// 2. Every call has exactly one result; one that is still running says so.
// 3. Messages stand in the order in which things happened, and the result of a call right behind the call.
// 4. Text produced before a cancel or a crash is kept, and marked.
// 5. The text of a prompt that was withdrawn before it began is for people only.
import type { Outcome } from "../model/cancel.ts";
import type { Event } from "../model/event.ts";
import { type CallId, type RunId, runOf, type TurnId } from "../model/ids.ts";
import type { Json } from "../model/prompt.ts";
import { isCutOff, type Message } from "./transcript.ts";
import {
  type Answer,
  answerMessages,
  callOf,
  emptyAnswer,
  finishOf,
  isAnswered,
  isEmpty,
  nextAnswer,
  resultOf,
  turnFinish,
} from "./transcript-answer.ts";

/** The messages of these events. Of runs whose beginning is not among them, only what is there. */
export function transcript(events: Iterable<Event>): readonly Message[] {
  const book = new Book("people");
  for (const event of events) book.note(event);
  return book.messages();
}

type TextEntry = Extract<Message, { role: "user" | "note" | "summary" }>;
type TranscriptEntry = TextEntry | Answer;

interface Running {
  readonly name: string;
  readonly answer: Answer;
}

/**
 * Reads events in order, and can be asked at any moment for the conversation they make.
 *
 * For `people` that is everything. For a `model` it begins with the run that made the last summary, and prompts that
 * were withdrawn are left out; what a model is not given is not kept either.
 */
export class Book {
  readonly #reader: "people" | "model";
  readonly #entries: TranscriptEntry[] = [];
  /** Prompts that have not begun. */
  readonly #waiting = new Map<RunId, Extract<Message, { role: "user" }>>();
  /** The pieces of the last turn of each run that is not over. */
  readonly #open = new Map<RunId, Answer[]>();
  /** The calls that have not ended, and the answers that made them. */
  readonly #running = new Map<CallId, Running>();
  /** What the runs that are not over were asked. */
  readonly #requests = new Map<RunId, string>();
  #live: RunId | undefined = undefined;
  /** Runs that never began, withdrawn while another was live: they are shown once that one is over. */
  readonly #withdrawn = new Map<RunId, Outcome>();

  /** Stands in front of everything, until a summary replaces what it is about. */
  #lead: TextEntry | undefined;

  constructor(reader: "people" | "model", lead?: TextEntry) {
    this.#reader = reader;
    this.#lead = lead;
  }

  note(event: Event): void {
    switch (event.type) {
      case "run.accepted":
      case "run.edited":
        this.#waiting.set(event.runId, userMessage(event.runId, event.prompt.text, event.prompt.data));
        return;
      case "run.started":
        this.#live = event.runId;
        this.#say(event.runId);
        return;
      case "run.taken":
        this.#say(event.runId, event.into);
        return;
      case "turn.requested":
        this.#begin(event.runId, event.turnId);
        return;
      case "turn.extended":
        this.#extend(event.runId, event.text);
        return;
      case "call.requested":
        this.#call(event);
        return;
      case "inbox.taken":
        for (const item of event.items) this.#insert({ role: "note", runId: event.runId, item }, event.runId);
        return;
      case "session.compacted":
        this.#summarise(event);
        return;
      case "call.settled":
        this.#settleCall(event);
        return;
      case "turn.settled":
        this.#settleTurn(event);
        return;
      case "run.settled":
        this.#settleRun(event.runId, event.outcome);
        return;
      default:
        return;
    }
  }

  messages(): readonly Message[] {
    const messages: Message[] = this.#lead === undefined ? [] : [this.#lead];
    for (const entry of this.#entries) {
      if ("role" in entry) messages.push(entry);
      else messages.push(...answerMessages(entry));
    }
    for (const [runId, outcome] of this.#withdrawn) {
      const said = this.#waiting.get(runId);
      messages.push(...(said === undefined ? [] : [withdrawn(said)]), ...answerMessages(unbegun(runId, outcome)));
    }
    return messages;
  }

  /** `into`: the run that is told. */
  #say(runId: RunId, into: RunId = runId): void {
    const message = this.#waiting.get(runId);
    if (message === undefined) return;
    this.#insert(message, into);
    this.#waiting.delete(runId);
    this.#requests.set(runId, message.text);
  }

  /** What is said to a turn that has not said anything yet comes before its answer. */
  #insert(said: TextEntry, into: RunId): void {
    const answer = this.#open.get(into)?.at(-1);
    if (answer?.finish.kind === "live" && isEmpty(answer)) this.#insertBefore(answer, said);
    else this.#entries.push(said);
  }

  #insertBefore(answer: Answer | undefined, said: TextEntry): void {
    const at = answer === undefined ? -1 : this.#entries.lastIndexOf(answer);
    this.#entries.splice(at === -1 ? this.#entries.length : at, 0, said);
  }

  #summarise({ turnId, summary }: Extract<Event, { type: "session.compacted" }>): void {
    this.#lead = undefined;
    const runId = runOf(turnId);
    const request = this.#requests.get(runId) ?? "";
    // Before its turn, whatever that has said by now: the calls it asks for later have their results behind it.
    this.#insertBefore(this.#turn(runId)[0], { role: "summary", runId, text: summary, request });
    if (this.#reader === "people") return;
    // The run is kept as a whole: the model still works on its request, and its agent may count its calls.
    const first = this.#entries.findIndex((entry) => entry.runId === runId);
    this.#entries.splice(0, first);
  }

  #begin(runId: RunId, turnId: TurnId | undefined): Answer[] {
    const before = this.#open.get(runId) ?? [];
    const last = before.at(-1);
    // All pieces of the turn: an agent that counts completed turns must not count the first piece.
    if (last !== undefined && isCutOff(last.finish)) for (const piece of before) piece.again = true;
    const turn = [emptyAnswer(runId, turnId)];
    this.#open.set(runId, turn);
    this.#entries.push(...turn);
    return turn;
  }

  #turn(runId: RunId): Answer[] {
    return this.#open.get(runId) ?? this.#begin(runId, undefined);
  }

  /** The last piece of a turn, or a new one behind everything else if that one does not go on. */
  #piece(runId: RunId, goesOn: (last: Answer) => boolean): Answer {
    const turn = this.#turn(runId);
    const last = turn.at(-1) ?? emptyAnswer(runId, undefined);
    if (goesOn(last)) return last;
    const next = nextAnswer(last);
    turn.push(next);
    this.#entries.push(next);
    return next;
  }

  /** Whether text that comes now continues this piece. */
  #isOpen(answer: Answer): boolean {
    return answer.calls.length === 0 && this.#entries.at(-1) === answer;
  }

  #extend(runId: RunId, text: string): void {
    if (text !== "") this.#piece(runId, (last) => this.#isOpen(last)).text += text;
  }

  #call(event: Extract<Event, { type: "call.requested" }>): void {
    // Calls join those that run beside them. Parts say themselves where the calls of their turn stand.
    const joins = (last: Answer): boolean =>
      last.parts !== undefined || this.#isOpen(last) || (!isAnswered(last) && this.#entries.at(-1) === last);
    const answer = this.#piece(event.runId, joins);
    answer.calls.push(callOf(event));
    this.#running.set(event.callId, { name: event.name, answer });
  }

  #settleCall(event: Extract<Event, { type: "call.settled" }>): void {
    const running = this.#running.get(event.callId);
    // A result whose call is not there is left out: providers would refuse it.
    if (running === undefined) return;
    this.#running.delete(event.callId);
    running.answer.results.set(event.callId, resultOf(event, running.name));
  }

  #settleTurn(event: Extract<Event, { type: "turn.settled" }>): void {
    const { runId, text, parts, usage, model } = event;
    const turn = this.#turn(runId);
    if (parts !== undefined) this.#join(turn);
    if (text !== undefined) this.#setText(turn, text);
    const last = turn.at(-1);
    if (last === undefined) return;
    last.usage = usage;
    for (const piece of turn) piece.model = model;
    last.parts = parts;
    last.finish = turnFinish(event);
  }

  /** The whole text of a turn: what goes beyond what is known of it was said last. */
  #setText(turn: readonly Answer[], text: string): void {
    const [first] = turn;
    const last = turn.at(-1);
    if (first === undefined || last === undefined) return;
    const known = turn.map((answer) => answer.text).join("");
    if (last.parts !== undefined || (turn.length === 1 && this.#isOpen(last))) last.text = text;
    else if (text.startsWith(known)) this.#extend(first.runId, text.slice(known.length));
    // The agent has returned something else than it had emitted.
    else if (text !== "" || this.#isOpen(last)) this.#piece(first.runId, (one) => this.#isOpen(one)).text = text;
  }

  /** Makes one piece of a turn whose parts say in which order it was said. */
  #join(turn: Answer[]): void {
    const [first, ...others] = turn;
    if (first === undefined) return;
    for (const other of others) {
      first.text += other.text;
      first.calls.push(...other.calls);
      for (const [callId, result] of other.results) first.results.set(callId, result);
      for (const { callId, name } of other.calls) {
        if (this.#running.has(callId)) this.#running.set(callId, { name, answer: first });
      }
      this.#entries.splice(this.#entries.lastIndexOf(other), 1);
    }
    turn.length = 1;
    first.parts = [];
  }

  #settleRun(runId: RunId, outcome: Outcome): void {
    const begun = this.#open.get(runId)?.at(-1);
    this.#open.delete(runId);
    this.#requests.delete(runId);
    for (const callId of this.#running.keys()) if (runOf(callId) === runId) this.#lose(runId, callId);
    if (outcome.kind === "completed" && outcome.into !== undefined) return;
    if (begun === undefined && this.#live === runId) this.#entries.push(unbegun(runId, outcome));
    else if (begun === undefined) this.#withdraw(runId, outcome);
    else if (outcome.kind !== "completed") begun.finish = finishOf(outcome);
    if (this.#live === runId) this.#live = undefined;
    if (this.#live === undefined) this.#showWithdrawn();
  }

  /** No run ends before its calls: an end that is not recorded by now is not in this part of the log. */
  #lose(runId: RunId, callId: CallId): void {
    this.#settleCall({ type: "call.settled", runId, callId, outcome: { kind: "lost" } });
  }

  #withdraw(runId: RunId, outcome: Outcome): void {
    if (this.#reader === "model") return void this.#waiting.delete(runId); // @fault withdrawn-prompt-told
    this.#withdrawn.set(runId, outcome);
  }

  /** It never began. People see the prompt, and that nothing came of it. */
  #showWithdrawn(): void {
    for (const [runId, outcome] of this.#withdrawn) {
      const said = this.#waiting.get(runId);
      this.#waiting.delete(runId);
      if (said !== undefined) this.#entries.push(withdrawn(said));
      this.#entries.push(unbegun(runId, outcome));
    }
    this.#withdrawn.clear();
  }
}

const unbegun = (runId: RunId, outcome: Outcome): Answer => emptyAnswer(runId, undefined, finishOf(outcome));

const withdrawn = (said: Extract<Message, { role: "user" }>): TextEntry => ({ ...said, withdrawn: true });

function userMessage(runId: RunId, text: string, data: Json | undefined): Extract<Message, { role: "user" }> {
  return data === undefined ? { role: "user", runId, text } : { role: "user", runId, text, data };
}
