// The policy of processes: which may begin, whose end ends them, how they ended, and who receives the result.

import { INBOX_ITEMS_MAX, PROCESSES_LIVE_MAX } from "../limits.ts";
import type { CancelReason, CoveredProcess, Outcome } from "../model/cancel.ts";
import type { Answers, CommandOf, Refused } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import {
  type CallId,
  ordinalOf,
  type ProcessId,
  processId,
  runOf,
  type Seq,
  type SessionId,
  type Work,
} from "../model/ids.ts";
import { isLive } from "../model/inbox.ts";
import type { Lane } from "../model/lane.ts";
import { cancelProcess, feedbackItem, type Process, type ProcessEnd } from "../model/process.ts";
import { backgroundOf, isStoppedAlone, stopReason } from "./covers.ts";
import type { Decided } from "./decide-run.ts";

export function beginProcess(lane: Lane, command: CommandOf<"begin-process">): Decided<Answers["begin-process"]> {
  const { type: _, once: __, by, processId: given, ...asked } = command;
  // A retry of a request that was recorded: the store's answer was lost.
  if (given !== undefined && ordinalOf(given) <= lane.processes.count) {
    return { events: [], answer: { kind: "begun", processId: given } };
  }
  const refusal = refuse(lane, by ?? asked.owner) ?? refuseResult(lane, asked);
  if (refusal !== undefined) return { events: [], answer: refusal };
  const id = given ?? processId(lane.id, lane.processes.count + 1);
  return {
    events: [{ type: "process.requested", processId: id, ...asked }],
    answer: { kind: "begun", processId: id },
  };
}

function refuse(lane: Lane, owner: Work | SessionId): Refused | undefined {
  if (lane.phase === "absent") return refused("not_found", `There is no session ${lane.id}.`);
  if (lane.phase === "closed") return refused("closed", `Session ${lane.id} is closed.`);
  // @fault begun-by-the-cancelled:decide
  if (isWork(owner) && !isRunning(lane, owner)) return refused("busy", `${owner} begins nothing new.`);
  if (lane.processes.live.length >= PROCESSES_LIVE_MAX) {
    return refused("overloaded", `${lane.id} has ${PROCESSES_LIVE_MAX} live processes; that is the limit.`);
  }
  return undefined;
}

/** A process that reports its result needs room for it in the inbox. */
function refuseResult(lane: Lane, asked: Pick<Process, "owner" | "feedback">): Refused | undefined {
  if (!isReporting(asked) || hasRoom(lane)) return undefined;
  return refused("queue_full", `The inbox of ${lane.id} is full: it has no room for the result of this process.`);
}

/** Each live process that will report has a place in the inbox reserved for its result. */
// @fault room-not-reserved:room
export const hasRoom = ({ inbox, processes }: Lane): boolean =>
  inbox.length + processes.live.filter(isReporting).length < INBOX_ITEMS_MAX;

const isReporting = ({ owner, feedback }: Pick<Process, "owner" | "feedback">): boolean =>
  !isCall(owner) && feedback !== "silent";

function isRunning({ live }: Lane, id: Work): boolean {
  if (live?.id !== runOf(id) || live.phase !== "running") return false;
  return live.turn === id || live.live.some((call) => call.id === id && call.phase === "running");
}

export function noteProcess(lane: Lane, command: CommandOf<"note-process">): Decided<undefined> {
  const { type: _, once: __, ...noted } = command;
  const events: readonly Event[] =
    find(lane, noted.processId) === undefined ? [] : [{ type: "process.started", ...noted }];
  return { events, answer: undefined };
}

/**
 * Refused as `late` if the process is being stopped, because it ends with its owner then, and if the inbox has no room
 * for its result, because its call keeps waiting for it then.
 */
export function detachProcess(lane: Lane, command: CommandOf<"detach-process">): Decided<Answers["detach-process"]> {
  const { processId: id, feedback } = command;
  const one = find(lane, id);
  const isFull = refuseResult(lane, { owner: lane.id, feedback }) !== undefined;
  // @fault detached-while-stopping
  if (one === undefined || isBackground(one) || stopReason(lane, one) !== undefined || isFull) {
    return { events: [], answer: "late" };
  }
  return { events: [{ type: "process.detached", processId: id, owner: lane.id, feedback }], answer: "recorded" };
}

export function cancelOneProcess(
  lane: Lane,
  { processId: id, reason }: CommandOf<"cancel-process">,
): Decided<Answers["cancel-process"]> {
  const one = find(lane, id);
  if (one === undefined) return { events: [], answer: { kind: "unknown" } }; // @fault settled-process-stopping
  const since = one.phase === "running" ? stoppedSince(lane, one) : undefined;
  return since === undefined
    ? cancelProcess(one, reason, lane.head + 1)
    : { events: [], answer: { kind: "stopping", since, first: false } };
}

/** A process of a call that is being stopped is stopping with that call, whose reason came first. */
function stoppedSince({ live }: Lane, { owner }: Process): Seq | undefined {
  if (!isCall(owner)) return undefined;
  const call = live?.live.find(({ id }) => id === owner);
  if (call?.phase === "stopping") return call.since;
  return live?.phase === "stopping" ? live.since : undefined;
}

/** Stops background processes; `end` stops lasting ones as well. `next`: the position of the first event. */
export function cancelBackground(
  lane: Lane,
  reason: CancelReason,
  next: Seq,
  how: "keep" | "stop" | "end",
): { readonly events: readonly Event[]; readonly covered: readonly CoveredProcess[] } {
  const events: Event[] = [];
  const inBackground = new Set(backgroundOf(lane, how));
  const meant = lane.processes.live.filter(({ id }) => inBackground.has(id));
  const covered = meant.map((one): CoveredProcess => {
    const cancelled = cancelProcess(one, reason, next + events.length);
    events.push(...cancelled.events);
    return { processId: one.id, receipt: cancelled.answer };
  });
  return { events, covered };
}

export function settleProcess(
  lane: Lane,
  { end, waiters = [] }: CommandOf<"settle-process">,
): Decided<Answers["settle-process"]> {
  const one = find(lane, end.processId);
  if (one === undefined) return { events: [], answer: "late" };
  return { events: settled(lane, one, { ...end, outcome: outcomeOf(lane, one, end), waiters }), answer: "recorded" };
}

/** For a worker that takes over: the processes of the previous worker were killed, and how far they came is unknown. */
export function loseProcesses(lane: Lane): readonly Event[] {
  return lane.processes.live.flatMap((one) => {
    const reason = stopReason(lane, one);
    // @fault cancel-forgotten-by-recovery
    const outcome: Outcome = reason === undefined ? { kind: "lost" } : { kind: "cancelled", reason };
    return settled(lane, one, { processId: one.id, outcome, waiters: [] });
  });
}

/**
 * A process is settled by the component that observed its end, and by nothing else. A process that is left when its
 * call ends is being killed: it is handed to the session, and the outcomes of its call and run name it.
 */
export function withProcesses(lane: Lane, events: readonly Event[]): readonly Event[] {
  const { live } = lane.processes;
  // @fault dying-process-forgotten
  if (live.length === 0 || !events.some(({ type }) => type === "call.settled" || type === "run.settled")) return events;
  const left = new Map(live.map((one) => [one.id, one]));
  const dying = new Map(live.flatMap(({ id, dyingOf }) => (dyingOf === undefined ? [] : [[id, dyingOf] as const])));
  let cancelled: CancelReason | undefined;
  return events.flatMap((event): readonly Event[] => {
    if (event.type === "process.settled") {
      left.delete(event.processId);
      dying.delete(event.processId);
    }
    // Already handed over, with another call of the same decision.
    if (event.type === "process.detached") {
      const owner = left.get(event.processId)?.owner;
      if (event.dying !== undefined && owner !== undefined && isCall(owner)) dying.set(event.processId, runOf(owner));
      left.delete(event.processId);
    }
    if (event.type === "run.cancel_requested") cancelled = event.reason;
    if (event.type === "run.settled") {
      const named = [...dying].flatMap(([id, run]) => (run === event.runId ? [id] : []));
      return [{ ...event, outcome: naming(event.outcome, named) }];
    }
    if (event.type !== "call.settled") return [event];
    const own = [...left.values()].filter(({ owner }) => owner === event.callId);
    for (const { id } of own) dying.set(id, event.runId);
    const ids = own.map(({ id }) => id);
    const outcome = naming(event.outcome, ids); // @fault dying-not-named
    return [...own.map((one) => handedOver(lane, one, cancelled, event.outcome)), { ...event, outcome }];
  });
}

const naming = (outcome: Outcome, dying: readonly ProcessId[]): Outcome =>
  outcome.kind === "cancelled" && dying.length > 0 ? { ...outcome, dying } : outcome;

function handedOver(lane: Lane, one: Process, stopped: CancelReason | undefined, call: Outcome): Event {
  const parent = { kind: "parent", id: one.owner } as const;
  const dying = stopReason(lane, one) ?? stopped ?? (call.kind === "cancelled" ? call.reason : parent);
  return { type: "process.detached", processId: one.id, owner: lane.id, feedback: "silent", dying };
}

/** Derived from what was recorded and from whether Belay sent a signal, never from an exit code. */
function outcomeOf(lane: Lane, one: Process, end: ProcessEnd): Outcome {
  if (end.failed !== undefined) return { kind: "failed", ...end.failed };
  if (end.exit === undefined && end.stopped === undefined) return { kind: "lost" };
  const reason = end.stopped === undefined ? undefined : stopReason(lane, one); // @fault natural-end-cancelled
  if (reason === undefined) return end.stopped === undefined ? { kind: "completed" } : UNRECORDED_STOP;
  const abandoned = (end.escaped ?? []).map((pid) => `pid ${pid}`);
  return abandoned.length === 0 ? { kind: "cancelled", reason } : { kind: "cancelled", reason, abandoned };
}

/** It did not end by itself, and no reason is recorded: so it is neither completed nor cancelled. */
const UNRECORDED_STOP: Outcome = {
  kind: "failed",
  code: "stopped",
  message: "Belay sent it a signal, but no stop of it is recorded.",
};

type Ended = Omit<ProcessEnd, "stopped" | "failed"> & {
  readonly outcome: Outcome;
  readonly waiters: readonly Work[];
};

function settled(lane: Lane, one: Process, ended: Ended): readonly Event[] {
  const { waiters, outcome, processId: id, exit, durationMs, output, escaped } = ended;
  // @fault cancelled-process-fed, silent-process-fed, limited-process-not-fed
  const isReported =
    isBackground(one) && one.feedback !== "silent" && (outcome.kind === "completed" || isNews(outcome));
  const dropped = isReported && lane.phase === "closed"; // @fault fed-to-the-closed
  const event: Event = {
    type: "process.settled",
    processId: id,
    outcome,
    ...(exit === undefined ? {} : { exit }),
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(output === undefined ? {} : { output }),
    ...(escaped === undefined || escaped.length === 0 ? {} : { escaped }),
    ...(dropped ? { dropped: true } : {}),
  };
  if (!isReported || dropped) return [event];
  // All live waiters: if one is stopped, another may still return the result.
  const [heldBy, ...alsoHeldBy] = waiters.filter((id) => isLive(lane.live, id));
  return [
    event,
    {
      type: "inbox.added",
      item: feedbackItem(one, ended, outcome),
      processId: id,
      ...(heldBy === undefined ? {} : { heldBy }), // @fault result-not-held
      ...(alsoHeldBy.length === 0 ? {} : { alsoHeldBy }),
      ...(one.feedback === "wake" && wakes(outcome) ? { wake: true } : {}),
    },
  ];
}

/**
 * Whether no other component reports this end: its worker vanished, or its time limit or a rule of the host ended it.
 */
const isNews = (outcome: Outcome): boolean => {
  if (outcome.kind === "lost") return true; // @fault lost-process-not-fed
  return outcome.kind === "cancelled" && (outcome.reason.kind === "timeout" || outcome.reason.kind === "policy");
};

/** A stop by the host may be one of the whole session, after which no run begins by itself. */
const wakes = (outcome: Outcome): boolean => outcome.kind !== "cancelled" || outcome.reason.kind !== "policy";

/** A process that must be stopped. `alone`: the call that owns it is not being stopped. */
export interface ProcessStop {
  readonly id: ProcessId;
  readonly reason: CancelReason;
  readonly alone: boolean;
}

/** The processes that must be stopped for the state to hold, with the reasons. */
export function demandStops(lane: Lane): readonly ProcessStop[] {
  return lane.processes.live.flatMap((one) => {
    const reason = stopReason(lane, one);
    return reason === undefined ? [] : [{ id: one.id, reason, alone: isStoppedAlone(lane, one) }];
  });
}

const find = (lane: Lane, id: ProcessId): Process | undefined => lane.processes.live.find((one) => one.id === id);
const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
const isWork = (owner: Work | SessionId): owner is Work => owner.startsWith("call_") || owner.startsWith("turn_");
const isBackground = ({ owner }: Process): boolean => !isCall(owner);
const refused = (code: Refused["code"], message: string): Refused => ({ kind: "refused", code, message });
