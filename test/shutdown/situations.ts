// What a Belay is doing when it is shut down, and what must be true of it after the next start.
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { Agent, Turn } from "../../src/ports/agent.ts";
import type { RunControl } from "../../src/ports/control.ts";
import type { Hooks } from "../../src/ports/hooks.ts";
import type { Session } from "../../src/sdk/session.ts";
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

/** Phases between those, and the same with agents of another kind. */
export const MORE_SITUATIONS = [
  ...["background process, agent that returns", "background process, agent that throws"],
  ...["background process, agent that is deaf", "waiting approval, agent that throws"],
  ...["waiting approval, agent that is deaf", "queued prompts, agent that returns"],
  ...["queued prompts, agent that throws", "queued prompts, agent that is deaf"],
  ...["two Belays, agent that returns", "two Belays, agent that throws", "two Belays, agent that is deaf"],
  ...["run that is being stopped", "waiting steer", "hook at work", "idle session, background process"],
] as const;

export type Situation = (typeof SITUATIONS)[number] | (typeof MORE_SITUATIONS)[number];

/** How the process, or the Belay in it, comes to its end. */
export const ENDS = ["close()", "SIGTERM", "SIGTERM twice", "SIGKILL", "host exit"] as const;

export type End = (typeof ENDS)[number] | "SIGKILL while it closes";

const isOf = (situation: Situation, kind: string): boolean => situation.split(", ")[0] === kind;

export const hasTwoBelays = (situation: Situation): boolean => isOf(situation, "two Belays");

/** The hooks of the first life. */
export const hooksIn = (situation: Situation, reached: () => void): Hooks =>
  situation === "hook at work" ? { beforeCall: () => never(reached) } : {};

/** What the host does in the first life. Resolves with the runs it has begun, when the situation has come about. */
export async function begin(
  situation: Situation,
  session: Session,
  began: Promise<void>,
): Promise<readonly RunControl[]> {
  const runs: RunControl[] = [session.prompt("go")];
  for (const run of runs) run.outcome.catch(() => {});
  if (isOf(situation, "queued prompts")) runs.push(session.prompt("next"));
  if (isOf(situation, "waiting approval")) await untilAsked(session);
  else await began;
  if (situation === "waiting steer") runs.push(session.prompt("and this", { delivery: "steer" }));
  if (situation === "run that is being stopped") await runs[0]?.cancel();
  if (situation === "idle session, background process") {
    await runs[0]?.outcome;
    await session.processes.start("sleep 600", { feedback: "silent" });
  }
  for (const run of runs) run.outcome.catch(() => {});
  await Promise.all(runs.map((run) => run.accepted));
  return runs;
}

async function untilAsked(session: Session): Promise<void> {
  for await (const { type } of session.events()) if (type === "question.asked") return;
}

/** The agent of the first life. Calls `reached` when the situation has come about. */
export function agentIn(situation: Situation, reached: () => void): Agent {
  return async (turn) => {
    if (situation.startsWith("call")) return inCall(turn, situation, reached);
    if (isOf(situation, "waiting approval") || situation === "hook at work") {
      const approval = situation !== "hook at work";
      const { kind } = await turn.call("tool", null, () => "done", { approval });
      if (situation.endsWith("that is deaf")) return never();
      if (situation.endsWith("that throws")) throw new Error(`The call was ${kind}.`);
      return kind;
    }
    if (situation === "turn that waits for a process" || situation === "turn that asks") {
      return inWait(turn, situation, reached);
    }
    if (isOf(situation, "background process")) await turn.processes.start("sleep 600", { feedback: "silent" });
    reached();
    if (situation === "idle session, background process") return "done";
    if (situation.endsWith("that is deaf") || situation === "run that is being stopped") return never();
    if (situation.endsWith("that returns") || situation.endsWith("that throws")) {
      await untilAborted(turn.signal).catch(() => {});
      if (situation.endsWith("that throws")) throw new Error("The agent broke.");
      return "done";
    }
    // Long enough that another Belay of the process, which is idle, has closed meanwhile.
    const tidyMs = hasTwoBelays(situation) ? 100 : 0;
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

const never = (begun: () => void = () => {}): Promise<never> => new Promise(begun);

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

/** What must be found of the run at this place. What is left out may be either: it depends on the timing. */
export function expected(situation: Situation, end: End, at = 0): Partial<Found> {
  if (situation === "run that is being stopped")
    return { outcome: "cancelled", parked: false, lost: false, resumed: false };
  const next = { outcome: "completed" } as const;
  // Which run takes a steer up depends on whether the turn was still live.
  if (situation === "waiting steer" && at === 1) return next;
  if (situation === "idle session, background process") {
    const isKilled = end === "SIGKILL" || end === "host exit";
    return { ...next, resumed: false, parked: false, ...(isOrderly(end) || isKilled ? { lost: isKilled } : {}) };
  }
  // Its code has returned a result: that is how it ended, whatever came meanwhile. What was queued had not begun.
  if (situation.endsWith("that returns") && isOrderly(end))
    return { ...next, parked: false, lost: false, resumed: at > 0 && isOf(situation, "queued prompts") };
  switch (end) {
    case "close()":
    case "SIGTERM":
      return { ...next, resumed: true, parked: true, lost: false };
    case "SIGTERM twice":
    case "SIGKILL while it closes":
      return next;
    case "SIGKILL":
    case "host exit":
      return { ...next, resumed: true, parked: false, ...leavesWork(situation) };
  }
}

const isOrderly = (end: End): boolean => end === "close()" || end === "SIGTERM";

/** Calls and processes that had begun, and about whose end nothing was recorded. A hook decides before the call. */
function leavesWork(situation: Situation): Pick<Partial<Found>, "lost"> {
  if (situation === "hook at work") return {};
  const kinds = ["waiting approval", "background process", "turn that waits for a process"];
  return { lost: situation.startsWith("call") || kinds.some((kind) => isOf(situation, kind)) };
}

/** The heads and rows of the table of what the next start finds. */
export function shutdownTable(): readonly [heads: string[], rows: string[][]] {
  const all: readonly Situation[] = [...SITUATIONS, ...MORE_SITUATIONS];
  return [["while it is in", ...ENDS], all.map((one) => [one, ...ENDS.map((end) => told(expected(one, end)))])];
}

function told({ outcome, parked, lost, resumed }: Partial<Found>): string {
  if (outcome === "cancelled") return "cancelled";
  if (resumed === undefined) return "continues, or has completed";
  if (!resumed) return "had completed";
  return parked === true ? "parked, continues" : `continues${lost === true ? "; its work is `lost`" : ""}`;
}
