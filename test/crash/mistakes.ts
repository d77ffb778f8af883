// Known mistakes of servers that are killed, as edits of the source. The crash loop must find each.
import ts from "typescript";
import { CRASH_BUGS } from "../../sim/bugs/crash-bugs.ts";
import type { Seq, SessionId } from "../../src/core/model/ids.ts";
import type { Appended, Batch } from "../../src/ports/store.ts";
import { type Edit, type Mistake as Edited, mistake } from "../mistakes/mistake.ts";
import { named } from "../mistakes/named.ts";
import { inline } from "../mistakes/place.ts";

export interface Mistake extends Edited {
  /** The points at which servers are killed to find it; default those that the seed chooses. */
  readonly points?: readonly string[];
}

const STOP_POINTS = ["cancel:after-commit", "cancel:before-answer", "cancel:answered"];

/** An append is answered at once, and the answer of the writer is dropped: code in place of the marked statement. */
function answeredAtOnce(...[at, other]: Parameters<Edit>): string {
  const waiting = at.value().arg(0, 1);
  const callbacks = [waiting.part(1, 3), waiting.part(2, 3)].map(({ text }) => `${text}: () => undefined`);
  const answer = inline(
    (batch: Batch, note: (session: SessionId, head: Seq) => void, resolve: (answer: Appended) => void) => {
      const head = batch.expected + batch.events.length;
      note(batch.session, head);
      resolve({ kind: "appended", head });
    },
    at.around(2).param(0),
    other("note").whenTrue().value().callee(),
    at.param(0),
  );
  return `${at.value().callee().text}({ ${[waiting.part(0, 3).text, ...callbacks].join(", ")} }); ${answer};`;
}

export const MISTAKES: readonly Mistake[] = [
  {
    ...mistake("acknowledged-before-the-commit", "A receipt is given before it is durable.", (at, other) =>
      at.become(answeredAtOnce(at, other)),
    ),
    points: ["accept:before-commit", "accept:before-begin", "settle:before-commit", "cancel:before-commit"],
  },
  {
    ...mistake("call-begun-before-its-record", "A tool begins before its call is in the log.", (at, other) => {
      const isCall = inline(
        ({ events }: Batch) => events.some(({ type }) => type === "call.requested"),
        at.around(2).param(0),
      );
      return at.become(`if (${isCall}) { ${answeredAtOnce(at, other)} } else { ${at.text} }`);
    }),
    points: ["call:before-begin", "call:before-commit", "call:after-row"],
  },
  {
    ...named(CRASH_BUGS, "finished-call-repeated"),
    points: ["call:before-commit#4", "call:after-commit#3", "call:before-begin#5", "call:after-commit#4"],
  },
  {
    ...mistake(
      "unknown-call-repeated",
      "A call whose end is unknown is begun again, although its tool does not allow that.",
      (at) => at.value().condition().operand(2, 3).drop(),
    ),
    points: ["call:before-answer", "call:before-commit", "process:after-commit"],
  },
  named(CRASH_BUGS, "nothing-recovered"),
  mistake("attempts-never-counted", "A run that takes its worker down is started again and again.", (at) => {
    const attempt = at.part(2, 3).value();
    return attempt.become(attempt.left().text);
  }),
  { ...named(CRASH_BUGS, "stop-forgotten-by-recovery"), points: STOP_POINTS },
  {
    ...mistake("two-outcomes", "Recovery gives a run an outcome twice, and the store accepts the second one.", {
      recovery: (at) =>
        at
          .value()
          .part(1, 2)
          .after(`, ${at.value().part(1, 2).text}`),
      trigger: (at) =>
        at
          .value()
          .swap(
            "one_outcome_per_run BEFORE UPDATE ON run WHEN old.phase = 'settled'",
            "one_outcome_per_run BEFORE UPDATE ON run WHEN old.phase = 'never'",
          ),
    }),
    points: STOP_POINTS,
  },
  {
    ...mistake(
      "key-not-recorded",
      "A prompt that is sent again after a crash is another run, because its key was kept in memory only.",
      (at) => at.remove(),
    ),
    points: ["accept:after-commit", "accept:before-answer"],
  },
  {
    ...mistake("migration-in-steps", "A migration that is cut off leaves a file that no version can open.", (at) =>
      at.findOne(ts.isCallExpression, 1, 2, "a call").arg(0, 1).after(' + "; COMMIT; BEGIN IMMEDIATE"'),
    ),
    points: ["migrate:before-commit"],
  },
  {
    ...mistake("outcome-guessed-by-recovery", "A call that was cut off is recorded as completed.", (at) =>
      at.literal("lost").become('"completed"'),
    ),
    points: ["call:after-commit", "process:after-commit", "call:before-answer", "call:after-commit#3"],
  },
];
