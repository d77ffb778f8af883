// The conversation, built from the log alone, for people and for the next request to a model.
//
// Invariants
// 1. Every run in it has a user message and an assistant message with a finish, even if it never began.
// 2. Every call has exactly one result; that of a live call has the kind `running`.
// 3. Messages are in the order of events, and the result of a call comes right after the call.
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

/** The messages of these events. Runs that began earlier are included as far as their events are. */
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
 * Reads events in order; `messages()` returns the conversation so far.
 *
 * For `people` it is complete. For a `model` it begins with the run that made the last summary, and prompts that were
 * withdrawn are omitted and not kept in memory.
 */
export class Book {
  readonly #reader: "people" | "model";
  readonly #entries: TranscriptEntry[] = [];
  /** Prompts of runs that have not begun. */
  readonly #waiting = new Map<RunId, Extract<Message, { role: "user" }>>();
  /** The pieces of the last turn of each live run. */
  readonly #open = new Map<RunId, Answer[]>();
  /** The live calls, and the answers that made them. */
  readonly #running = new Map<CallId, Running>();
  /** The prompt texts of live runs. */
  readonly #requests = new Map<RunId, string>();
  #live: RunId | undefined = undefined;
  /** Runs withdrawn while another was live: they are shown when that one has ended. */
  readonly #withdrawn = new Map<RunId, Outcome>();

  /** The first message, until a summary replaces it. */
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
        this.#addPrompt(event.runId);
        return;
      case "run.taken":
        this.#addPrompt(event.runId, event.into);
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
      const message = this.#waiting.get(runId);
      messages.push(...(message === undefined ? [] : [withdrawn(message)]), ...answerMessages(unbegun(runId, outcome)));
    }
    return messages;
  }

  /** `into`: the run that takes in the prompt. */
  #addPrompt(runId: RunId, into: RunId = runId): void {
    const message = this.#waiting.get(runId);
    if (message === undefined) return;
    this.#insert(message, into);
    this.#waiting.delete(runId);
    this.#requests.set(runId, message.text);
  }

  /** A message to a turn that has no output yet comes before its answer. */
  #insert(message: TextEntry, into: RunId): void {
    const answer = this.#open.get(into)?.at(-1);
    if (answer?.finish.kind === "live" && isEmpty(answer)) this.#insertBefore(answer, message);
    else this.#entries.push(message);
  }

  #insertBefore(answer: Answer | undefined, message: TextEntry): void {
    const at = answer === undefined ? -1 : this.#entries.lastIndexOf(answer);
    this.#entries.splice(at === -1 ? this.#entries.length : at, 0, message);
  }

  #summarise({ turnId, summary }: Extract<Event, { type: "session.compacted" }>): void {
    this.#lead = undefined;
    const runId = runOf(turnId);
    const request = this.#requests.get(runId) ?? "";
    // Before its turn, even if that has output already: calls that it requests later are followed by their results.
    this.#insertBefore(this.#turn(runId)[0], { role: "summary", runId, text: summary, request });
    if (this.#reader === "people") return;
    // The whole run is kept: the model still works on its request, and its agent may count its calls.
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

  /** The last piece of the turn if `isContinued` accepts it, otherwise a new piece at the end. */
  #piece(runId: RunId, isContinued: (last: Answer) => boolean): Answer {
    const turn = this.#turn(runId);
    const last = turn.at(-1) ?? emptyAnswer(runId, undefined);
    if (isContinued(last)) return last;
    const next = nextAnswer(last);
    turn.push(next);
    this.#entries.push(next);
    return next;
  }

  /** Whether new text continues this piece. */
  #isOpen(answer: Answer): boolean {
    return answer.calls.length === 0 && this.#entries.at(-1) === answer;
  }

  #extend(runId: RunId, text: string): void {
    if (text !== "") this.#piece(runId, (last) => this.#isOpen(last)).text += text;
  }

  #call(event: Extract<Event, { type: "call.requested" }>): void {
    // Calls join those that run beside them. Parts name the places of their turn's calls themselves.
    const joins = (last: Answer): boolean =>
      last.parts !== undefined || this.#isOpen(last) || (!isAnswered(last) && this.#entries.at(-1) === last);
    const answer = this.#piece(event.runId, joins);
    answer.calls.push(callOf(event));
    this.#running.set(event.callId, { name: event.name, answer });
  }

  #settleCall(event: Extract<Event, { type: "call.settled" }>): void {
    const running = this.#running.get(event.callId);
    // A result without its call is omitted: providers would refuse it.
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

  /** Sets the whole text of a turn: what exceeds the known text came last. */
  #setText(turn: readonly Answer[], text: string): void {
    const [first] = turn;
    const last = turn.at(-1);
    if (first === undefined || last === undefined) return;
    const known = turn.map((answer) => answer.text).join("");
    if (last.parts !== undefined || (turn.length === 1 && this.#isOpen(last))) last.text = text;
    else if (text.startsWith(known)) this.#extend(first.runId, text.slice(known.length));
    // The agent returned another text than it had emitted.
    else if (text !== "" || this.#isOpen(last)) this.#piece(first.runId, (one) => this.#isOpen(one)).text = text;
  }

  /** Merges a turn into one piece, because its parts have an order of their own. */
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

  /** No run ends before its calls: an end that is not recorded by now is outside this part of the log. */
  #lose(runId: RunId, callId: CallId): void {
    this.#settleCall({ type: "call.settled", runId, callId, outcome: { kind: "lost" } });
  }

  #withdraw(runId: RunId, outcome: Outcome): void {
    if (this.#reader === "model") return void this.#waiting.delete(runId); // @fault withdrawn-prompt-told
    this.#withdrawn.set(runId, outcome);
  }

  /** Shows prompts of runs that never began, and how those ended. */
  #showWithdrawn(): void {
    for (const [runId, outcome] of this.#withdrawn) {
      const message = this.#waiting.get(runId);
      this.#waiting.delete(runId);
      if (message !== undefined) this.#entries.push(withdrawn(message));
      this.#entries.push(unbegun(runId, outcome));
    }
    this.#withdrawn.clear();
  }
}

const unbegun = (runId: RunId, outcome: Outcome): Answer => emptyAnswer(runId, undefined, finishOf(outcome));

const withdrawn = (message: Extract<Message, { role: "user" }>): TextEntry => ({ ...message, withdrawn: true });

function userMessage(runId: RunId, text: string, data: Json | undefined): Extract<Message, { role: "user" }> {
  return data === undefined ? { role: "user", runId, text } : { role: "user", runId, text, data };
}
