// Explains why a session is busy, from its state, in the words of the glossary.

import type { WorkerId } from "../core/model/ids.ts";
import type { Lane } from "../core/model/lane.ts";
import type { Run } from "../core/model/run.ts";
import type { LiveExplained } from "../core/read/explained.ts";
import type { Explanation } from "../ports/explanation.ts";
import type { ProcessInfo } from "../ports/spawner.ts";
import type { SessionState } from "./log/session-state.ts";
import type { Times } from "./work/start-times.ts";

/** What is not in the state of a lane. */
export interface Beside {
  readonly worker: WorkerId;
  readonly processes: readonly ProcessInfo[];
  readonly times: Times;
  readonly mode: string | undefined;
  /** Whether the work of its live run may begin. */
  readonly hasSlot: boolean;
}

export function explain(lane: SessionState, { worker, processes, times, mode, hasSlot }: Beside): Explanation {
  const state = lane.durable;
  return {
    sessionId: state.id,
    asOf: state.head,
    busy: state.live !== undefined || state.queue.length > 0, // @fault busy-without-a-run
    live: liveExplained(lane, times),
    queue: state.queue.map((run) => ({ runId: run.id, text: run.prompt.text })),
    steers: state.steers.map((run) => ({ runId: run.id, text: run.prompt.text })),
    processes,
    mode,
    driver: lane.epoch === undefined ? undefined : worker,
    summary: summary(state, lane.epoch !== undefined, hasSlot),
  };
}

function liveExplained(
  { durable: { live: run }, works, blocked }: SessionState,
  times: Times,
): LiveExplained | undefined {
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
      waits: works.find((work) => work.id === call.id)?.waits,
      since: times.get(call.id),
    })),
    questions: run.questions,
    since: times.get(run.id),
    blocked: blocked?.runId === run.id ? { work: blocked.work, ms: blocked.ms, at: blocked.at } : undefined,
  };
}

function summary(state: Lane, ours: boolean, hasSlot: boolean): string {
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
      return `${run.id} is parked until a worker recovers it.${behind}`;
    case "running":
      if (ours && !hasSlot) return `${run.id} is waiting for a free slot to continue. A cancel would stop it.${behind}`;
      return `${run.id} is running${who}${callsOf(calls)}${asks(run)}. A cancel would stop it.${behind}`;
  }
}

function background({ phase, processes }: Lane): string {
  const many = processes.live.length;
  if (many === 0) return phase === "closed" ? "" : "A cancel would change nothing.";
  const running = many === 1 ? "A background process is" : `${many} background processes are`;
  return `${running} running. A cancel would stop it all.`;
}

const callsOf = (calls: string): string => (calls === "" ? "" : `; calls: ${calls}`);

function asks({ questions }: Pick<Run, "questions">): string {
  if (questions.length === 0) return "";
  const many = questions.length === 1 ? "an answer" : `${questions.length} answers`;
  return `; it waits for ${many} (${questions.map(({ id }) => id).join(", ")})`;
}
