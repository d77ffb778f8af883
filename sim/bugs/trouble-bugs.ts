// Mistakes that show while a store refuses, hangs or answers late.
import { mistake } from "../../test/mistakes/mistake.ts";
import type { Bug } from "./bug.ts";

const TROUBLE: readonly Bug[] = [
  mistake(
    "doubtful-batch-dropped",
    "A batch that the store has not answered is dropped once the log was read without it, and lands after that.",
    (at) => at.value().value().become("false"),
  ),
  mistake(
    "late-batch-not-read",
    "A batch that lands after it was given up on is taken for one that was not written.",
    (at) => at.condition().become("true"),
  ),
  mistake(
    "late-batch-sought-as-sent-last",
    "A batch that was sent again and then lands is looked for only as it was sent the last time.",
    (at) => {
      const flights = at.value().arg(0, 1).body();
      return flights.become(`${flights.text}.slice(-1)`);
    },
  ),
  mistake(
    "unrecorded-stop-lost-with-the-lease",
    "A stop that was carried out and not recorded is forgotten when the worker loses the session.",
    (at) => at.condition().become("true"),
  ),
  mistake(
    "retry-pause-of-a-millisecond",
    "A store that refuses is asked again after a millisecond, however often it has refused.",
    (at) => at.value().operand(1, 2).become("1"),
  ),
  mistake("refused-start-repeated-at-once", "A start that the store has refused is sent again without a pause.", (at) =>
    at.value().value().operand(1, 2).operand(1, 2).drop(),
  ),
];

/** These need appends that land late, and refusals right behind them. */
const LATE = new Set(["late-batch-not-read", "late-batch-sought-as-sent-last"]);

export const TROUBLE_BUGS: readonly Bug[] = TROUBLE.map((one) => ({
  ...one,
  focus: LATE.has(one.name) ? "late-commit" : "store-trouble",
}));
