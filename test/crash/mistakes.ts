// Known mistakes of servers that are killed, as changes of the source. The crash loop must find each.
import { type Bug, bug } from "../../sim/bugs/bug.ts";

export interface Mistake extends Bug {
  /** The points at which servers are killed to find it; default those that the seed chooses. */
  readonly points?: readonly string[];
}

const OUTBOX = "src/store/sqlite/outbox.ts";
const DECIDE_RUN = "src/core/decide-run.ts";
const ENGINE = "src/engine/engine.ts";

const WAITS = "      waiting.push({ session: batch.session, resolve, reject });\n";
/** Whoever appended is told at once; what becomes of it nobody hears. */
const TOLD_AT_ONCE = `
      const head = batch.expected + batch.events.length;
      waiting.push({ session: batch.session, resolve: () => undefined, reject: () => undefined });
      this.#note(batch.session, head);
      resolve({ kind: "appended", head });
`;

const STOPPED = "return [...lost, settle(cancelled(run.reason, run.abandoned))];";
const settledTwice = STOPPED.replace("];", ", settle(cancelled(run.reason, run.abandoned))];");

export const MISTAKES: readonly Mistake[] = [
  {
    ...bug("acknowledged-before-the-commit", "A receipt is given before it is durable.", OUTBOX, WAITS, TOLD_AT_ONCE),
    points: ["accept:before-commit", "accept:before-begin", "settle:before-commit", "cancel:before-commit"],
  },
  {
    ...bug(
      "call-begun-before-its-record",
      "A tool begins while the log does not know of it yet.",
      OUTBOX,
      WAITS,
      `if (batch.events.some(({ type }) => type === "call.requested")) {${TOLD_AT_ONCE}} else {${WAITS}}`,
    ),
    points: ["call:before-begin", "call:before-commit", "call:after-row"],
  },
  {
    ...bug(
      "finished-call-repeated",
      "After a crash the turn is asked again, and with it calls that had completed.",
      "src/engine/live-turn.ts",
      'if (this.run.recoveries > 0 && options.again !== "begin") {',
      'if (this.run.recoveries > 9 && options.again !== "begin") {',
    ),
    points: ["call:before-commit#4", "call:after-commit#3", "call:before-begin#5", "call:after-commit#4"],
  },
  {
    ...bug(
      "unknown-call-repeated",
      "A call whose end is unknown is begun again, whatever its tool says.",
      "src/engine/replay.ts",
      "isCutOff(made.result) && options.idempotent === true ?",
      "isCutOff(made.result) ?",
    ),
    points: ["call:before-answer", "call:before-commit", "process:after-commit"],
  },
  bug(
    "nothing-recovered",
    "At start nobody looks for runs whose worker is gone.",
    "src/engine/attendance.ts",
    "      lanes.get(session);\n    }\n  }",
    "      void session;\n    }\n  }",
  ),
  bug(
    "attempts-never-counted",
    "A run that takes its worker down is started again and again.",
    DECIDE_RUN,
    'type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }',
    'type: "run.recovered", runId: run.id, attempt: run.attempt }',
  ),
  {
    ...bug(
      "stop-forgotten-by-recovery",
      "A run that was being stopped when its worker died is taken up again.",
      DECIDE_RUN,
      STOPPED,
      'return [...lost, { type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }, nextTurn(run)];',
    ),
    points: ["cancel:after-commit", "cancel:before-answer", "cancel:answered"],
  },
  {
    name: "two-outcomes",
    about: "Recovery gives a run an outcome twice, and the store lets it.",
    edits: [
      { file: DECIDE_RUN, find: STOPPED, replace: settledTwice },
      {
        file: "src/store/sqlite/schema.ts",
        find: "CREATE TRIGGER one_outcome_per_run BEFORE UPDATE ON run WHEN old.phase = 'settled'",
        replace: "CREATE TRIGGER one_outcome_per_run BEFORE UPDATE ON run WHEN old.phase = 'never'",
      },
    ],
    points: ["cancel:after-commit", "cancel:before-answer", "cancel:answered"],
  },
  {
    ...bug(
      "key-not-recorded",
      "A prompt that is sent again after a crash is another run, because its key was kept in memory only.",
      ENGINE,
      "...(key === undefined ? {} : { key, content: content() }),",
      "",
    ),
    points: ["accept:after-commit", "accept:before-answer"],
  },
  {
    ...bug(
      "migration-in-steps",
      "A migration that is cut off leaves a file that no version can open.",
      "src/store/sqlite/migrate.ts",
      "for (const step of migrations.slice(version)) database.exec(step);",
      'for (const step of migrations.slice(version)) database.exec(step + "; COMMIT; BEGIN IMMEDIATE");',
    ),
    points: ["migrate:before-commit"],
  },
  {
    ...bug(
      "outcome-guessed-by-recovery",
      "A call that was cut off is recorded as completed.",
      DECIDE_RUN,
      '...cutOff(run, { kind: "lost" }),',
      '...cutOff(run, { kind: "completed" }),',
    ),
    points: ["call:after-commit", "process:after-commit", "call:before-answer", "call:after-commit#3"],
  },
];
