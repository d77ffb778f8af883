// Plays a story with a fault at one call of the store; the next time at the call after it; until a play no longer
// meets it. What is broken afterwards is a violation.
import type { Fault, StoreVerb } from "../../src/testing/faulty-store.ts";
import { Gate } from "../../src/testing/gate.ts";
import { CLOSE_EXTRA_MS, CLOSE_LIMIT_MS, FaultFixture } from "./fault-fixture.ts";
import { restAndLook } from "./rest.ts";
import type { Story } from "./story.ts";

/**
 * `held`: done and answered once everything else has come to rest. `answer-held`: done at once, answered then. `late`
 * and `answer-late`: only after the house has closed without it.
 */
export type FaultName =
  | "unavailable"
  | "store_full"
  | "store_locked"
  | "store_corrupt"
  | "internal"
  | "lose-answer"
  | "held"
  | "answer-held"
  | "late"
  | "answer-late";

export const FAULTS: readonly FaultName[] = [
  "unavailable",
  "store_full",
  "store_locked",
  "store_corrupt",
  "internal",
  "lose-answer",
  "held",
  "answer-held",
  "late",
  "answer-late",
];

export const VERBS: readonly StoreVerb[] = [
  "append",
  "load",
  "read",
  "grown",
  "run",
  "call",
  "process",
  "processes",
  "runs",
  "session",
  "sessions",
  "unattended",
  "claim",
  "renew",
  "release",
  "trim",
  "ids",
  "remove",
  "survey",
  "within",
  "usage",
  "reclaim",
];

/** The `at`-th call of `verb` in a story; `always`: every one of them, until the story is over. */
export interface Injection {
  readonly verb: StoreVerb;
  readonly at: number | "always";
  readonly fault: FaultName;
}

export interface Played {
  /** How often each verb was called until the story was over. */
  readonly calls: ReadonlyMap<StoreVerb, number>;
  readonly found: readonly string[];
}

/** Plays it once. Never throws. */
export async function play(story: Story, injections: readonly Injection[]): Promise<Played> {
  const stage = new FaultFixture(story.options);
  const unheard: string[] = [];
  const hear = (error: unknown): void => void unheard.push(`G33: nobody listened to a rejection: ${String(error)}`);
  process.on("unhandledRejection", hear);
  const calls = new Map<StoreVerb, number>();
  try {
    const gate = new Gate();
    for (const injection of injections) if (injection.at !== "always") plan(stage, injection, gate);
    await stage.open();
    for (const injection of injections) if (injection.at === "always") plan(stage, injection, gate);
    await story.play(stage);
    // What goes on in vain for a while does so a few times.
    if (injections.some(({ at }) => at === "always")) await stage.pass(WHILE_MS);
    for (const verb of VERBS) calls.set(verb, stage.faulty.calls(verb));
    const kept = injections.some(({ fault }) => isLate(fault)) ? await endWithout(stage, gate) : [];
    // What a store was asked for directly it answers itself, when it is closed.
    if (injections.some(({ verb }) => verb !== "append")) kept.length = 0;
    stage.faulty.heal();
    gate.open();
    const found = await restAndLook(stage);
    await stage.calm();
    return { calls, found: [...kept, ...found, ...unheard] };
  } catch (error) {
    return { calls, found: [`the play broke: ${error instanceof Error ? (error.stack ?? error.message) : error}`] };
  } finally {
    process.off("unhandledRejection", hear);
    stage.leave();
  }
}

const WHILE_MS = 1_000;
const isLate = (fault: FaultName): boolean => fault === "late" || fault === "answer-late";

function plan(stage: FaultFixture, { verb, at, fault }: Injection, gate: Gate): void {
  const kind = toFault(fault, gate);
  if (kind.kind !== "fail") stage.answersLost = true;
  if (fault === "internal") stage.storeFailsInternally = true;
  if (at === "always") stage.faulty.always(verb, kind);
  else stage.faulty.plan(verb, at, kind);
}

function toFault(fault: FaultName, until: Gate): Fault {
  switch (fault) {
    case "lose-answer":
      return { kind: "lose-answer" };
    case "held":
    case "late":
      return { kind: "delay", until };
    case "answer-held":
    case "answer-late":
      return { kind: "delay-answer", until };
    default:
      return { kind: "fail", code: fault };
  }
}

/** The house closes while the store has not answered; then it does, to nobody; then the house is opened again. */
async function endWithout(stage: FaultFixture, gate: Gate): Promise<string[]> {
  const { life } = stage;
  const closed = stage.hold("close", life.belay.close({ limitMs: CLOSE_LIMIT_MS }));
  await stage.calm();
  if (closed.state.kind === "pending") {
    stage.closedUnanswered.add(life.number);
    await stage.pass(CLOSE_LIMIT_MS + CLOSE_EXTRA_MS);
  }
  const waiting = stage.requests.filter((one) => one.state.kind === "pending" && one.life === life.number);
  gate.open();
  await stage.calm();
  await stage.open();
  return waiting.map(({ label }) => `G8: ${label} is not answered although the server has closed.`);
}

/** One injection after the other, from the first call of each verb on. */
export async function* inject(
  story: Story,
  faults: readonly FaultName[] = FAULTS,
): AsyncGenerator<{ readonly injection: Injection; readonly found: readonly string[] }> {
  for (const verb of VERBS) {
    for (const fault of faults) {
      for (let at = 1; ; at += 1) {
        const injection = { verb, at, fault };
        const { calls, found } = await play(story, [injection]);
        const met = (calls.get(verb) ?? 0) >= at;
        if (met || found.length > 0) yield { injection, found };
        if (!met) break;
      }
    }
  }
}
