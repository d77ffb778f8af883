// The conversation, built from the log alone. For people and for the next request to a model alike.
//
// Invariants
// 1. Every run that is in it has a user message and an assistant message with a finish, also if it never began.
// 2. Every call has exactly one result.
// 3. Text produced before a cancel or a crash is kept, and marked.
import type { CancelReason, Outcome } from "./cancel.ts";
import type { Event, ProviderCall, TurnFinish, TurnPart, Usage } from "./event.ts";
import { type CallId, type RunId, runOf, type TurnId } from "./ids.ts";
import type { Item } from "./inbox.ts";
import type { Json } from "./prompt.ts";

export type Message =
  | { readonly role: "user"; readonly runId: RunId; readonly text: string; readonly data?: Json }
  /** What the model was told and no person has said. */
  | { readonly role: "note"; readonly runId: RunId; readonly item: Item }
  /** For the model this stands for everything before it, the request it was working on included: `request`. */
  | { readonly role: "summary"; readonly runId: RunId; readonly text: string; readonly request: string }
  | {
      readonly role: "assistant";
      readonly runId: RunId;
      readonly turnId?: TurnId;
      readonly text: string;
      /** The answer in pieces, where the text alone does not tell it. */
      readonly parts?: readonly TurnPart[];
      readonly calls: readonly TranscriptCall[];
      readonly finish: Finish;
      readonly usage?: Usage;
      /** It was cut off and asked again: what follows stands in its place. */
      readonly again?: true;
    }
  | { readonly role: "tool"; readonly runId: RunId; readonly results: readonly TranscriptResult[] };

export interface TranscriptCall {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
  readonly provider?: ProviderCall;
}

export interface TranscriptResult {
  readonly callId: CallId;
  readonly name: string;
  readonly outcome: Outcome;
  readonly result?: Json;
  readonly changes?: readonly string[];
}

/** Why an assistant message ends where it does. */
export type Finish =
  | { readonly kind: "end" | "calls" | "length" | "refusal" | "other" | "lost" | "live" }
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
  parts: readonly TurnPart[] | undefined;
  calls: TranscriptCall[];
  results: Map<CallId, TranscriptResult>;
  finish: Finish;
  usage: Usage | undefined;
  again: boolean;
}

type Said = Extract<Message, { role: "user" | "note" | "summary" }>;
type Entry = Said | Draft;

/** Reads events in order, and can be asked at any moment for the conversation they make. */
export class Book {
  readonly #entries: Entry[] = [];
  readonly #waiting = new Map<RunId, Extract<Message, { role: "user" }>>();
  readonly #open = new Map<RunId, Draft>();
  /** What the runs that are not over were asked. */
  readonly #requests = new Map<RunId, string>();
  #live: RunId | undefined = undefined;
  /** Runs that never began, withdrawn while another was live: they are told once that one is over. */
  readonly #withdrawn = new Map<RunId, Outcome>();

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
        this.#draft(event.runId).text += event.text;
        return;
      case "call.requested":
        this.#draft(event.runId).calls.push(callOf(event));
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

  /** For people: everything. */
  messages(): readonly Message[] {
    const withdrawn = [...this.#withdrawn].flatMap(([runId, outcome]): readonly Message[] => {
      const said = this.#waiting.get(runId);
      return [...(said === undefined ? [] : [said]), ...closed(unbegun(runId, outcome))];
    });
    return [...this.told(), ...withdrawn];
  }

  /** For the live run: without what was withdrawn meanwhile. A model would take it for the last thing it was asked. */
  told(): readonly Message[] {
    return this.#entries.flatMap((entry) => ("role" in entry ? [entry] : closed(entry)));
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
  #insert(said: Said, into: RunId): void {
    const draft = this.#open.get(into);
    if (draft?.finish.kind === "live" && isEmpty(draft)) this.#insertBefore(draft, said);
    else this.#entries.push(said);
  }

  #insertBefore(draft: Draft, said: Said): void {
    this.#entries.splice(this.#entries.lastIndexOf(draft), 0, said);
  }

  #summarise({ turnId, summary }: Extract<Event, { type: "session.compacted" }>): void {
    const runId = runOf(turnId);
    // Before its turn, whatever that has said by now: the calls it asks for later have their results behind it.
    this.#insertBefore(this.#draft(runId), {
      role: "summary",
      runId,
      text: summary,
      request: this.#requests.get(runId) ?? "",
    });
  }

  #begin(runId: RunId, turnId: TurnId | undefined): Draft {
    const before = this.#open.get(runId);
    if (before !== undefined && isCutOff(before.finish)) before.again = true;
    const draft = emptyDraft(runId, turnId);
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
    const { callId, outcome, result, changes } = event;
    const told = { ...(result === undefined ? {} : { result }), ...(changes === undefined ? {} : { changes }) };
    draft.results.set(callId, { callId, name, outcome, ...told });
  }

  #settleTurn(event: Extract<Event, { type: "turn.settled" }>): void {
    const draft = this.#draft(event.runId);
    if (event.text !== undefined) draft.text = event.text;
    draft.usage = event.usage;
    draft.parts = event.parts;
    draft.finish = finishOf(event.outcome, event.next === "turn" ? "calls" : ENDS[event.finish ?? "stop"]);
  }

  #settleRun(runId: RunId, outcome: Outcome): void {
    const begun = this.#open.get(runId);
    this.#open.delete(runId);
    this.#requests.delete(runId);
    if (outcome.kind === "completed" && outcome.into !== undefined) return;
    if (begun === undefined) this.#withdrawn.set(runId, outcome);
    else if (outcome.kind !== "completed") begun.finish = finishOf(outcome, "end");
    if (this.#live === runId) this.#live = undefined;
    if (this.#live === undefined) this.#tellWithdrawn();
  }

  /** It never began: the prompt is still part of the conversation, and so is the fact that nothing came of it. */
  #tellWithdrawn(): void {
    for (const [runId, outcome] of this.#withdrawn) {
      this.#say(runId);
      this.#requests.delete(runId);
      this.#entries.push(unbegun(runId, outcome));
    }
    this.#withdrawn.clear();
  }
}

const unbegun = (runId: RunId, outcome: Outcome): Draft => ({
  ...emptyDraft(runId, undefined),
  finish: finishOf(outcome, "end"),
});

const emptyDraft = (runId: RunId, turnId: TurnId | undefined): Draft => ({
  runId,
  turnId,
  text: "",
  parts: undefined,
  calls: [],
  results: new Map(),
  finish: { kind: "live" },
  usage: undefined,
  again: false,
});

function closed(draft: Draft): readonly Message[] {
  const { runId, turnId, text, parts, calls, finish, usage, again } = draft;
  const assistant: Message = {
    role: "assistant",
    runId,
    ...(turnId === undefined ? {} : { turnId }),
    text,
    ...(parts === undefined
      ? {}
      : { parts: parts.filter((part) => part.kind !== "call" || part.index < calls.length) }),
    calls,
    finish,
    ...(usage === undefined ? {} : { usage }),
    ...(again ? { again } : {}),
  };
  if (calls.length === 0) return [assistant]; // @fault calls-without-results
  // A call whose end is not recorded yet, or never will be, still gets its one result.
  // @fault calls-without-results:results
  const results = calls.map(
    ({ callId, name }): TranscriptResult => draft.results.get(callId) ?? { callId, name, outcome: { kind: "lost" } },
  );
  return [assistant, { role: "tool", runId, results }];
}

function callOf({ callId, name, input, provider }: Extract<Event, { type: "call.requested" }>): TranscriptCall {
  return { callId, name, input, ...(provider === undefined ? {} : { provider }) };
}

const isEmpty = (draft: Draft): boolean => draft.text === "" && draft.calls.length === 0;

/** Its worker vanished or was shut down; the run goes on with another turn in its place. */
export const isCutOff = (end: { readonly kind: string; readonly reason?: { readonly kind: string } }): boolean =>
  end.kind === "lost" || (end.kind === "cancelled" && end.reason?.kind === "shutdown");

const ENDS = {
  stop: "end",
  calls: "end",
  length: "length",
  refusal: "refusal",
  other: "other",
} as const satisfies Record<TurnFinish, Finish["kind"]>;

function finishOf(
  outcome: Outcome,
  completed: Exclude<Finish["kind"], "cancelled" | "failed" | "lost" | "live">,
): Finish {
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
