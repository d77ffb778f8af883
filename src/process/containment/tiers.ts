// Chooses the containment of this machine: the first mechanism, best first, that is available and passes its self-test.
// Records the choice, so that a change since the last start is reported.
//
// Invariants
// 1. A test result is kept only in memory and only if the test passed: no file that a command could write to, and no
//    earlier shortage, makes a later start choose a weaker mechanism.
// 2. A test that cannot run for lack of resources decides nothing: the start is refused, not weakened.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Mechanism, Tier } from "../../ports/spawner.ts";
import { NO_ROOM } from "../launch/start.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import type { Containment } from "./containment.ts";
import { fixFor } from "./fixes.ts";
import { isAtLeast, MECHANISMS, type MechanismOptions, makeContainment, TIER_OF } from "./mechanisms.ts";
import { processTableOn } from "./platform.ts";
import { selfTest, type TestResult } from "./self-test.ts";

export type TestResults = Readonly<Partial<Record<Mechanism, TestResult>>>;

export interface ChooseOptions extends MechanismOptions {
  /** Only this one. */
  readonly mechanism?: Mechanism;
  readonly requireTier?: Tier;
  /** Tests again, even if this program has results already. */
  readonly fresh?: boolean;
}

export interface Choice {
  readonly containment: Containment;
  /** The mechanisms tried before it, and why they were not chosen. */
  readonly passedOver: TestResults;
}

/** Throws `uncontained` if no mechanism is strong enough. */
export async function choose(options: ChooseOptions): Promise<Choice> {
  const wanted = options.mechanism === undefined ? MECHANISMS : [options.mechanism];
  const tests = new Tests(options);
  const passedOver: Partial<Record<Mechanism, TestResult>> = {};
  for (const mechanism of wanted) {
    const result = await tests.of(mechanism);
    const containment = result.kind === "passed" ? makeContainment(mechanism, options) : undefined;
    if (result.kind === "failed" && result.shortage === true) throw noRoom(mechanism, result.why);
    if (containment === undefined) {
      passedOver[mechanism] = result;
      continue;
    }
    if (options.requireTier === undefined || isAtLeast(containment.tier, options.requireTier)) {
      return { containment, passedOver };
    }
    containment.close?.();
    throw refusal(options, containment.tier, passedOver);
  }
  throw refusal(options, undefined, passedOver);
}

/** Passed tests of this program, by mechanism and machine. */
const passed = new Set<string>();

/** Tests each mechanism, unless it has passed before in this program. */
export class Tests {
  readonly #options: MechanismOptions;
  readonly #fresh: boolean;
  readonly #processTable: ProcessTable | undefined;

  constructor(options: MechanismOptions & { readonly fresh?: boolean }) {
    this.#options = options;
    this.#fresh = options.fresh === true;
    this.#processTable = options.processTable ?? processTableOn(options.machine.platform, options.clock);
  }

  async of(mechanism: Mechanism): Promise<TestResult> {
    const { clock, workspace, machine, test } = this.#options;
    if (test !== undefined) return test(mechanism);
    const key = JSON.stringify([mechanism, this.#processTable?.kind, machine]);
    if (passed.has(key) && !this.#fresh) return { kind: "passed" };
    const make = (): Containment | undefined => makeContainment(mechanism, this.#options);
    const processTable = this.#processTable === undefined ? {} : { processTable: this.#processTable };
    const result = await selfTest({ clock, workspace, make, ...processTable });
    if (result.kind === "passed") passed.add(key);
    else passed.delete(key);
    return result;
  }
}

const noRoom = (mechanism: Mechanism, why: string): ControlError =>
  new ControlError("uncontained", `The containment by ${mechanism} could not be tested: ${why}.`, {
    hint: NO_ROOM,
  });

function refusal(options: ChooseOptions, there: Tier | undefined, passedOver: TestResults): ControlError {
  const { requireTier, mechanism, machine } = options;
  const wanted = requireTier === undefined ? "Processes" : `Processes of tier "${requireTier}"`;
  const has = there === undefined ? "no mechanism works here" : `the best this machine has is "${there}"`;
  const whys = Object.entries(passedOver).map(([name, result]) =>
    result.kind === "failed" ? `${name}: ${result.why}` : name,
  );
  const candidates = MECHANISMS.filter((one) =>
    mechanism === undefined ? requireTier === undefined || isAtLeast(TIER_OF[one], requireTier) : one === mechanism,
  );
  const fixes = candidates.flatMap((one) => fixFor(one, machine, passedOver[one]) ?? []);
  return new ControlError("uncontained", `${wanted} cannot be started: ${has}. ${whys.join("; ")}`.trim(), {
    ...(fixes.length === 0 ? {} : { hint: [...new Set(fixes)].join(" Or: ") }),
  });
}

const LAST_MECHANISM_FILE = "last-mechanism";

/**
 * Records the mechanism of this start. Returns a sentence for the operator if the last start used another one. The
 * record is informative only: it never decides which mechanism is used.
 */
export function noteMechanism(dir: string, now: Mechanism): string | undefined {
  const before = lastMechanism(dir);
  try {
    if (before !== now) writeFileSync(join(dir, LAST_MECHANISM_FILE), `${now}\n`, { mode: 0o600 });
  } catch {
    // A full disk is reported elsewhere; the change is reported again at the next start.
  }
  if (before === undefined || before === now) return undefined;
  return `Processes are held by ${nameOf(now)} from now on; at the last start it was ${nameOf(before)}.`;
}

const nameOf = (mechanism: Mechanism): string => `${mechanism} (tier ${TIER_OF[mechanism]})`;

function lastMechanism(dir: string): Mechanism | undefined {
  try {
    const text = readFileSync(join(dir, LAST_MECHANISM_FILE), "utf8").trim();
    return MECHANISMS.find((one) => one === text);
  } catch {
    return undefined;
  }
}
