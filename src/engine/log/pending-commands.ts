// Commands in flight: which are kept while the store fails, and the errors of the others.

import { ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import type { Command, CommandOf } from "../../core/model/command.ts";
import { processId, type QuestionId, type RunId, runOf, type Work } from "../../core/model/ids.ts";
import type { Lane } from "../../core/model/lane.ts";
import { keep } from "../../core/model/memo.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { KeyedRun, StoreKnows } from "../../core/model/rows.ts";
import { covers } from "../../core/policy/covers.ts";
import { type Health, type Refused, takesBeginnings, takesCommands } from "./health.ts";
import type { Pending, SessionState } from "./session-state.ts";

/** Not the cancel of a question: only the log shows whether there is one left to withdraw. */
export const isCancel = (command: Command | undefined): boolean =>
  command !== undefined &&
  command.type !== "cancel-question" &&
  (command.type.startsWith("cancel-") || command.type === "close");

/** Stops, and facts about the world, which a refusal would not undo. */
// @fault cancel-refused-with-the-rest
export const isLasting = ({ command }: Pick<Pending, "command">): boolean =>
  command !== undefined && (isCancel(command) || LASTING.has(command.type));

/** Stops, including those for which only the log shows whether something is left to stop. */
export const isStop = (command: Command | undefined): boolean =>
  isCancel(command) || command?.type === "cancel-question";

/**
 * Whether it is kept while the store fails. The stop of a question is kept if no answer to the question can be in
 * flight, and once its caller has been told that it is carried out.
 */
export const isKept = (entry: Pick<Pending, "command" | "isReported">, health: Health): boolean =>
  isLasting(entry) || entry.isReported === true || (isStop(entry.command) && health.kind === "refusing");

/** The same for the entries of a failed batch. If only beginnings were refused, everything else is kept. */
export const keepRule = (health: Health, refused: Refused): ((entry: Pending) => boolean) =>
  health.kind === "refusing" && refused === "new" ? (entry) => !isBeginning(entry) : (entry) => isKept(entry, health);

/** Whether a batch with it may be in the log, or may still be written. */
// @fault doubtful-batch-dropped
export const mayLand = ({ flights = [] }: Pick<Pending, "flights">): boolean =>
  flights.some(({ isUnwritten }) => isUnwritten !== true);

/** Commands that begin something: a disk that is nearly full refuses these first. */
export const isBeginning = ({ command }: Pick<Pending, "command">): boolean =>
  command?.type === "accept" || command?.type === "create" || command?.type === "begin-process";

/** Whether a command that can be refused is decided now. */
export const isTaken = (entry: Pending, health: Health, now: number): boolean =>
  isBeginning(entry) ? takesBeginnings(health, now) : takesCommands(health, now);

/** The kind of commands for which a batch was refused, derived from its entries. */
export function refusedIn(entries: readonly Pending[]): Refused {
  const refusable = entries.filter((entry) => !isLasting(entry) && !isStop(entry.command) && !mayLand(entry));
  if (refusable.some(isBeginning)) return "new";
  return refusable.length === 0 ? "all" : "refusable";
}

const LASTING: ReadonlySet<Command["type"]> = new Set([
  "settle-turn", // @fault end-of-work-refused
  "settle-call",
  "settle-process", // @fault process-end-refused
  "detach-process", // @fault detach-refused
  "expire",
  "recover", // @fault recovery-not-repeated
  "park",
  "keep-answer",
]);

/** Rejects the caller of a stop that could not be recorded yet; the stop itself is kept. */
export function notRecorded(entry: Pending, error: ControlError): void {
  const { runs = [], work = [], processes = [] } = entry.covered ?? {};
  // A stop that found nothing to stop here was not carried out.
  const isCarriedOut = isEffective(entry) || runs.length + work.length + processes.length > 0;
  entry.reject(isCarriedOut ? unrecordedStop(error) : error);
  if (isCarriedOut) entry.isReported = true;
  entry.resolve = ignore;
  entry.reject = ignore;
}

export const unrecordedStop = (error: ControlError): ControlError =>
  new ControlError(error.code, `The stop was carried out here, but could not be recorded yet: ${error.message}`, {
    ...{ cause: error, hint: STOP_UNRECORDED },
  });

/**
 * The order in which kept entries are decided again. The caller of a reported stop knows that it is carried out, so
 * that stop is recorded before the ends of the run that was live then, even those received before it. Otherwise, if a
 * request was never written, such an end could settle the run before its stop.
 */
export function stopsBeforeEnds({ durable }: SessionState, entries: readonly Pending[]): readonly Pending[] {
  if (!entries.some(({ isReported }) => isReported)) return entries; // @fault reported-stop-behind-an-end
  const ordered: Pending[] = [];
  for (const entry of entries) ordered.splice(placeOf(entry, ordered), 0, entry);
  return waitingStoppedFirst(ordered, durable);
}

/**
 * A waiting run that a reported stop covers is stopped before the ends of the live run: decided again without a refused
 * prompt, such an end could take it into the live run.
 */
function waitingStoppedFirst(ordered: readonly Pending[], { live, queue, steers }: Lane): readonly Pending[] {
  const first = live === undefined ? -1 : ordered.findIndex(({ command }) => isEndIn(live.id, command));
  if (first === -1) return ordered;
  const waiting = new Set([...queue, ...steers].map(({ id }) => id));
  const stopped = (entry: Pending): readonly RunId[] => (entry.isReported === true ? (entry.covered?.runs ?? []) : []);
  for (const run of ordered.slice(0, first).flatMap(stopped)) waiting.delete(run);
  const stops = ordered.slice(first).flatMap((entry) => {
    const runs = stopped(entry).filter((run) => waiting.delete(run));
    return runs.flatMap((run) => stopOf(run, entry));
  });
  return ordered.toSpliced(first, 0, ...stops);
}

/** The stop of one run, out of a stop that covered it. */
function stopOf(runId: RunId, { command }: Pending): readonly Pending[] {
  if (command === undefined || !("reason" in command)) return [];
  const unheard = { resolve: ignore, reject: ignore, decided: undefined, answer: undefined, events: [], memos: [] };
  const covered = { runs: [runId], work: [], processes: [] };
  return [{ ...unheard, covered, isReported: true, command: { type: "cancel-run", runId, reason: command.reason } }];
}

/** The position before the ends that are followed only by ends and by stops without effect. */
function placeOf({ isReported, liveRun, covered }: Pending, before: readonly Pending[]): number {
  let place = before.length;
  if (isReported !== true || liveRun === undefined || covered?.runs.length === 0) return place;
  for (let at = before.length - 1; at >= 0; at -= 1) {
    const other = before[at] as Pending;
    if (isEndIn(liveRun, other.command)) place = at;
    else if (!isCancel(other.command) || other.isReported === true || isEffective(other)) break;
  }
  return place;
}

/** Whether it changes more than the record of answered requests. */
const isEffective = ({ events, memos }: Pending): boolean =>
  events.some(({ type }) => type !== "request.answered") || memos.some(({ type }) => type === "keep");

function isEndIn(run: RunId, command: Command | undefined): boolean {
  if (command?.type === "settle-turn") return runOf(command.end.turnId) === run;
  return command?.type === "settle-call" && runOf(command.end.callId) === run;
}

/**
 * The stops of exactly what a stop covered when it was decided: these can be recorded later, when the log has moved on.
 */
export function exactStops({ command, covered, answer }: Pending): readonly Command[] {
  if (command === undefined || covered === undefined || !("reason" in command)) return [];
  const { reason } = command;
  // A time limit belongs to this worker; the next driver of the session measures its own.
  if (reason.kind === "timeout") return [];
  // Each of these names its target. With the idempotency key, a repeated request gets the same answer.
  if (command.type === "cancel-call") {
    // Whether the call has begun is for its next driver to decide.
    const { begun: _, ...stop } = command;
    return [stop];
  }
  if (command.type !== "cancel-session") return [command];
  const { prompts = [], actor, once } = command;
  const user = actor === undefined ? {} : { actor };
  return [
    ...covered.runs.map((runId): Command => ({ type: "cancel-run", runId, reason })),
    ...covered.processes.map((processId): Command => ({ type: "cancel-process", processId, reason })),
    ...prompts.map((key): Command => ({ type: "cancel-key", key, prompts: [key], ...user, reason })),
    // A repeated request covers nothing that was accepted meanwhile.
    ...(once === undefined ? [] : [{ type: "keep-answer", answer: answer as Json, once } as const]),
  ];
}

/**
 * Undoes the start of a run that a stop covers, if it is not sent yet: then the run is withdrawn instead. Decides later
 * entries again without it. Returns whether there was such a start.
 */
export function dropStart(lane: SessionState, command: Command | undefined, decide: (entry: Pending) => void): boolean {
  if (command === undefined || !isCancel(command)) return false;
  const start = lane.pending.find((entry) => entry.command?.type === "start" && entry.events.length > 0);
  if (start === undefined || !covers(lane.decided, command).runs.includes(start.answer as RunId)) return false;
  const rest = lane.pending.filter((entry) => entry !== start);
  lane.pending = [];
  lane.decided = lane.flight?.after ?? lane.durable;
  for (const entry of rest) decide(entry);
  start.resolve(undefined);
  return true;
}

/** Adds the earlier prompt with the same key, if that is not durable yet, even if it has settled already. */
export function withKnownKey(lane: SessionState, command: Command): Command {
  // @fault key-of-a-withdrawn-prompt-forgotten, duplicate-key-runs-twice:looked-up
  if (command.type !== "accept" || command.key === undefined || command.earlier !== undefined) return command;
  let head = lane.durable.head;
  for (const entries of [lane.flight?.entries ?? NO_ENTRIES, lane.pending]) {
    const { keys, events } = acceptedIn(entries);
    const earlier = keys.get(command.key);
    if (earlier !== undefined) return { ...command, earlier: { ...earlier, acceptedAt: head + earlier.acceptedAt } };
    head += events;
  }
  return command;
}

const NO_ENTRIES: readonly Pending[] = [];

type Earlier = Omit<KeyedRun, "key">;

/** The prompts of a list of entries by key, with their positions among the events. */
interface AcceptedKeys {
  readonly keys: Map<string, Earlier>;
  /** Number of entries that were read, and of their events. */
  entries: number;
  events: number;
  /** The last entry that was read. A weak reference, because it contains the text of its prompt. */
  last: WeakRef<Pending> | undefined;
}

const ACCEPTED = new WeakMap<readonly Pending[], AcceptedKeys>();

/** Reads each entry once: thousands may be decided in one tick. A list only grows, or is emptied. */
function acceptedIn(entries: readonly Pending[]): AcceptedKeys {
  let found = ACCEPTED.get(entries);
  const isSame =
    found !== undefined && entries.length >= found.entries && found.last?.deref() === entries[found.entries - 1];
  if (found === undefined || !isSame) {
    found = { keys: new Map(), entries: 0, events: 0, last: undefined };
    ACCEPTED.set(entries, found);
  }
  for (; found.entries < entries.length; found.entries += 1) {
    for (const event of entries[found.entries]?.events ?? []) {
      found.events += 1;
      if (event.type !== "run.accepted" || event.key === undefined || found.keys.has(event.key)) continue;
      found.keys.set(event.key, { runId: event.runId, acceptedAt: found.events, content: event.content });
    }
  }
  const last = entries.at(-1);
  found.last = last && new WeakRef(last);
  return found;
}

/** Adds what only this worker knows. Stable if the command is decided again. */
export function withLocalKnowledge(lane: SessionState, command: Command): Command {
  if (command.type === "begin-process") return withProcessId(lane, command);
  return command.type === "cancel-call" || command.type === "cancel-question" ? withBegun(lane, command) : command;
}

/**
 * Adds whether the call had begun, which only its worker knows. Read when its stop is decided: the call is stopped in
 * the same tick, so a call that has not begun by then never will.
 */
function withBegun(lane: SessionState, command: CommandOf<"cancel-call" | "cancel-question">): Command {
  const owner = command.type === "cancel-call" ? command.callId : askerOf(lane, command.questionId);
  const begun = command.begun ?? (owner === undefined ? undefined : lane.work(owner)?.begun);
  return begun === false ? { ...command, begun } : command;
}

const askerOf = (lane: SessionState, id: QuestionId): Work | undefined =>
  lane.decided.live?.questions.find((question) => question.id === id)?.owner;

/** Process ids are never reused here, not even that of a process whose request the store refused. */
export function withProcessId(lane: SessionState, command: CommandOf<"begin-process">): CommandOf<"begin-process"> {
  if (command.processId !== undefined) return command;
  lane.processOrdinal = Math.max(lane.processOrdinal, lane.decided.processes.count) + 1;
  return { ...command, processId: processId(lane.id, lane.processOrdinal) };
}

/** Applies the store's knowledge to a lane and its commands, before they are decided again. */
export function applyStoreKnowledge(
  lane: SessionState,
  { entries, known, now }: { readonly entries: readonly Pending[]; readonly known: StoreKnows; readonly now: number },
): readonly Pending[] {
  if (known.kind === "taken") repeatTaken(entries, known.runs);
  else if (known.kind === "recalled") {
    const memos = lane.durable.memos.with(known.memos.map(keep), now);
    lane.durable = { ...lane.durable, memos };
  } else {
    for (const entry of entries) {
      const { command } = entry;
      if (command === undefined || !isNaming(command) || !known.actors.includes(command.actor ?? "")) continue;
      entry.command = { ...command, crowded: true };
    }
  }
  return entries;
}

/** Whether a command names prompts that may not have arrived. */
const isNaming = (command: Command): command is CommandOf<"cancel-session" | "cancel-key"> =>
  (command.type === "cancel-session" || command.type === "cancel-key") && command.prompts !== undefined;

/** These keys have a run: their prompts repeat it, and commands that refer to those prompts apply to that run. */
export function repeatTaken(entries: readonly Pending[], runs: readonly KeyedRun[]): void {
  const aliases = new Map<RunId, RunId>();
  for (const entry of entries) {
    if (entry.command !== undefined && isNaming(entry.command)) {
      const { arrived = [] } = entry.command;
      entry.command = { ...entry.command, arrived: [...arrived, ...runs.map((run) => run.key)] };
    }
    if (entry.command?.type !== "accept") continue;
    const { key, content, runId } = entry.command;
    const earlier = runs.find((run) => run.key === key);
    if (earlier === undefined) continue;
    entry.command = { ...entry.command, earlier };
    if (earlier.content === content) aliases.set(runId, earlier.runId);
  }
  for (const entry of entries) if (entry.command !== undefined) entry.command = renamed(entry.command, aliases);
}

/** The same command for the run that a provisional id stands for. */
export function renamed(command: Command, aliases: ReadonlyMap<RunId, RunId>): Command {
  if (command.type === "accept" || !("runId" in command)) return command;
  const runId = aliases.get(command.runId) ?? command.runId;
  if (command.type !== "move" || typeof command.to !== "object") return { ...command, runId };
  return { ...command, runId, to: { before: aliases.get(command.to.before) ?? command.to.before } };
}

/** Only the driver could stop what this begins, and observe its end. */
// @fault begun-without-the-lease
export const needsLease = ({ command }: Pending): boolean => command?.type === "begin-process";

export const drivenElsewhere = ({ id }: SessionState): ControlError =>
  new ControlError("unavailable", `Session ${id} is driven by another worker: nothing can be started for it here.`, {
    hint: "Try again: it is taken over when that worker is gone.",
  });

const ignore = (): void => {};
