// Converts a session's log into updates for an editor. Pure: events in, updates out.
//
// Invariants
// 1. The same events give the same updates, live or replayed: an editor that returns sees what it saw before.
// 2. Only state of live work is kept. The end of a run removes all of its state.
import type { Delta, Gap } from "../../../../core/model/delta.ts";
import type { Event, Recorded, Usage } from "../../../../core/model/event.ts";
import { type CallId, isCallId, type ProcessId, type RunId, runOf, type TurnId } from "../../../../core/model/ids.ts";
import type { AgentMode } from "../../../../ports/agent.ts";
import { callDetails, isObject } from "../agent-details.ts";
import type { Modal, ModeChoice } from "../mode-choice.ts";
import { pieces, shownText } from "./shown-text.ts";
import { TurnText } from "./turn-text.ts";
import type { Update } from "./update.ts";

type EventOf<T extends Event["type"]> = Extract<Recorded, { type: T }>;
type DeltaOf<T extends Delta["type"]> = Extract<Delta, { type: T }>;

/** The state of a session when following starts in the middle. */
export interface KnownState {
  readonly live?: RunId | undefined;
  readonly calls: readonly { readonly callId: CallId; readonly name: string }[];
  readonly waiting: readonly { readonly runId: RunId; readonly text: string }[];
  readonly questions: readonly string[];
}

const NO_MODES: Modal = { modes: [], mode: undefined };

export class Narrator {
  readonly #prompts = new Map<RunId, string | undefined>();
  readonly #begun = new Set<RunId>();
  readonly #turns = new Map<TurnId, TurnText>();
  readonly #calls = new Map<CallId, ProcessId[]>();
  readonly #unstoppable = new Set<CallId>();
  readonly #owners = new Map<ProcessId, CallId | undefined>();
  readonly #questions = new Map<string, CallId | undefined>();
  readonly #usage = new Map<RunId, Usage>();

  readonly #modes: readonly AgentMode[];
  #mode: string | undefined;

  constructor({ modes, mode }: Modal = NO_MODES, known?: KnownState) {
    this.#modes = modes;
    this.#mode = mode;
    if (known === undefined) return;
    if (known.live !== undefined) this.#begun.add(known.live);
    for (const { callId } of known.calls) this.#calls.set(callId, []);
    for (const { runId, text } of known.waiting) this.#prompts.set(runId, text);
    for (const id of known.questions) this.#questions.set(id, undefined);
  }

  /** The state of the session. */
  get state(): "idle" | "running" | "waiting" {
    if (this.#begun.size === 0) return "idle";
    return this.#questions.size === 0 ? "running" : "waiting";
  }

  /** The session's mode as last reported. */
  get choice(): ModeChoice | undefined {
    return this.#mode === undefined ? undefined : { current: this.#mode, modes: this.#modes };
  }

  /** Whether this live call cannot be stopped alone. */
  isUnstoppable(callId: CallId): boolean {
    return this.#unstoppable.has(callId);
  }

  updatesFor(event: Recorded | Delta | Gap): readonly Update[] {
    switch (event.type) {
      case "delta":
        return this.#textDelta(event);
      case "progress":
        return [progress(event)];
      case "output":
        return this.#output(event);
      case "gap":
        return [notice("Some of the history is gone", "Earlier events are no longer kept.")];
      case "run.accepted":
        this.#prompts.set(event.runId, event.wake === true ? undefined : event.prompt.text);
        return [];
      case "run.edited":
        this.#prompts.set(event.runId, event.prompt.text);
        return [];
      case "run.started":
        return this.#began(event.runId);
      case "run.taken":
        return [{ type: "taken", runId: event.runId, prompt: this.#prompts.get(event.runId) ?? "" }];
      case "run.recovered":
        return [notice("The run was interrupted and resumes", "Its last text may be repeated.")];
      case "run.settled":
        return this.#ended(event);
      default:
        return this.#inside(event);
    }
  }

  /** Events inside a run. */
  #inside(event: Recorded): readonly Update[] {
    switch (event.type) {
      case "turn.requested":
        this.#turns.set(event.turnId, new TurnText());
        return [];
      case "turn.extended":
        return this.#kept(event);
      case "turn.settled":
        return this.#turnEnded(event);
      case "call.requested":
        return this.#called(event);
      case "call.settled":
        return this.#callEnded(event);
      case "question.asked":
        return this.#asked(event);
      case "question.settled":
        return this.#answered(event);
      case "process.requested":
        return this.#process(event);
      case "process.settled":
        return this.#processEnded(event);
      case "session.mode_set":
        return this.#modeSet(event.mode);
      case "session.compacted":
        return [{ type: "compacted", id: event.turnId, summary: event.summary }];
      default:
        return [];
    }
  }

  /** A mode that this agent does not know was set for another agent, and is ignored. */
  #modeSet(mode: string): readonly Update[] {
    if (!this.#modes.some(({ id }) => id === mode)) return [];
    this.#mode = mode;
    return [{ type: "mode", current: mode, modes: this.#modes }];
  }

  #began(runId: RunId): readonly Update[] {
    this.#begun.add(runId);
    return [{ type: "began", runId, prompt: this.#prompts.get(runId) }];
  }

  #textDelta(delta: DeltaOf<"delta">): readonly Update[] {
    let turnText = this.#turns.get(delta.turnId);
    if (turnText === undefined) {
      turnText = new TurnText(delta);
      this.#turns.set(delta.turnId, turnText);
    }
    return textUpdates(delta, turnText, delta.kind === "reasoning" ? "thought" : "agent", turnText.delta(delta));
  }

  #kept(event: EventOf<"turn.extended">): readonly Update[] {
    // A turn whose beginning was missed is reported by its deltas from now on, and completed at its end.
    const turnText = this.#turns.get(event.turnId);
    return turnText === undefined ? [] : textUpdates(event, turnText, "agent", turnText.logged(event.text));
  }

  #turnEnded(event: EventOf<"turn.settled">): readonly Update[] {
    const { runId, turnId, text, parts = [], usage } = event;
    const turnText = this.#turns.get(turnId) ?? new TurnText();
    this.#turns.delete(turnId);
    if (usage !== undefined) this.#usage.set(runId, sum(this.#usage.get(runId), usage));
    const thought = textUpdates(event, turnText, "thought", turnText.thoughts(parts));
    if (text === undefined) return thought;
    const rest = turnText.rest(text);
    if (rest !== undefined) return [...thought, ...textUpdates(event, turnText, "agent", rest)];
    return [...thought, { type: "replaced", runId, messageId: messageId(turnId, turnText), text }];
  }

  #called({ runId, callId, name, input, interruptible, provider }: EventOf<"call.requested">): readonly Update[] {
    this.#calls.set(callId, []);
    if (interruptible === false) this.#unstoppable.add(callId);
    for (const [turnId, turnText] of this.#turns) if (runOf(turnId) === runId) turnText.afterCall();
    const details = callDetails(provider?.data);
    return [{ type: "call", runId, callId, name, input, stoppable: interruptible !== false, details }];
  }

  #callEnded({ runId, callId, outcome, result, changes = [] }: EventOf<"call.settled">): readonly Update[] {
    const processes = this.#calls.get(callId) ?? [];
    this.#calls.delete(callId);
    this.#unstoppable.delete(callId);
    // @fault stopped-call-left-open
    return [{ type: "call-ended", runId, callId, outcome, result, changes, processes }];
  }

  #asked({ runId, questionId, owner, about, deadlineMs }: EventOf<"question.asked">): readonly Update[] {
    const callId = isCallId(owner) ? owner : undefined;
    this.#questions.set(questionId, callId);
    const question = { id: questionId, owner, about, deadlineMs };
    const waits: readonly Update[] =
      callId === undefined ? [] : [{ type: "call-phase", runId, callId, phase: "waits" }];
    return [...waits, { type: "asked", runId, question }];
  }

  #answered({ runId, questionId, ending }: EventOf<"question.settled">): readonly Update[] {
    const callId = this.#questions.get(questionId);
    this.#questions.delete(questionId);
    const continues = callId !== undefined && ending.kind !== "withdrawn" && ending.kind !== "denied";
    return [
      { type: "answered", runId, questionId, open: this.#questions.size },
      ...(continues ? [{ type: "call-phase", runId, callId, phase: "continues" } as const] : []),
    ];
  }

  #process({ processId, owner, command, cwd }: EventOf<"process.requested">): readonly Update[] {
    const callId = isCallId(owner) ? owner : undefined;
    this.#owners.set(processId, callId);
    const processes = callId === undefined ? undefined : this.#calls.get(callId);
    processes?.push(processId);
    const call = callId === undefined || processes === undefined ? undefined : { callId, processes: [...processes] };
    return [
      { type: "process", processId, command: typeof command === "string" ? command : command.join(" "), cwd, call },
    ];
  }

  #output({ processId, tail }: DeltaOf<"output">): readonly Update[] {
    const callId = this.#owners.get(processId);
    return [{ type: "process-output", processId, callId, tail }];
  }

  #processEnded({ processId, exit, output }: EventOf<"process.settled">): readonly Update[] {
    this.#owners.delete(processId);
    return [{ type: "process-ended", processId, exit, tail: output?.tail }];
  }

  #ended({ runId, outcome }: EventOf<"run.settled">): readonly Update[] {
    const usage = this.#usage.get(runId);
    const begun = this.#begun.delete(runId);
    this.#usage.delete(runId);
    this.#prompts.delete(runId);
    for (const turnId of [...this.#turns.keys()]) if (runOf(turnId) === runId) this.#turns.delete(turnId);
    for (const callId of [...this.#calls.keys()]) if (runOf(callId) === runId) this.#calls.delete(callId);
    if (begun) this.#questions.clear();
    return [{ type: "ended", runId, outcome, usage, begun }];
  }
}

/** The progress of a call. A field `text` is shown as text. */
function progress({ runId, callId, data }: DeltaOf<"progress">): Update {
  const details = callDetails(data);
  const text = isObject(data) && typeof data.text === "string" ? data.text : undefined;
  const shown = text ?? (details === undefined ? data : undefined);
  return { type: "call-progress", runId, callId, text: shownText(shown), details };
}

const messageId = (turnId: TurnId, turnText: TurnText): string => `${turnId}.m${turnText.message}`;

function textUpdates(
  { runId, turnId }: { readonly runId: RunId; readonly turnId: TurnId },
  turnText: TurnText,
  by: "agent" | "thought",
  text: string,
): readonly Update[] {
  const id = by === "thought" ? `${messageId(turnId, turnText)}.thought` : messageId(turnId, turnText);
  return pieces(text).map((piece) => ({ type: "said", runId, by, messageId: id, text: piece }));
}

const notice = (title: string, text: string): Update => ({ type: "notice", title, text });

function sum(before: Usage | undefined, more: Usage): Usage {
  if (before === undefined) return more;
  return {
    inputTokens: before.inputTokens + more.inputTokens,
    outputTokens: before.outputTokens + more.outputTokens,
    estimated: before.estimated || more.estimated,
  };
}
