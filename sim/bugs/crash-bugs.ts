// Mistakes that need a crash, a restart or a store in trouble to show.
import ts from "typescript";
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Event } from "../../src/core/model/event.ts";
import type { Run } from "../../src/core/model/run.ts";
import type { Pending } from "../../src/engine/log/session-state.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

export const CRASH_BUGS: readonly Bug[] = [
  mistake(
    "finished-call-repeated",
    "After a crash the turn is asked again, and with it calls that had completed.",
    (at) => at.condition().operand(0, 2).literal(0).become("9"),
  ),
  {
    ...mistake(
      "finished-call-repeated-in-the-third-life",
      "A call that was begun again after one crash, and has ended, is begun once more after the next.",
      (at) => {
        const [slot, made] = [at.value().left(), at.value().right()];
        return at.value().become(`${slot.target().text}.push(${made.text})`);
      },
    ),
    focus: "lives",
  },
  mistake(
    "earlier-turn-answers-for-a-later-one",
    "After a crash the same call of a later turn gets the result that an earlier turn had found.",
    (at) => at.remove(),
  ),
  mistake(
    "stop-forgotten-by-recovery",
    "A run that was being stopped when its worker died is taken up again.",
    (at, other) => {
      const recovered = inline(
        (run: Run): Event => ({ type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }),
        at.param(0),
      );
      const nextTurn = other("next").value().whenFalse().part(0, 1).text;
      return at.value().part(1, 2).become(`${recovered}, ${nextTurn}`);
    },
  ),
  mistake(
    "stopping-run-lost",
    "A run that was being stopped when its worker died ends as lost, although it had been cancelled.",
    (at) =>
      at
        .value()
        .part(1, 2)
        .arg(0, 1)
        .become(inline((): Outcome => ({ kind: "lost" }))),
  ),
  mistake("crash-loop-unlimited", "A run that takes its worker down is started again without a limit.", (at) =>
    at.condition().right().become("1e9"),
  ),
  mistake("parked-run-lost", "A run that was set down at shutdown is never taken up.", (at) => at.value().become("[]")),
  mistake(
    "open-calls-not-closed",
    "After a crash the turn is asked again while calls of the old one have no result.",
    (at) =>
      at
        .value()
        .become(
          inline((events: readonly Event[]) => events.filter((event) => event.type === "turn.settled"), at.value()),
        ),
  ),
  mistake("nothing-recovered", "At start the worker does not take up runs whose worker is gone.", (at) => at.remove()),
  mistake(
    "recovery-not-repeated",
    "A recovery that the store refuses is not tried again; the session stays busy without end.",
    (at) => at.remove(),
  ),
  mistake(
    "lease-not-taken-over",
    "A session that was loaded while its old lease was still valid is never driven.",
    (at) => at.remove(),
  ),
  mistake(
    "taken-over-late",
    "A worker looks for sessions without a driver so seldom that it takes them over more than two seconds late.",
    (at) => at.value().become("6_500"),
  ),
  mistake("bystander-drives", "A worker without the lease stops and settles the work of the one that has it.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  mistake(
    "refused-and-recorded",
    "A prompt is refused because the store is full, and recorded when it is not full any more.",
    (at) => {
      const kept = at.find(ts.isIfStatement, "an if").condition();
      return kept.after(
        ` || ${inline((entry: Pending) => entry.command?.type === "accept", kept.operand(0, 2).arg(0, 1))}`,
      );
    },
  ),
  mistake(
    "refused-prompt-stays-decided",
    "A prompt is refused because the store is full, but the lane continues as if it had been accepted.",
    (at) => at.remove(),
  ),
  mistake("lost-answer-taken-for-no", "An append whose answer was lost is taken for one that did not happen.", (at) =>
    at.value().become("false"),
  ),
  mistake(
    "lost-answer-decided-again",
    "A cancel whose answer was lost is decided again, and covers what was accepted after it.",
    (at) => at.condition().become("true"),
  ),
  mistake(
    "cancel-refused-with-the-rest",
    "A store in trouble refuses the cancel too, and it is never carried out.",
    (at) => at.value().body().operand(0, 2).drop(),
  ),
  mistake("end-of-work-refused", "The end of a turn that the store could not record is forgotten.", (at) =>
    at.remove(),
  ),
  mistake(
    "unrecorded-call-stays-open",
    "A call that was recorded although its turn got an error keeps its run from ending.",
    (at) => at.remove(),
  ),
  mistake("rejection-unheard", "A promise is rejected at shutdown without a handler, which ends the program.", (at) =>
    at.remove(),
  ),
  mistake(
    "session-not-loaded-again",
    "A session that could not be loaded once is not looked at again, although its lease is held.",
    (at) => at.remove(),
  ),
  mistake(
    "cancelled-while-parked",
    "A run that is cancelled while a shutdown sets it down is neither set down nor ended.",
    {
      "set-down": (at) => at.value().operand(1, 2).drop(),
      end: (at) => at.condition().operand(0, 2).drop(),
    },
  ),
];
