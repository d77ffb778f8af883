// What a stop covers, and when work may begin or be stopped. The decisions and the engine both use this definition.
//
// Invariants
// 1. A stop covers what is in the state when it is decided, and nothing that comes later.
// 2. Cancel travels down, never up: a run covers its turn, calls and their processes; a call covers its processes.
import { type CancelReason, isMeant } from "../model/cancel.ts";
import type { Command } from "../model/command.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId, type Work } from "../model/ids.ts";
import type { Lane, Waiting } from "../model/lane.ts";
import type { Process } from "../model/process.ts";
import type { Run } from "../model/run.ts";

export interface Coverage {
  /** Runs, live and waiting. */
  readonly runs: readonly RunId[];
  /** The turn and calls of the live run. */
  readonly work: readonly Work[];
  readonly processes: readonly ProcessId[];
}

export function covers(lane: Lane, command: Command): Coverage {
  switch (command.type) {
    case "cancel-session":
      if (command.only === "queue") return { ...NOTHING, runs: waitingRuns(lane).map(({ id }) => id) };
      return coversSession(lane, command.background ?? "stop");
    case "close":
      return coversSession(lane, "end");
    case "cancel-run":
    case "withdraw":
      return coversRun(lane, (run) => run.id === command.runId);
    case "cancel-key":
      return coversRun(lane, (run) => isMeant(command, run));
    case "cancel-call":
      return coversCall(lane, command.callId);
    case "cancel-process":
      return { ...NOTHING, processes: [command.processId] };
    default:
      return NOTHING;
  }
}

/** `keep`: background processes keep running. `stop`: they are stopped, except lasting ones. `end`: all are stopped. */
function coversSession(lane: Lane, background: "keep" | "stop" | "end"): Coverage {
  const live = lane.live === undefined ? NOTHING : coversLive(lane, lane.live);
  const waiting = waitingRuns(lane).map(({ id }) => id);
  return {
    runs: [...live.runs, ...waiting],
    work: live.work,
    processes: [...live.processes, ...backgroundOf(lane, background)],
  };
}

function coversRun(lane: Lane, isThis: (run: Run | Waiting) => boolean): Coverage {
  if (lane.live !== undefined && isThis(lane.live)) return coversLive(lane, lane.live);
  const waiting = waitingRuns(lane).find(isThis);
  return waiting === undefined ? NOTHING : { ...NOTHING, runs: [waiting.id] };
}

function coversLive(lane: Lane, run: Run): Coverage {
  const calls = run.live.map(({ id }) => id);
  const work = run.turn === undefined ? calls : [...calls, run.turn];
  return { runs: [run.id], work, processes: calls.flatMap((id) => processesOf(lane, id)) };
}

function coversCall(lane: Lane, id: CallId): Coverage {
  if (lane.live?.id !== runOf(id) || !lane.live.live.some((call) => call.id === id)) return NOTHING;
  return {
    runs: [],
    work: [id], // @fault sibling-stopped-at-once
    processes: processesOf(lane, id),
  };
}

const processesOf = (lane: Lane, call: CallId): readonly ProcessId[] =>
  lane.processes.live.flatMap(({ id, owner }) => (owner === call ? [id] : []));

/** The background processes of the session that such a stop covers. */
// @fault background-not-kept, background-survives-the-session
export const backgroundOf = (lane: Lane, how: "keep" | "stop" | "end"): readonly ProcessId[] =>
  how === "keep"
    ? []
    : lane.processes.live.flatMap(({ id, owner, lasting }) =>
        owner === lane.id && (how === "end" || lasting !== true) ? [id] : [],
      );

const waitingRuns = ({ queue, steers }: Lane): readonly Waiting[] => [...queue, ...steers];

const NOTHING: Coverage = { runs: [], work: [], processes: [] };

/**
 * Whether a stop that the state demands is carried out now. A stop that follows from a prompt (`interrupt`) can still
 * be refused together with that prompt, so it waits until it is durable.
 */
export const mayStop = (decided: Lane, durable: Lane, reason: CancelReason): boolean =>
  reason.kind !== "superseded" || (durable.live?.phase === "stopping" && durable.live.id === decided.live?.id);

/**
 * Whether a stop of a call, or of its run, is decided and can still be refused. Meanwhile nothing of the call begins.
 */
export const isCallStopRefusable = (decided: Lane, durable: Lane, id: CallId): boolean =>
  isCallStopped(decided, id) && !isCallStopped(durable, id);

const isCallStopped = ({ live: run }: Lane, id: CallId): boolean =>
  run?.phase === "stopping" || run?.live.find((call) => call.id === id)?.phase === "stopping";

/** Whether a call is running as far as the log knows, and so is its run. A stop that can be refused does not count. */
export function isRunning(decided: Lane, durable: Lane, id: Work): boolean {
  const run = decided.live;
  const isRunGoing = run?.phase === "running" || (run?.phase === "stopping" && !mayStop(decided, durable, run.reason));
  return isRunGoing && durable.live?.live.find((call) => call.id === id)?.phase === "running";
}

/** As `mayStop`, for a process. The process, like its run, may be absent from one of the two states. */
export function mayStopProcess(decided: Lane, durable: Lane, id: ProcessId): boolean {
  const reason = processStop(decided, id);
  return reason !== undefined && (reason.kind !== "superseded" || processStop(durable, id) !== undefined);
}

/** Whether a stop of a process is decided and can still be refused. */
export const isStopRefusable = (decided: Lane, durable: Lane, id: ProcessId): boolean =>
  processStop(decided, id) !== undefined && !mayStopProcess(decided, durable, id);

function processStop(lane: Lane, id: ProcessId): CancelReason | undefined {
  const one = lane.processes.live.find((process) => process.id === id);
  return one === undefined ? undefined : stopReason(lane, one);
}

/** Whether a turn or call may begin: its request is durable, and no stop of it is decided, not even a refusable one. */
export function mayBegin(decided: Lane, durable: Lane, work: Work): boolean {
  return isWanted(decided, work) && isWanted(durable, work);
}

function isWanted({ live: run }: Lane, work: Work): boolean {
  if (run?.phase !== "running") return false;
  return run.turn === work || run.live.some((call) => call.id === work && call.phase === "running");
}

/** Whether a call was requested and has not settled. */
export const isRequested = ({ live }: Lane, id: Work): boolean => live?.live.some((call) => call.id === id) === true;

/** Whether a process may be started: its request is durable, and no stop of it is decided. */
export function mayStart(decided: Lane, durable: Lane, id: ProcessId): boolean {
  const one = decided.processes.live.find((process) => process.id === id);
  const recorded = durable.processes.live.some((process) => process.id === id);
  return one !== undefined && recorded && stopReason(decided, one) === undefined;
}

/** Why a process must end: its own stop, or that of its owner. The first reason wins. */
export const stopReason = (lane: Lane, one: Process): CancelReason | undefined =>
  one.phase === "stopping" ? one.reason : ownerStopReason(lane, one);

/** Whether a process is stopped without its call, which may then use its grace. A shutdown stops both. */
export const isStoppedAlone = (lane: Lane, one: Process): boolean =>
  ownerStopReason(lane, one) === undefined && !(one.phase === "stopping" && one.reason.kind === "shutdown");

/** Why the call that owns a process is being stopped; undefined if it is not. */
export function ownerStopReason({ live }: Lane, one: Process): CancelReason | undefined {
  if (!isCall(one.owner)) return undefined;
  const call = live?.live.find(({ id }) => id === one.owner);
  if (call?.phase === "stopping") return call.reason;
  if (live?.phase === "stopping") return live.reason;
  return live?.phase === "ending" ? { kind: "parent", id: live.id } : undefined;
}

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
