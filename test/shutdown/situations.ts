// What a Belay is doing when it is shut down, and what must be true of it after the next start.
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { Agent, Turn } from "../../src/ports/agent.ts";
import { untilAborted } from "../fixtures/belay.ts";

/**
 * `heeds`: the code ends with its stop. `ignores`: it goes on after its call was stopped, and returns. `throws`: it
 * fails with an error of its own. `deaf`: it never returns.
 */
export const SITUATIONS = [
  ...["turn that heeds", "turn that returns", "turn that throws", "turn that is deaf"],
  ...["call, agent that heeds", "call, agent that ignores", "call, agent that throws", "call that is deaf"],
  ...["turn that waits for a process", "turn that asks"],
  ...["waiting approval", "queued prompts", "background process", "two Belays"],
] as const;

export type Situation = (typeof SITUATIONS)[number];

/** How the process, or the Belay in it, comes to its end. */
export const ENDS = ["close()", "SIGTERM", "SIGTERM twice", "SIGKILL", "host exit"] as const;

export type End = (typeof ENDS)[number];

/** The agent of the first life. Calls `reached` when the situation has come about. */
export function agentIn(situation: Situation, reached: () => void): Agent {
  return async (turn) => {
    if (situation.startsWith("call")) return inCall(turn, situation, reached);
    if (situation === "waiting approval") {
      const { kind } = await turn.call("tool", null, () => "done", { approval: true });
      return kind;
    }
    if (situation === "turn that waits for a process" || situation === "turn that asks") {
      return inWait(turn, situation, reached);
    }
    if (situation === "background process") await turn.processes.start("sleep 600", { feedback: "silent" });
    reached();
    if (situation === "turn that is deaf") return never();
    if (situation === "turn that returns" || situation === "turn that throws") {
      await untilAborted(turn.signal).catch(() => {});
      if (situation === "turn that throws") throw new Error("The agent broke.");
      return "done";
    }
    // Long enough that another Belay of the process, which is idle, has closed meanwhile.
    const tidyMs = situation === "two Belays" ? 100 : 0;
    return untilAborted(turn.signal).catch((stopped: unknown) => tidyUp(turn, tidyMs, stopped));
  };
}

/** Rejects after a while, as an agent does that puts its work away. */
const tidyUp = ({ clock }: Turn, ms: number, stopped: unknown): Promise<never> =>
  new Promise((_, reject) => void clock.after(ms, () => reject(stopped)));

async function inCall(turn: Turn, situation: Situation, reached: () => void): Promise<string> {
  const { kind } = await turn.call("tool", null, ({ signal }) => {
    reached();
    return situation === "call that is deaf" ? never() : untilAborted(signal);
  });
  if (situation === "call, agent that heeds") turn.signal.throwIfAborted();
  if (situation === "call, agent that throws") throw new Error(`The call was ${kind}.`);
  return "done";
}

/** The code takes what its wait comes to for an answer, and returns. */
async function inWait(turn: Turn, situation: Situation, reached: () => void): Promise<string> {
  if (situation === "turn that asks") {
    const asked = turn.ask({ text: "Which?" });
    reached();
    return asked.then(
      ({ kind }) => kind,
      () => "not answered",
    );
  }
  const handle = await turn.processes.start("sleep 600", { feedback: "silent" });
  const ended = handle.wait();
  reached();
  return ended.then(
    (result) => result?.outcome.kind ?? "limit",
    () => "not known",
  );
}

const never = (): Promise<never> => new Promise(() => {});

/** What the log says of a run after the next start has brought it to its end. */
export interface Found {
  readonly outcome: Outcome["kind"];
  /** It was put down in an orderly way. */
  readonly parked: boolean;
  /** Calls and turns of the first life whose end is not known. */
  readonly lost: boolean;
  /** The agent was called in the next life. */
  readonly resumed: boolean;
}

export function found(log: readonly Recorded[], outcome: Outcome, resumed: boolean): Found {
  const lost = (event: Recorded): boolean =>
    (event.type === "call.settled" || event.type === "process.settled") && event.outcome.kind === "lost";
  return {
    ...{ outcome: outcome.kind, resumed, lost: log.some(lost) },
    parked: log.some(({ type }) => type === "run.parked"),
  };
}

/** What must be found. A field that is undefined may be either: it depends on which signal was faster. */
export function expected(situation: Situation, end: End): Partial<Found> {
  // Its code has returned a result: that is how it ended, whatever came meanwhile.
  if (situation === "turn that returns" && (end === "close()" || end === "SIGTERM"))
    return { outcome: "completed", parked: false, lost: false, resumed: false };
  const next = { outcome: "completed" } as const;
  switch (end) {
    case "close()":
    case "SIGTERM":
      return { ...next, resumed: true, parked: true, lost: false };
    case "SIGTERM twice":
      return next;
    case "SIGKILL":
    case "host exit":
      return { ...next, resumed: true, parked: false, lost: leavesWork(situation) };
  }
}

/** Calls and processes that had begun, and about whose end nothing was recorded. */
const leavesWork = (situation: Situation): boolean =>
  situation.startsWith("call") ||
  ["waiting approval", "background process", "turn that waits for a process"].includes(situation);

/** The heads and rows of the table of what the next start finds. */
export function shutdownTable(): readonly [heads: string[], rows: string[][]] {
  return [["while it is in", ...ENDS], SITUATIONS.map((one) => [one, ...ENDS.map((end) => told(expected(one, end)))])];
}

function told({ parked, lost, resumed }: Partial<Found>): string {
  if (resumed === undefined) return "continues, or has completed";
  if (!resumed) return "had completed";
  return parked === true ? "parked, continues" : `continues${lost === true ? "; its work is `lost`" : ""}`;
}
