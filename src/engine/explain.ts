// Why is this session busy? Read off the state, in the words of the glossary.
import type { CancelReason } from "../core/cancel.ts";
import type { CallId, RunId, Seq, SessionId, TurnId } from "../core/ids.ts";
import type { Lane } from "../core/lane.ts";
import type { Question } from "../core/question.ts";
import type { Run } from "../core/run.ts";
import type { ProcessInfo } from "../spawner.ts";
import { LiveCall, type Waits } from "./live-call.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveWork } from "./live-work.ts";

export interface Explanation {
  readonly sessionId: SessionId;
  /** The position in the log this speaks of. */
  readonly asOf: Seq;
  readonly busy: boolean;
  readonly live: LiveExplained | undefined;
  readonly queue: readonly { readonly runId: RunId; readonly text: string }[];
  readonly steers: readonly { readonly runId: RunId; readonly text: string }[];
  /** What goes on as processes of this machine: of calls, and in the background. */
  readonly processes: readonly ProcessInfo[];
  /** One sentence for people. */
  readonly summary: string;
}

export interface LiveExplained {
  readonly runId: RunId;
  readonly phase: "running" | "ending" | "stopping" | "parked";
  readonly reason: CancelReason | undefined;
  readonly attempt: number;
  readonly turn: TurnId | undefined;
  readonly calls: readonly CallExplained[];
  /** What people are asked and have not answered. */
  readonly questions: readonly Question[];
}

export interface CallExplained {
  readonly callId: CallId;
  readonly name: string;
  readonly phase: "running" | "stopping";
  /** What it waits for before it begins; undefined: it has begun, or another worker knows. */
  readonly waits: Waits | undefined;
}

export function explain(lane: LiveLane, processes: readonly ProcessInfo[] = []): Explanation {
  const state = lane.durable;
  return {
    sessionId: state.id,
    asOf: state.head,
    busy: state.live !== undefined || state.queue.length > 0,
    live: liveExplained(state, lane.works),
    queue: state.queue.map((run) => ({ runId: run.id, text: run.prompt.text })),
    steers: state.steers.map((run) => ({ runId: run.id, text: run.prompt.text })),
    processes,
    summary: summary(state, lane.epoch !== undefined),
  };
}

function liveExplained(state: Lane, works: readonly LiveWork[]): LiveExplained | undefined {
  const run = state.live;
  if (run === undefined) return undefined;
  return {
    runId: run.id,
    phase: run.phase,
    reason: run.phase === "stopping" ? run.reason : undefined,
    attempt: run.attempt,
    turn: run.turn,
    calls: run.live.map((call) => ({
      callId: call.id,
      name: call.name,
      phase: call.phase,
      waits: waits(works, call.id),
    })),
    questions: run.questions,
  };
}

function waits(works: readonly LiveWork[], id: CallId): Waits | undefined {
  const owner = works.find((work) => work.id === id)?.owner;
  return owner instanceof LiveCall ? owner.waits : undefined;
}

function summary(state: Lane, ours: boolean): string {
  const behind = state.queue.length === 0 ? "" : ` ${state.queue.length} queued behind it.`;
  const run = state.live;
  if (run === undefined) {
    if (state.queue.length > 0) return `Not running: ${state.queue.length} queued, waiting for a free slot.`;
    return `${state.phase === "closed" ? "Closed." : "Idle."} ${background(state)}`.trim();
  }
  const who = ours ? "" : " (driven by another worker)";
  const calls = run.live.map((call) => call.name).join(", ");
  switch (run.phase) {
    case "stopping":
      return `${run.id} has been stopping since ${run.since}${who}; it waits for ${calls || "its turn"}.${behind}`;
    case "ending":
      return `${run.id} has ended and waits for ${calls}${who}.${behind}`;
    case "parked":
      return `${run.id} is parked until a worker takes it up.${behind}`;
    case "running":
      return `${run.id} is running${who}${doing(calls)}${asks(run)}. A cancel would stop it.${behind}`;
  }
}

function background({ phase, processes }: Lane): string {
  const many = processes.live.length;
  if (many === 0) return phase === "closed" ? "" : "A cancel would change nothing.";
  return `${many === 1 ? "A process goes" : `${many} processes go`} on in the background. A cancel would stop it all.`;
}

const doing = (calls: string): string => (calls === "" ? "" : `; calls: ${calls}`);

function asks({ questions }: Pick<Run, "questions">): string {
  if (questions.length === 0) return "";
  const many = questions.length === 1 ? "an answer" : `${questions.length} answers`;
  return `; it waits for ${many} (${questions.map(({ id }) => id).join(", ")})`;
}
