// The names of the known mistakes of each suite, from the lists that the suites themselves use.
import { CORPUS } from "../../sim/bugs/corpus.ts";
import { MISTAKES as ACP_MISTAKES } from "../acp/mistakes.ts";
import { MISTAKES as CRASH_MISTAKES } from "../crash/mistakes.ts";
import { MISTAKES as FAULT_MISTAKES } from "../faults/mistakes.ts";
import { MISTAKES as POWER_MISTAKES } from "../power/mistakes.ts";
import { MISTAKES as SOAK_MISTAKES } from "../soak/mistakes.ts";
import type { Suite } from "./failure-map.ts";

export type KnownMistakes = Readonly<Record<Suite, ReadonlySet<string>>>;

const namesOf = (mistakes: readonly { readonly name: string }[]): ReadonlySet<string> =>
  new Set(mistakes.map(({ name }) => name));

export const KNOWN_MISTAKES: KnownMistakes = {
  sim: namesOf(CORPUS),
  acp: namesOf(ACP_MISTAKES),
  crash: namesOf(CRASH_MISTAKES),
  faults: namesOf(FAULT_MISTAKES),
  power: namesOf(POWER_MISTAKES),
  soak: namesOf(SOAK_MISTAKES),
  trees: new Set(),
};
