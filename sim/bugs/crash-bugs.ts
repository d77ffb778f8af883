// Mistakes that need a crash, a restart or a store in trouble to show.
import { type Bug, bug } from "./bug.ts";

const ATTENDANCE = "src/engine/attendance.ts";
const COMMIT = "src/engine/commit.ts";
const DECIDE_RUN = "src/core/decide-run.ts";

export const CRASH_BUGS: readonly Bug[] = [
  bug(
    "finished-call-repeated",
    "After a crash the turn is asked again, and with it calls that had completed.",
    "src/engine/live-turn.ts",
    'if (this.run.recoveries > 0 && options.again !== "begin") {',
    'if (this.run.recoveries > 9 && options.again !== "begin") {',
  ),
  {
    ...bug(
      "finished-call-repeated-in-the-third-life",
      "A call that was begun again after one crash, and has ended, is begun once more after the next.",
      "src/engine/replay.ts",
      "else this.made[stood] = made;",
      "else this.made.push(made);",
    ),
    focus: "lives",
  },
  bug(
    "earlier-turn-answers-for-a-later-one",
    "After a crash the same call of a later turn is told what an earlier turn had found.",
    "src/engine/replay.ts",
    "this.made.length = 0;",
    "void this.made;",
  ),
  bug(
    "stop-forgotten-by-recovery",
    "A run that was being stopped when its worker died is taken up again.",
    DECIDE_RUN,
    "return [...lost, settle(cancelled(run.reason, run.abandoned))];",
    'return [...lost, { type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }, nextTurn(run)];',
  ),
  bug(
    "stopping-run-lost",
    "A run that was being stopped when its worker died ends as lost, although somebody had cancelled it.",
    DECIDE_RUN,
    "return [...lost, settle(cancelled(run.reason, run.abandoned))];",
    'return [...lost, settle({ kind: "lost" })];',
  ),
  bug(
    "crash-loop-unlimited",
    "A run that takes its worker down is started again and again.",
    DECIDE_RUN,
    "if (run.attempt >= ATTEMPTS_MAX) return",
    "if (run.attempt >= 1e9) return",
  ),
  bug(
    "parked-run-lost",
    "A run that was set down at shutdown is never taken up.",
    DECIDE_RUN,
    'return [...cutOff(run, SHUTDOWN), { type: "run.recovered", runId: run.id, attempt: run.attempt }, ...next];',
    "return [];",
  ),
  bug(
    "open-calls-not-closed",
    "After a crash the turn is asked again while calls of the old one have no result.",
    DECIDE_RUN,
    '...cutOff(run, { kind: "lost" }),',
    '...cutOff(run, { kind: "lost" }).filter((event) => event.type === "turn.settled"),',
  ),
  bug(
    "nothing-recovered",
    "At start nobody looks for runs whose worker is gone.",
    ATTENDANCE,
    "      lanes.get(session);\n    }\n  }",
    "      void session;\n    }\n  }",
  ),
  bug(
    "recovery-not-repeated",
    "A recovery that the store refuses is not tried again; the session is busy for ever.",
    COMMIT,
    '  "recover",\n  "park",\n',
    '  "park",\n',
  ),
  bug(
    "lease-not-taken-over",
    "A session that was loaded while its old lease still ran is never driven.",
    ATTENDANCE,
    "if (lane !== undefined && lane.epoch === undefined && lane.atRest) lanes.forget(lane);\n",
    "",
  ),
  bug(
    "taken-over-late",
    "What nobody drives is looked for so seldom that it is taken over more than two seconds after its lease.",
    "src/core/limits.ts",
    "export const LEASE_RENEW_MS = 1_500;",
    "export const LEASE_RENEW_MS = 6_500;",
  ),
  bug(
    "bystander-drives",
    "A worker without the lease stops and settles the work of the one that has it.",
    "src/engine/drive.ts",
    "if (run === undefined || lane.epoch === undefined) return;",
    "if (run === undefined) return;",
  ),
  bug(
    "refused-and-recorded",
    "A prompt is refused because the store is full, and recorded when it is not full any more.",
    COMMIT,
    "const kept = entries.filter((entry) => isLasting(entry.command));",
    'const kept = entries.filter((entry) => isLasting(entry.command) || entry.command.type === "accept");',
  ),
  bug(
    "refused-prompt-stays-decided",
    "A prompt is refused because the store is full, but the lane goes on as if it had been accepted.",
    COMMIT,
    "    lane.flying = [];\n    lane.pending = [];\n    lane.decided = lane.durable;\n    const kept",
    "    lane.flying = [];\n    lane.pending = [];\n    const kept",
  ),
  bug(
    "lost-answer-taken-for-no",
    "An append whose answer was lost is taken for one that did not happen.",
    COMMIT,
    "lane.doubt ||= !WROTE_NOTHING.has(error.code);",
    "lane.doubt = false;",
  ),
  bug(
    "lost-answer-decided-again",
    "A cancel whose answer was lost is decided again, and covers what was accepted after it.",
    COMMIT,
    "if (unsure === undefined || !begins(unsure.read, unsure.events)) return;",
    "if (unsure !== undefined) return;",
  ),
  bug(
    "cancel-refused-with-the-rest",
    "A store in trouble refuses the cancel too, and nobody carries it out.",
    COMMIT,
    "isCancel(command) || LASTING.has(command.type);",
    "LASTING.has(command.type);",
  ),
  bug(
    "end-of-work-refused",
    "The end of a turn that the store could not record is forgotten.",
    COMMIT,
    '  "settle-turn",\n  "settle-call",\n',
    '  "settle-call",\n',
  ),
  bug(
    "unrecorded-call-stays-open",
    "A call whose request was recorded while its asker was told otherwise keeps its run from ending.",
    "src/engine/drive.ts",
    "if (durable) this.#world.unbegun(lane, effect.work);",
    "void durable;",
  ),
  {
    name: "order-lost-after-doubt",
    about: "When kept commands are decided again, what was received later gets in between.",
    edits: [
      {
        file: COMMIT,
        find: "for (const entry of entries) this.#tryApply(lane, entry);",
        replace: "for (const entry of entries) this.#decide(lane, entry);",
      },
      {
        file: COMMIT,
        find: "lane.mailbox.splice(0, ready === -1 ? lane.mailbox.length : ready);",
        replace: "lane.mailbox.splice(0, Math.min(ready, 0));",
      },
    ],
  },
  bug(
    "begun-in-doubt",
    "Work begins while nobody knows whether its stop is in the log.",
    "src/engine/drive.ts",
    "const run = lane.doubt ? undefined : lane.durable.live;",
    "const run = lane.durable.live;",
  ),
  bug(
    "rejection-unheard",
    "A promise is rejected at shutdown while nobody listens, which ends the program.",
    "src/engine/awaited-outcome.ts",
    "  coming.catch(ignore);\n",
    "",
  ),
  bug(
    "session-not-loaded-again",
    "A session that could not be loaded once is not looked at again, although its lease is held.",
    "src/engine/lanes.ts",
    "      this.#parts.unloaded(lane.id);\n",
    "",
  ),
  {
    name: "cancelled-while-parked",
    about: "A run that is cancelled while a shutdown sets it down is neither set down nor ended.",
    edits: [
      {
        file: "src/engine/desk.ts",
        find: 'return this.parts.parking() && this.lane.decided.live?.phase === "running";',
        replace: "return this.parts.parking();",
      },
      {
        file: "src/engine/shutdown.ts",
        find: 'if (left === "stopping" || left === "ending") {',
        replace: 'if (left === "ending") {',
      },
    ],
  },
];
