// What may happen in a schedule. Not every schedule may do everything: leaving out most kinds of trouble each time lets
// the rest of them meet more often.
import { STORE_WAIT_MS } from "../src/core/limits.ts";
import type { Delivery } from "../src/core/model/prompt.ts";
import type { DeathVerified, ExitBehavior } from "../src/testing/scripted-child.ts";
import { type Chooser, chance, pick, weighted } from "./chooser.ts";
import type { ModelOptions } from "./model-agents.ts";
import type { Trait } from "./plan.ts";
import type { StoreTroubleOptions } from "./sim-store.ts";
import type { SimulationOptions } from "./simulation.ts";

/** Printed with a violation. */
export interface ScheduleOptions extends SimulationOptions {
  readonly steps: number;
  readonly deliveries: readonly Delivery[];
  readonly keys: boolean;
  readonly calls: boolean;
  /** Turns end with calls. */
  readonly ends: boolean;
  /** What those calls, and the ones within turns, may be like. */
  readonly traits: readonly Trait[];
  /** Agents put questions to people. */
  readonly asks: boolean;
  /** Agents read the conversation, and sum it up. */
  readonly reads: boolean;
  /** Agents stop their own runs. */
  readonly stops: boolean;
  readonly posts: boolean;
  /** Few clients and long turns: what takes time (recovery, several calls) gets it. */
  readonly calm: boolean;
  /** Long turns with calls that may be repeated, and workers that come and go. */
  readonly lives: boolean;
  /** One run after another, with many calls and much talk about them. */
  readonly deep: boolean;
  readonly queueChanges: boolean;
  readonly closes: boolean;
  readonly faults: boolean;
  readonly crashes: boolean;
  readonly shutdowns: boolean;
  readonly follows: boolean;
  readonly trims: boolean;
  /** How many follow at once. */
  readonly followersMax: number;
  /** Somebody sets the wall clock; the machine sleeps; timers are late. */
  readonly jumps: boolean;
  readonly sleeps: boolean;
  readonly slowTimers: boolean;
  /** Models are refused, break off, fall silent, and say odd things. */
  readonly providerTrouble: boolean;
  /** Calls wait for the processes they have started, and are mostly left alone. */
  readonly patient: boolean;
  /** How processes take it that they are stopped. */
  readonly manners: readonly ExitBehavior[];
  /** Lasting trouble of the store. Absent in most schedules. */
  readonly storeTrouble?: StoreTroubleOptions | undefined;
  /** When the death of a stopped process is verified. Absent: at once, as in most schedules. */
  readonly deathVerified?: readonly DeathVerified[] | undefined;
  /** Processes start late, or not at all. */
  readonly slowStarts: boolean;
  /** Trees outlive the worker that vanishes, until the next one ends them. */
  readonly survive: boolean;
  /** Now and then two things happen in the same tick. */
  readonly hurry: boolean;
  /** How many of a hundred steps are the clients'. */
  readonly clientPercent: number;
}

const TRAITS: readonly Trait[] = ["approval", "hasty", "idempotent", "deaf", "slot", "limited"];

const MANNERS: readonly ExitBehavior[] = ["ignores", "exits", "exited", "escapes"];

/** What a schedule is to be about, if not about anything. */
export type Focus = (typeof FOCUSES)[number] | (typeof TROUBLE_FOCUSES)[number] | undefined;
export const FOCUSES = ["processes", "model", "time", "followers", "lives"] as const;
/** Trouble that few other schedules have: `npm run sim -- --focus store-trouble`. */
export const TROUBLE_FOCUSES = ["store-trouble", "late-commit", "late-death"] as const;

export function flavourOf(chooser: Chooser, focus?: Focus): ScheduleOptions {
  const sometimes = (percent: number): boolean => chance(chooser, percent);
  const lives = focus === "lives" || (focus === undefined && sometimes(4));
  const model = focus === "model" || (!lives && (focus === undefined || focus === "time") && sometimes(18));
  const timed = focus === "time";
  const watched = focus === "followers";
  const late = focus === "late-death";
  const lateCommit = focus === "late-commit";
  const processes = focus === "processes" || late || (!lives && sometimes(model ? 8 : 25));
  const patient = late || (processes && sometimes(60));
  const deep = model || (!lives && !late && sometimes(35));
  const calm = lives || (deep ? sometimes(60) : sometimes(20));
  const long = deep || patient || lives || focus === "store-trouble" || lateCommit;
  const deliveries: Delivery[] = ["queue"];
  if (sometimes(45)) deliveries.push("steer");
  if (sometimes(35)) deliveries.push("interrupt");
  if (sometimes(25)) deliveries.push("reject");
  return {
    sessions: weighted(chooser, [
      [deep ? 20 : 6, 1],
      [3, 2],
      [1, 3],
    ]),
    slots: weighted(chooser, [
      [1, 1],
      [1, 1024],
    ]),
    onCrash: !lives && sometimes(15) ? "lose" : "resume",
    stubbornPercent: sometimes(40) ? 40 : 0,
    hooks: sometimes(deep && !patient ? 30 : 15),
    metered: sometimes(40),
    runLimitMs: sometimes(timed ? 50 : 12) ? 6_000 : undefined,
    processes,
    model: model ? modelOf(chooser) : undefined,
    providerTrouble: model && sometimes(60),
    patient,
    steps: (long ? 40 : processes ? 24 : 8) + chooser.below(sometimes(30) ? 80 : 32),
    deliveries,
    keys: sometimes(35),
    calls: calm || processes || sometimes(60),
    ends: !lives && (deep || calm || sometimes(50)),
    traits: lives ? ["idempotent"] : TRAITS.filter(() => sometimes(patient ? 12 : 45)),
    asks: sometimes(deep ? 60 : 35),
    reads: sometimes(deep ? 60 : 45),
    stops: sometimes(15),
    posts: sometimes(35),
    calm,
    lives,
    deep,
    queueChanges: sometimes(35),
    closes: sometimes(15),
    faults: sometimes(30),
    crashes: lives || sometimes(calm ? 70 : 30),
    shutdowns: sometimes(deep ? 40 : 15),
    follows: watched || sometimes(25),
    trims: sometimes(watched ? 70 : 30),
    followersMax: sometimes(30) ? 8 : 3,
    pageMax: sometimes(watched ? 60 : 25) ? 1 + chooser.below(4) : undefined,
    jumps: timed || sometimes(15),
    sleeps: sometimes(timed ? 60 : 8),
    slowTimers: sometimes(timed ? 60 : 15),
    manners: processes ? ["dies", ...MANNERS.filter((one) => sometimes(late && one === "ignores" ? 90 : 40))] : [],
    slowStarts: processes && sometimes(40),
    survive: processes && sometimes(40),
    hurry: sometimes(processes ? 45 : model ? 60 : 30),
    // Left alone, a process ends by itself: schedules about their deaths need people who stop them.
    clientPercent: late || lateCommit ? 18 : deep ? 14 : calm || patient ? 6 : 15 + chooser.below(35),
    ...troubleOf(chooser, focus, processes),
  };
}

/** Drawn last. Now and then in any schedule, so that each kind of trouble meets everything else. */
function troubleOf(
  chooser: Chooser,
  focus: Focus,
  processes: boolean,
): Pick<ScheduleOptions, "storeTrouble" | "deathVerified"> {
  if (focus === "late-commit") return { storeTrouble: lateCommits(chooser, troubleTime(chooser)) };
  if (focus === "store-trouble" || (focus === undefined && chance(chooser, 6))) {
    return { storeTrouble: storeTroubleOf(chooser) };
  }
  const late = focus === "late-death" || (focus === undefined && processes && chance(chooser, 15));
  return late ? { deathVerified: deathsOf(chooser) } : {};
}

function storeTroubleOf(chooser: Chooser): StoreTroubleOptions {
  const kind = weighted(chooser, [
    [3, "refusing"],
    [2, "silent"],
    [1, "slow"],
    [2, "late"],
  ] as const);
  const when = troubleTime(chooser);
  if (kind === "silent") return { kind, applied: chance(chooser, 50), ...when };
  if (kind === "slow") {
    return { kind, commitMs: pick(chooser, COMMITS_MS), applied: chance(chooser, 50) ? "at-once" : "at-end", ...when };
  }
  if (kind === "late") return lateCommits(chooser, when);
  const code = pick(chooser, ["store_full", "store_locked", "store_corrupt"] as const);
  return { kind, code, ...(chance(chooser, 25) ? { also: "reads" } : {}), ...when };
}

type TroubleTime = Pick<StoreTroubleOptions, "afterSteps" | "steps">;

function troubleTime(chooser: Chooser): TroubleTime {
  return { afterSteps: 4 + chooser.below(24), steps: 8 + chooser.below(32) };
}

function lateCommits(chooser: Chooser, when: TroubleTime): StoreTroubleOptions {
  return { kind: "late", commitMs: LATE_MS, code: pick(chooser, ["store_full", "store_locked"]), ...when };
}

/** Longer than a turn is given to notice that its calls were abandoned; and longer than the grace. */
const COMMITS_MS = [300, 2_000];

/** Longer than the store is waited for, and shorter than it is waited for twice. */
const LATE_MS = STORE_WAIT_MS + 2_000;

/** Longer than a call is given once its processes are forced; and longer than the spawner itself waits. */
const LATE_DEATH: DeathVerified = { afterMs: 700 };

function deathsOf(chooser: Chooser): readonly DeathVerified[] {
  return weighted<readonly DeathVerified[]>(chooser, [
    [2, [LATE_DEATH]],
    [1, ["never"]],
    [1, [LATE_DEATH, "never"]],
  ]);
}

/** What the real loop may use up, and how patient it is. */
function modelOf(chooser: Chooser): ModelOptions {
  return {
    turnsMax: weighted(chooser, [
      [2, 50],
      [1, 3],
    ]),
    tokensMax: chance(chooser, 25) ? 120 : undefined,
    attemptsMax: 1 + chooser.below(3),
    parallelMax: weighted(chooser, [
      [2, 8],
      [1, 1],
    ]),
    compactAbove: chance(chooser, 30) ? 60 : undefined,
  };
}
