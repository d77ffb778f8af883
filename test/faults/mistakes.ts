// Known mistakes in the handling of a store in trouble, as edits of the source. The faults must find each.
import { CRASH_BUGS } from "../../sim/bugs/crash-bugs.ts";
import type { Pending } from "../../src/engine/log/session-state.ts";
import { type Mistake, mistake } from "../mistakes/mistake.ts";
import { named } from "../mistakes/named.ts";
import { inline } from "../mistakes/place.ts";

export const MISTAKES: readonly Mistake[] = [
  named(CRASH_BUGS, "lost-answer-taken-for-no"),
  mistake("fault-swallowed", "An append that failed is answered as if it had been written.", (at, other) =>
    at.become(other("landed").whenTrue().text),
  ),
  named(CRASH_BUGS, "refused-and-recorded"),
  mistake("refused-stays-decided", "A refused command stays in the state on which the next decisions are made.", (at) =>
    at.remove(),
  ),
  named(CRASH_BUGS, "end-of-work-refused"),
  mistake(
    "never-tried-again",
    "Commands that cannot be refused are kept, and never recorded once the store works again.",
    (at) => at.remove(),
  ),
  mistake(
    "stop-told-before-it-is-recorded",
    "The caller of a cancel gets its receipt before the store has recorded it; a crash loses the cancel.",
    (at) =>
      at
        .whenTrue()
        .become(`${inline((entry: Pending) => entry.resolve(entry.answer), at.whenTrue().value().arg(0, 2))};`),
  ),
  mistake(
    "reported-stop-behind-an-end",
    "A stop was reported as carried out, and an end received before it settles the run in front of it.",
    (at) => at.condition().become("true"),
  ),
  mistake(
    "closed-house-keeps-callers-waiting",
    "A caller that waits for a store that hangs waits without end, also when the engine has closed.",
    (at) => at.remove(),
  ),
  mistake("refused-run-keeps-its-home", "The home of a run that was refused is never forgotten.", (at) => at.remove()),
  named(CRASH_BUGS, "session-not-loaded-again"),
  mistake(
    "late-answer-goes-on",
    "An answer of the store that comes after the engine has closed starts work again.",
    (at) => at.remove(),
  ),
];
