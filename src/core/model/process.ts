// A process: an operating-system process tree of a session, from request to end.
//
// Invariants
// 1. It has one owner, whose end ends it: the call that started it, or, in the background, the session.
// 2. The first cancel reason wins.
// 3. A settled process leaves the state; the log keeps it.
import { type CancelReason, type CancelReceipt, type Outcome, who } from "./cancel.ts";
import type { Exit, Feedback, OutputNote, ProcessEvent } from "./event.ts";
import { type CallId, ordinalOf, type ProcessId, type RunId, runOf, type Seq, type SessionId } from "./ids.ts";
import type { InboxItem } from "./inbox.ts";

interface Base {
  readonly id: ProcessId;
  readonly owner: CallId | SessionId;
  readonly feedback: Feedback;
  /** The command on one line, for people and models. */
  readonly title: string;
  /** Infrastructure of the session, not its work: only the end of the session stops it, a cancel does not. */
  readonly lasting?: true;
  /** The run whose call ended before this process did. It is being killed, and is not reported to the model. */
  readonly dyingOf?: RunId;
}

export type Process =
  /**
   * Requested or started. It settles when the spawner reports its end. A process of a call can move to the background.
   * If Belay dies here: the next worker's spawner kills what is left of the tree, and the process settles as `lost`.
   */
  | (Base & { readonly phase: "running" })
  /**
   * Cancelled, or left behind by its call: the spawner stops the tree. It settles when the spawner reports its end.
   * If Belay dies here: the tree is killed as above, and the process settles as cancelled with this reason.
   */
  | (Base & { readonly phase: "stopping"; readonly reason: CancelReason; readonly since: Seq });

/** How a process ended, as the spawner reports it. */
export interface ProcessEnd {
  readonly processId: ProcessId;
  /** Belay sent a signal before it had ended. */
  readonly stopped?: true;
  /** It could not be started. */
  readonly failed?: { readonly code: string; readonly message: string };
  readonly exit?: Exit;
  readonly durationMs?: number;
  readonly output?: OutputNote;
  /** Pids of its tree that survived the whole stop ladder. */
  readonly escaped?: readonly number[];
}

/** The live processes of a lane, and the number of the last one. */
export interface Processes {
  readonly live: readonly Process[];
  readonly count: number;
}

export const NO_PROCESSES: Processes = { live: [], count: 0 };

export function evolveProcesses(processes: Processes, event: ProcessEvent, seq: Seq): Processes {
  const { live, count } = processes;
  const change = (next: (one: Process) => Process): Processes => ({
    live: live.map((one) => (one.id === event.processId ? next(one) : one)),
    count,
  });
  switch (event.type) {
    case "process.requested":
      return { live: [...live, requested(event)], count: Math.max(count + 1, ordinalOf(event.processId)) };
    case "process.started":
      return processes;
    case "process.detached":
      return change((one) => detached(one, event, seq));
    case "process.cancel_requested":
      return change((one) => ({ ...one, phase: "stopping", reason: event.reason, since: seq }));
    case "process.settled":
      return { live: live.filter((one) => one.id !== event.processId), count };
  }
}

function detached(one: Process, event: Extract<ProcessEvent, { type: "process.detached" }>, since: Seq): Process {
  const { owner, feedback, dying } = event;
  if (dying === undefined) return { ...one, owner, feedback };
  const moved = { ...one, owner, feedback, ...(isCall(one.owner) ? { dyingOf: runOf(one.owner) } : {}) };
  return one.phase === "stopping" ? moved : { ...moved, phase: "stopping", reason: dying, since };
}

/** After a cancel of the session, processes that were already stopping still report, but begin no run. */
export function quieted({ live, count }: Processes): Processes {
  const isLoud = ({ phase, feedback }: Process): boolean => phase === "stopping" && feedback === "wake";
  return { live: live.map((one) => (isLoud(one) ? { ...one, feedback: "next-turn" } : one)), count };
}

function requested(event: Extract<ProcessEvent, { type: "process.requested" }>): Process {
  const { processId: id, owner, feedback, command, lasting } = event;
  return { phase: "running", id, owner, feedback, title: titleOf(command), ...(lasting ? { lasting } : {}) };
}

/** The command on one line, cut to a readable length. */
export function titleOf(command: string | readonly string[]): string {
  const text = (typeof command === "string" ? command : command.join(" ")).replaceAll(/\s+/g, " ").trim();
  return text.length <= TITLE_CHARS ? text : `${text.slice(0, TITLE_CHARS - 1).toWellFormed()}…`;
}

const TITLE_CHARS = 120;

export function cancelProcess(
  one: Process,
  reason: CancelReason,
  next: Seq,
): { readonly events: readonly ProcessEvent[]; readonly answer: CancelReceipt } {
  if (one.phase === "stopping") return { events: [], answer: { kind: "stopping", since: one.since, first: false } };
  return {
    events: [{ type: "process.cancel_requested", processId: one.id, reason }],
    answer: { kind: "stopping", since: next, first: true },
  };
}

/** The item that reports a background process to the model, once it has ended by itself or at its limit. */
export function feedbackItem({ id, title }: Process, end: ProcessEnd, outcome: Outcome): InboxItem {
  const { exit, durationMs, output } = end;
  const stopped = outcome.kind === "cancelled" ? `was stopped by ${who(outcome.reason)}` : ended(exit);
  const how = outcome.kind === "lost" ? LOST : stopped;
  const lasted = durationMs === undefined ? "" : ` after ${(durationMs / 1_000).toFixed(1)} s`;
  const said =
    output === undefined ? "" : output.bytes === 0 ? " It wrote nothing." : ` It wrote ${output.bytes} bytes.`;
  const tail = output === undefined || output.tail === "" ? "" : `\nThe end of its output:\n${output.tail}`;
  return {
    kind: "result",
    text: `The background process ${id} (${title}) ${how}${lasted}.${said}${tail}`,
    data: {
      processId: id,
      outcome: outcome.kind,
      ...(exit?.code === undefined ? {} : { code: exit.code }),
      ...(exit?.signal === undefined ? {} : { signal: exit.signal }),
      ...(durationMs === undefined ? {} : { durationMs }),
      ...(output === undefined ? {} : { bytes: output.bytes }),
    },
  };
}

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");

const ended = (exit: Exit | undefined): string =>
  exit?.signal === undefined
    ? `ended by itself with exit code ${exit?.code ?? "unknown"}`
    : `was ended by ${exit.signal}`;
const LOST = "ended with the server that ran it. How far it got is unknown";
