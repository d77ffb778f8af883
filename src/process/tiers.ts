// Finds the surest way to hold processes on this machine: the first mechanism, best first, that is there and has proven
// itself in a test.
import { ControlError } from "../core/control-error.ts";
import type { Mechanism, Tier } from "../spawner.ts";
import type { Containment } from "./containment.ts";
import { fixFor } from "./fixes.ts";
import { isAtLeast, MECHANISMS, makeContainment, type Surroundings, TIER_OF } from "./mechanisms.ts";
import { sightOn } from "./platform.ts";
import { selfTest, type TestResult } from "./self-test.ts";
import type { Sight } from "./sight.ts";
import { keyOf, loadResults, saveResults, type TestResults } from "./test-results.ts";

export interface Choosing extends Surroundings {
  /** This one and no other. */
  readonly mechanism?: Mechanism;
  readonly requireTier?: Tier;
  /** Tests again, whatever was found out before. */
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

/** Tests each mechanism once, and remembers it. */
export class Tests {
  readonly #around: Surroundings;
  readonly #key: string;
  readonly #sight: Sight | undefined;
  #results: TestResults;

  constructor(choosing: Surroundings & { readonly fresh?: boolean }) {
    this.#around = choosing;
    this.#sight = choosing.sight ?? sightOn(choosing.machine.platform, choosing.clock);
    this.#key = keyOf(choosing.machine, this.#sight);
    this.#results = choosing.fresh === true ? {} : loadResults(choosing.stateDir, this.#key);
  }

  async of(mechanism: Mechanism): Promise<TestResult> {
    const known = this.#results[mechanism];
    if (known !== undefined) return known;
    const { clock, workspace, stateDir } = this.#around;
    const make = (): Containment | undefined => makeContainment(mechanism, this.#around);
    const result = await selfTest({
      clock,
      workspace,
      make,
      ...(this.#sight === undefined ? {} : { sight: this.#sight }),
    });
    this.#results = { ...this.#results, [mechanism]: result };
    saveResults(stateDir, this.#key, this.#results);
    return result;
  }
}

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
