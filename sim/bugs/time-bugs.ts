// Mistakes about time, about followers, and about what is left behind.

import type { Seq } from "../../src/core/model/ids.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import type { Pending, SessionState } from "../../src/engine/log/session-state.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Page } from "../../src/ports/store.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { type Change, inline, type Place } from "../../test/mistakes/place.ts";
import type { Focus } from "../schedule-options.ts";
import type { Bug } from "./bug.ts";

/** The wall clock in place of the one that measures how long something takes. */
const byTheWall = (reading: Place): Change => reading.become(inline((clock: Clock) => clock.now(), reading.target()));

/** The most events of a page, given where a page is read from the store. */
const pageLimit = (page: Place): string => page.value().value().arg(1, 2).part(1, 2).value().text;

const TIME: readonly Bug[] = [
  mistake(
    "limit-outlives-the-lane",
    "The time limit of a run whose session the worker has let go of ends the run after it was taken up again.",
    (at) => at.remove(),
  ),
  mistake(
    "limit-begun-for-another",
    "An event that is recorded after the worker let go of a session starts a time limit that is never cleared.",
    (at) => at.condition().operand(1, 2).drop(),
  ),
  mistake("limit-lost-in-the-crash", "A run that is taken up after a crash has no time limit.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  mistake("lease-by-the-wall", "The time since the last renewal of a lease is measured with the wall clock.", {
    start: (at) => byTheWall(at.value().arg(0, 1)),
    asked: (at) => byTheWall(at.value()),
    limit: (at) => byTheWall(at.value().arg(1, 2).right()),
    "let-go": (at) => byTheWall(at.value().arg(0, 1)),
  }),
  mistake(
    "lease-counted-from-the-answer",
    "A lease counts from the answer of the store, which may come late, and not from the request.",
    (at, other) => at.value().arg(0, 1).become(other("asked").value().text),
  ),
  mistake(
    "sleep-not-noticed",
    "After the computer has slept, the worker renews its leases and acts as if it had held them all the time.",
    (at, other) => at.become(other("renewed").text),
  ),
  mistake("question-expires-early", "A question expires before its deadline.", (at) => {
    const deadline = at.value().right().arg(0, 2);
    return deadline.become(`Math.min(${deadline.text}, 2_000)`);
  }),
  mistake("grace-cut-short", "Work that is asked to stop is abandoned in the middle of its grace period.", (at) =>
    at.value().right().arg(0, 2).after(" / 2"),
  ),
  mistake("call-limit-halved", "A call is stopped before its time limit.", (at) => at.value().arg(0, 2).after(" / 2")),
];

const FOLLOWERS: readonly Bug[] = [
  mistake(
    "landed-twice",
    "A batch that lands after its session was loaded again is passed on by the old lane and by the new one.",
    (at) => at.condition().become("false"),
  ),
  mistake(
    "gap-told-twice",
    "A follower whose position is before the oldest event that is kept gets the gap twice.",
    (at) => at.before("for (const _ of [1, 2]) "),
  ),
  mistake(
    "gap-told-again-at-the-next-page",
    "A page with a gap moves the position of the follower only to the end of the gap, not to the end of the page.",
    (at, other) =>
      at
        .value()
        .right()
        .become(inline(({ gapTo }: Page, pageEnd: Seq) => gapTo ?? pageEnd, other("page").name(), at.value().right())),
  ),
  mistake("event-skipped-at-the-page-edge", "A follower does not get the first event of the next page.", (at) => {
    const after = at.value().value().arg(1, 2).part(0, 2).value();
    return after.become(`${after.text} + (${after.text} > 2 ? 1 : 0)`);
  }),
  mistake(
    "short-page-taken-for-the-end",
    "A page with fewer events than its limit is taken for the last one.",
    (at, other) => {
      const isEmpty = at.value().right();
      return isEmpty.become(`${isEmpty.left().text} < ${pageLimit(other("page"))}`);
    },
  ),
  mistake(
    "joined-in-the-middle",
    "A follower that joins in the middle of a turn gets the beginning of its text as if it stood behind that text.",
    (at) => {
      const delta = at.value().value();
      return delta
        .part(4, 5)
        .value()
        .become(`${delta.part(3, 5).value().text}.length`);
    },
  ),
  mistake("feed-left-open", "A session counts as followed after its last follower has left.", (at) => at.remove()),
  mistake("follower-listens-for-ever", "A follower that has left stays registered to be woken.", (at) => at.remove()),
  mistake(
    "transcript-with-a-hole",
    "The events that retention removes while a transcript is read are missing in its middle.",
    (at) => at.remove(),
  ),
];

const LEFT: readonly Bug[] = [
  mistake(
    "catch-up-ends-at-a-short-page",
    "What other workers wrote is read only up to the first page that is not full.",
    (at, other) => at.after(` if (${at.value().arg(0, 1).value().text}.length < ${pageLimit(other("read"))}) break;`),
  ),
  mistake(
    "wait-kept-after-trouble",
    "A wait for an outcome stays registered after the store has failed to look it up and the caller has an error.",
    (at) => at.remove(),
  ),
  mistake("run-kept-in-mind", "A run that has ended is still kept as one that is open.", (at) => at.remove()),
  mistake(
    "caught-up-run-without-a-home",
    "A cancel of a run whose acceptance was never answered waits for the store.",
    (at) => at.remove(),
  ),
  mistake(
    "stop-behind-a-batch",
    "A stop that arrives while a batch is on its way is decided when the store has answered.",
    (at, other) => {
      const waits = inline(
        (lane: SessionState, entry: Pending) => lane.flight !== undefined && entry.command?.type.startsWith("cancel-"),
        at.param(0),
        at.param(1),
      );
      const [lane, entry] = [at.param(0), at.param(1)];
      const again = `this.${other("receive").name()}(${lane}, ${entry})`;
      const later = `this.${other("drained").name()}(${lane}).then(() => ${again})`;
      return at.before(`if (${waits}) return void ${later};\n`);
    },
  ),
  mistake("busy-without-a-run", "A session reports that it is busy although it has nothing left to do.", (at) =>
    at
      .value()
      .after(
        ` || ${inline((state: Lane) => state.inbox.length > 0, at.value().operand(1, 2).left().target().target())}`,
      ),
  ),
];

const focused = (focus: Focus, bugs: readonly Bug[]): readonly Bug[] => bugs.map((one) => ({ ...one, focus }));

export const TIME_BUGS: readonly Bug[] = [...focused("time", TIME), ...focused("followers", FOLLOWERS), ...LEFT];
