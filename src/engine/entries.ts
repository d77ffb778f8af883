// Commands on their way into the log: which of them outlast trouble of the store, and what they are answered then.
import type { Command, CommandOf } from "../core/command.ts";
import { ControlError, STOP_UNRECORDED } from "../core/control-error.ts";
import { processId, type RunId } from "../core/ids.ts";
import type { KeyedRun } from "../core/rows.ts";
import { type Health, type Refused, takesBeginnings, takesCommands } from "./health.ts";
import type { Entry, LiveLane } from "./live-lane.ts";

/** Not that of a question: whether there is still one to withdraw is known only from the log. */
export const isCancel = (command: Command | undefined): boolean =>
  command !== undefined &&
  command.type !== "cancel-question" &&
  (command.type.startsWith("cancel-") || command.type === "close");

/** Requests to stop, and facts about the world: refusing them would not make them untrue. */
// @fault cancel-refused-with-the-rest
export const isLasting = ({ command }: Pick<Entry, "command">): boolean =>
  command !== undefined && (isCancel(command) || LASTING.has(command.type));

/** Commands with which something new begins: a disk that is nearly full refuses these first. */
export const isBeginning = ({ command }: Pick<Entry, "command">): boolean =>
  command?.type === "accept" || command?.type === "create" || command?.type === "begin-process";

/** Whether a command that can be refused is decided now. */
export const isTaken = (entry: Entry, health: Health, now: number): boolean =>
  isBeginning(entry) ? takesBeginnings(health, now) : takesCommands(health, now);

/** What of a refused batch was refused, as far as its entries tell. */
export function refusedIn(entries: readonly Entry[]): Refused {
  if (entries.some(isBeginning)) return "new";
  return entries.every(isLasting) ? "all" : "refusable";
}

const LASTING: ReadonlySet<Command["type"]> = new Set([
  "settle-turn", // @fault end-of-work-refused
  "settle-call",
  "settle-process", // @fault process-end-refused
  "detach-process", // @fault detach-refused
  "expire",
  "recover", // @fault recovery-not-repeated
  "park",
]);

/** Rejects the caller of a stop that could not be recorded yet; the stop itself is kept. */
export function notRecorded(entry: Entry, error: ControlError): void {
  const { events, covered = { runs: [], work: [], processes: [] } } = entry;
  const reached = events.length + covered.runs.length + covered.work.length + covered.processes.length;
  // One that found nothing to stop, as far as is known here, was not carried out.
  entry.reject(reached === 0 ? error : unrecordedStop(error));
  entry.resolve = ignore;
  entry.reject = ignore;
}

export const unrecordedStop = (error: ControlError): ControlError =>
  new ControlError(error.code, `The stop was carried out here, but could not be recorded yet: ${error.message}`, {
    ...{ cause: error, hint: STOP_UNRECORDED },
  });

/** The stops of exactly what a stop covered when it was decided: they can be recorded later, in a log that moved on. */
export function exactStops({ command, covered }: Entry): readonly Command[] {
  if (command === undefined || covered === undefined || !("reason" in command)) return [];
  const { reason } = command;
  // A time limit belongs to this worker; the next driver of the session measures its own.
  if (reason.kind === "timeout") return [];
  if (command.type === "cancel-call" || command.type === "close") {
    const { once: _, ...stop } = command;
    return [stop];
  }
  return [
    ...covered.runs.map((runId): Command => ({ type: "cancel-run", runId, reason })),
    ...covered.processes.map((processId): Command => ({ type: "cancel-process", processId, reason })),
  ];
}

/** A prompt whose key was used by one that is not durable yet, even if that has settled already. */
export function withKnownKey(lane: LiveLane, command: Command): Command {
  // @fault key-of-a-withdrawn-prompt-forgotten, duplicate-key-runs-twice:looked-up
  if (command.type !== "accept" || command.key === undefined || command.earlier !== undefined) return command;
  let seq = lane.durable.head;
  for (const { events } of [...(lane.flight?.entries ?? []), ...lane.pending]) {
    for (const event of events) {
      seq += 1;
      if (event.type !== "run.accepted" || event.key !== command.key) continue;
      return { ...command, earlier: { runId: event.runId, acceptedAt: seq, content: event.content } };
    }
  }
  return command;
}

/** Ids of processes are never used twice here, not even that of one whose request was refused by the store. */
export function withProcessId(lane: LiveLane, command: CommandOf<"begin-process">): CommandOf<"begin-process"> {
  if (command.processId !== undefined) return command;
  lane.processOrdinal = Math.max(lane.processOrdinal, lane.decided.processes.count) + 1;
  return { ...command, processId: processId(lane.id, lane.processOrdinal) };
}

/** These keys have a run: their prompts repeat it, and commands that name those prompts mean that run. */
export function repeatTaken(entries: readonly Entry[], runs: readonly KeyedRun[]): void {
  const aliases = new Map<RunId, RunId>();
  for (const entry of entries) {
    if (entry.command?.type !== "accept") continue;
    const { key, content, runId } = entry.command;
    const earlier = runs.find((run) => run.key === key);
    if (earlier === undefined) continue;
    entry.command = { ...entry.command, earlier };
    if (earlier.content === content) aliases.set(runId, earlier.runId);
  }
  for (const entry of entries) if (entry.command !== undefined) entry.command = renamed(entry.command, aliases);
}

/** The same command about the run that a provisional id turned out to mean. */
export function renamed(command: Command, aliases: ReadonlyMap<RunId, RunId>): Command {
  if (command.type === "accept" || !("runId" in command)) return command;
  const runId = aliases.get(command.runId) ?? command.runId;
  if (command.type !== "move" || typeof command.to !== "object") return { ...command, runId };
  return { ...command, runId, to: { before: aliases.get(command.to.before) ?? command.to.before } };
}

/** The driver alone could stop what this begins, and learn how it ended. */
// @fault begun-without-the-lease
export const needsLease = ({ command }: Entry): boolean => command?.type === "begin-process";

export const drivenElsewhere = ({ id }: LiveLane): ControlError =>
  new ControlError("unavailable", `Session ${id} is driven by another worker: nothing can be started for it here.`, {
    hint: "Try again: it is taken over when that worker is gone.",
  });

const ignore = (): void => {};
