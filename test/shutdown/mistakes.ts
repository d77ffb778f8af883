// Known mistakes of the orderly shutdown, as edits of the source. The table of situations must find each.
import { type Mistake, mistake } from "../mistakes/mistake.ts";

export const MISTAKES: readonly Mistake[] = [
  mistake(
    "parked-call-ends-its-run",
    "An agent that returns after its call was parked completes its run, and nothing resumes it at the next start.",
    (at) => at.remove(),
  ),
  mistake(
    "cut-off-turn-ends-its-run",
    "An agent that returns what the shutdown has made of its wait completes its run, and nothing resumes it.",
    (at) => at.remove(),
  ),
  mistake(
    "grace-outlives-the-worker",
    "The timer of a stop outlives close() and keeps the program alive for the rest of the grace period.",
    (at) => at.remove(),
  ),
  mistake("shutdown-cuts-hooks-off", "A hook that was called is cut off, because close() does not wait for it.", (at) =>
    at.value().value().arg(0, 1).part(0, 2).become("rest"),
  ),
];
