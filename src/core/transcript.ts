// The conversation, built from the log alone. For people and for the next request to a model alike.
//
// Invariants
// 1. Every run that is in it has a user message and an assistant message with a finish, also if it never began.
// 2. Every call has exactly one result.
// 3. Text produced before a cancel or a crash is kept, and marked.
import type { CancelReason, Outcome } from "./cancel.ts";
import type { Event, Usage } from "./event.ts";
import type { CallId, RunId, TurnId } from "./ids.ts";
import type { Json } from "./prompt.ts";

export type Message =
  | { readonly role: "user"; readonly runId: RunId; readonly text: string; readonly data?: Json }
  | {
      readonly role: "assistant";
      readonly runId: RunId;
      readonly turnId?: TurnId;
      readonly text: string;
      readonly calls: readonly TranscriptCall[];
      readonly finish: Finish;
      readonly usage?: Usage;
    }
  | { readonly role: "tool"; readonly runId: RunId; readonly results: readonly TranscriptResult[] };

export interface TranscriptCall {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
}

export interface TranscriptResult {
  readonly callId: CallId;
  readonly name: string;
  readonly outcome: Outcome;
  readonly result?: Json;
}

/** Why an assistant message ends where it does. */
export type Finish =
  | { readonly kind: "end" | "calls" | "lost" | "live" }
  | { readonly kind: "cancelled"; readonly reason: CancelReason }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** The messages of these events. Of runs whose beginning is not among them, only what is there. */
export function transcript(events: Iterable<Event>): readonly Message[] {
  const book = new Book();
  for (const event of events) book.note(event);
  return book.messages();
}

interface Draft {
  readonly runId: RunId;
  readonly turnId: TurnId | undefined;
  text: string;
  calls: TranscriptCall[];
  results: Map<CallId, TranscriptResult>;
  finish: Finish;
  usage: Usage | undefined;
}

type Entry = Extract<Message, { role: "user" }> | Draft;

/** Reads events in order; a builder with a lifetime of one call. */
class Book {
  readonly #entries: Entry[] = [];
  readonly #waiting = new Map<RunId, Extract<Message, { role: "user" }>>();
  readonly #open = new Map<RunId, Draft>();

  note(event: Event): void {
    switch (event.type) {
      case "run.accepted":
      case "run.edited":
        this.#waiting.set(event.runId, userMessage(event.runId, event.prompt.text, event.prompt.data));
        return;
      case "run.started":
      case "run.taken":
        this.#say(event.runId);
        return;
      case "turn.requested":
        this.#begin(event.runId, event.turnId);
        return;
      case "turn.extended":
        this.#draft(event.runId).text += event.text;
        return;
      case "call.requested":
        this.#draft(event.runId).calls.push({ callId: event.callId, name: event.name, input: event.input });
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
    return this.#entries.flatMap((entry) => ("role" in entry ? [entry] : closed(entry)));
  }

  #say(runId: RunId): void {
    const message = this.#waiting.get(runId);
    if (message !== undefined) this.#entries.push(message);
    this.#waiting.delete(runId);
  }

  #begin(runId: RunId, turnId: TurnId | undefined): Draft {
    const draft: Draft = {
      runId,
      turnId,
      text: "",
      calls: [],
      results: new Map(),
      finish: { kind: "live" },
      usage: undefined,
    };
    this.#open.set(runId, draft);
    this.#entries.push(draft);
    return draft;
  }

  #draft(runId: RunId): Draft {
    return this.#open.get(runId) ?? this.#begin(runId, undefined);
  }

  #settleCall(event: Extract<Event, { type: "call.settled" }>): void {
    const draft = this.#draft(event.runId);
    const name = draft.calls.find((call) => call.callId === event.callId)?.name ?? "unknown";
    const { callId, outcome, result } = event;
    draft.results.set(callId, { callId, name, outcome, ...(result === undefined ? {} : { result }) });
  }

  #settleTurn(event: Extract<Event, { type: "turn.settled" }>): void {
    const draft = this.#draft(event.runId);
    if (event.text !== undefined) draft.text = event.text;
    draft.usage = event.usage;
    draft.finish = finishOf(event.outcome, event.next === "turn" ? "calls" : "end");
  }

  #settleRun(runId: RunId, outcome: Outcome): void {
    const begun = this.#open.get(runId);
    this.#open.delete(runId);
    if (outcome.kind === "completed" && outcome.into !== undefined) return;
    if (begun === undefined) {
      // It never began: the prompt is still part of the conversation, and so is the fact that nothing came of it.
      this.#say(runId);
      this.#begin(runId, undefined).finish = finishOf(outcome, "end");
      this.#open.delete(runId);
      return;
    }
    if (outcome.kind !== "completed") begun.finish = finishOf(outcome, "end");
  }
}

function closed(draft: Draft): readonly Message[] {
  const { runId, turnId, text, calls, finish, usage } = draft;
  const assistant: Message = {
    role: "assistant",
    runId,
    ...(turnId === undefined ? {} : { turnId }),
    text,
    calls,
    finish,
    ...(usage === undefined ? {} : { usage }),
  };
  if (calls.length === 0) return [assistant];
  // A call whose end is not recorded yet, or never will be, still gets its one result.
  const results = calls.map(
    ({ callId, name }): TranscriptResult => draft.results.get(callId) ?? { callId, name, outcome: { kind: "lost" } },
  );
  return [assistant, { role: "tool", runId, results }];
}

function finishOf(outcome: Outcome, completed: "end" | "calls"): Finish {
  switch (outcome.kind) {
    case "completed":
      return { kind: completed };
    case "lost":
      return { kind: "lost" };
    case "cancelled":
      return { kind: "cancelled", reason: outcome.reason };
    case "failed":
      return { kind: "failed", code: outcome.code, message: outcome.message };
  }
}

function userMessage(runId: RunId, text: string, data: Json | undefined): Extract<Message, { role: "user" }> {
  return data === undefined ? { role: "user", runId, text } : { role: "user", runId, text, data };
}
