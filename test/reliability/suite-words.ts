// The suites of the page: what each promises, how it is attacked, what counts against it, and what it must reach.
import type { Suite } from "./published-suite.ts";
import { CLOCKWORK } from "./suite-words-engine.ts";
import { MACHINERY } from "./suite-words-machine.ts";
import { SPEED } from "./suite-words-speed.ts";
import { TESTERS } from "./suite-words-tester.ts";

/** In the order of the page. */
export const SUITES: readonly Suite[] = [...CLOCKWORK, ...MACHINERY, ...SPEED];

/** Suites about the suites. */
export const TESTER_SUITES: readonly Suite[] = TESTERS;

export const suiteNamed = (name: string): Suite | undefined =>
  [...SUITES, ...TESTER_SUITES].find((suite) => suite.name === name);

/**
 * Those whose figure for publication has not been made yet. A name is taken out when its figure is kept: the test of
 * the page asks for it then, and for what it must reach.
 */
export const AWAITED: ReadonlySet<string> = new Set(["stopping"]);
