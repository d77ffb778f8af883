// Finds the surest way to hold processes on this machine: the first mechanism, best first, that is there and has proven
// itself in a test.
//
// Invariants
// 1. What a test has found out is kept in the memory of this program alone, and only if it passed: no file that a
//    command could write to, and no shortage of an hour ago, makes a later start choose less.
// 2. A test that could not be run for want of resources decides nothing: the start is refused, not softened.
import { ControlError } from "../../core/errors.ts";
import type { Mechanism, Tier } from "../../ports/spawner.ts";
import { NO_ROOM } from "../launch/start.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import type { Containment } from "./containment.ts";
import { fixFor } from "./fixes.ts";
import { isAtLeast, MECHANISMS, makeContainment, type Surroundings, TIER_OF } from "./mechanisms.ts";
import { processTableOn } from "./platform.ts";
import { selfTest, type TestResult } from "./self-test.ts";

export type TestResults = Readonly<Partial<Record<Mechanism, TestResult>>>;

export interface Choosing extends Surroundings {
  /** This one and no other. */
  readonly mechanism?: Mechanism;
  readonly requireTier?: Tier;
  /** Tests again, whatever this program has found out before. */
  readonly fresh?: boolean;
}

export interface Choice {
  readonly containment: Containment;
  /** Those that were tried before it, and why they are not it. */
  readonly passedOver: TestResults;
}

/** Throws `uncontained` if nothing here is sure enough. */
export async function choose(choosing: Choosing): Promise<Choice> {
  const wanted = choosing.mechanism === undefined ? MECHANISMS : [choosing.mechanism];
  const tests = new Tests(choosing);
  const passedOver: Partial<Record<Mechanism, TestResult>> = {};
  for (const mechanism of wanted) {
    const result = await tests.of(mechanism);
    const containment = result.kind === "passed" ? makeContainment(mechanism, choosing) : undefined;
    if (result.kind === "failed" && result.shortage === true) throw noRoom(mechanism, result.why);
    if (containment === undefined) {
      passedOver[mechanism] = result;
      continue;
    }
    if (choosing.requireTier === undefined || isAtLeast(containment.tier, choosing.requireTier)) {
      return { containment, passedOver };
    }
    containment.close?.();
    throw refusal(choosing, containment.tier, passedOver);
  }
  throw refusal(choosing, undefined, passedOver);
}

/** What has passed in this program, by mechanism and machine. */
const passed = new Set<string>();

/** Tests each mechanism, unless this program has seen it pass. */
export class Tests {
  readonly #around: Surroundings;
  readonly #fresh: boolean;
  readonly #processTable: ProcessTable | undefined;

  constructor(choosing: Surroundings & { readonly fresh?: boolean }) {
    this.#around = choosing;
    this.#fresh = choosing.fresh === true;
    this.#processTable = choosing.processTable ?? processTableOn(choosing.machine.platform, choosing.clock);
  }

  async of(mechanism: Mechanism): Promise<TestResult> {
    const { clock, workspace, machine, test } = this.#around;
    if (test !== undefined) return test(mechanism);
    const key = JSON.stringify([mechanism, this.#processTable?.kind, machine]);
    if (passed.has(key) && !this.#fresh) return { kind: "passed" };
    const make = (): Containment | undefined => makeContainment(mechanism, this.#around);
    const processTable = this.#processTable === undefined ? {} : { processTable: this.#processTable };
    const result = await selfTest({ clock, workspace, make, ...processTable });
    if (result.kind === "passed") passed.add(key);
    else passed.delete(key);
    return result;
  }
}

const noRoom = (mechanism: Mechanism, why: string): ControlError =>
  new ControlError("uncontained", `Whether ${mechanism} holds processes here could not be tested: ${why}.`, {
    hint: NO_ROOM,
  });

function refusal(choosing: Choosing, there: Tier | undefined, passedOver: TestResults): ControlError {
  const { requireTier, mechanism, machine } = choosing;
  const wanted = requireTier === undefined ? "Processes" : `Processes of tier "${requireTier}"`;
  const has = there === undefined ? "nothing here holds them" : `the best this machine has is "${there}"`;
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
