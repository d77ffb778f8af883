// Mistakes about approvals, questions, reminders and the inbox.
import { type Bug, bug } from "./bug.ts";

const FOLLOW_UP = "src/core/follow-up.ts";
const DECIDE = "src/core/decide.ts";
const DECIDE_RUN = "src/core/decide-run.ts";
const DECIDE_QUESTION = "src/core/decide-question.ts";
const LANE = "src/core/lane.ts";
const LIVE_CALL = "src/engine/live-call.ts";
const QUESTIONS = "src/engine/questions.ts";

export const TALK_BUGS: readonly Bug[] = [
  bug(
    "approval-outlives-its-run",
    "A stop of the run leaves its approvals open; whoever answers one later starts a stale call (PraisonAI#4598, goose#12132).",
    DECIDE_RUN,
    'case "ending":\n      return {\n        events: [{ type: "run.cancel_requested", runId: run.id, reason }, ...withdrawAll(run, reason)],',
    'case "ending":\n      return {\n        events: [{ type: "run.cancel_requested", runId: run.id, reason }],',
  ),
  bug(
    "approval-outlives-its-call",
    "A stop of one call leaves its approval open (deepchat#1881, agent-shell#88: the permission box stays).",
    DECIDE_RUN,
    "const stopped = [...events, ...withdraw(run, callId, stop.reason)];",
    "const stopped = [...events];",
  ),
  bug(
    "approval-outlives-its-turn",
    "What a turn has asked stays open when the turn has ended.",
    DECIDE_RUN,
    'const over = goesOn ? withdraw(run, id, { kind: "parent", id }) : withdrawAll(run, { kind: "parent", id });',
    "const over: readonly Event[] = [];",
  ),
  bug(
    "answered-twice",
    "A question stays open after its answer, and a second answer is recorded beside the first.",
    "src/core/run.ts",
    "questions: without(run.questions, event.questionId), live: judged(run, event)",
    "questions: run.questions, live: judged(run, event)",
  ),
  bug(
    "expired-means-yes",
    "Nobody has answered in time, and the call is carried out.",
    LIVE_CALL,
    'case "allowed":\n      return;\n    case "denied":',
    'case "allowed":\n    case "expired" as "allowed":\n      return;\n    case "denied":',
  ),
  bug(
    "denial-forgotten-by-recovery",
    "A call that was denied is begun by the next worker, which knows only that somebody has answered.",
    "src/core/run.ts",
    'allowed: ending.kind === "allowed" };',
    "allowed: true };",
  ),
  bug(
    "other-bytes-shown",
    "People are shown what the model asked for, and what the host has put in its place is carried out.",
    LIVE_CALL,
    "      input: this.input,\n      digest: this.desk.digest(JSON.stringify([this.name, this.input])),",
    "      input: (this.#request as CallRequest).input,\n      digest: this.desk.digest(JSON.stringify([this.name, (this.#request as CallRequest).input])),",
  ),
  bug(
    "digest-not-compared",
    "An approval of other bytes than those of the call is accepted.",
    "src/core/question.ts",
    "if (digest === undefined || digest === about.digest) return undefined;",
    "return undefined;",
  ),
  bug(
    "grant-covers-other-scopes",
    "An approval for the whole session covers every call, not only those of its kind.",
    DECIDE_QUESTION,
    "grants.includes(scope)",
    "grants.length > 0",
  ),
  {
    name: "grant-covers-other-sessions",
    about: "An approval for one session is remembered for all of them.",
    edits: [
      {
        file: DECIDE_QUESTION,
        find: "grants.includes(scope)",
        replace: "(GRANTED.has(scope) || grants.includes(scope))",
      },
      {
        file: DECIDE_QUESTION,
        find: "  if (refusal !== undefined) return { events: [], answer: refusal };\n",
        replace:
          '  if (refusal !== undefined) return { events: [], answer: refusal };\n  if (reply.kind === "allowed" && reply.remember !== undefined && question.about.kind === "approval") GRANTED.add(question.about.scope);\n',
      },
      {
        file: DECIDE_QUESTION,
        find: "const isCall = ",
        replace: "const GRANTED = new Set<string>();\nconst isCall = ",
      },
    ],
  },
  bug(
    "expired-but-open",
    "The deadline passes, and the question is neither closed nor does its asker hear of it.",
    DECIDE_QUESTION,
    'events: open ? [settled(id, { kind: "expired", limitMs })] : []',
    "events: open ? [] : []",
  ),
  bug(
    "deadline-left-behind",
    "The timer of a deadline is left running when the question has been answered.",
    QUESTIONS,
    "      takeBack();\n      this.#waiting.delete(id);",
    "      this.#waiting.delete(id);",
  ),
  bug(
    "one-asker-at-a-time",
    "There is one place for whoever waits for an answer: a second question replaces the first one's (Crush).",
    QUESTIONS,
    "return await scope.until(new Promise<Ending>((resolve) => this.#waiting.set(id, resolve)));",
    "this.#waiting.clear();\n      return await scope.until(new Promise<Ending>((resolve) => this.#waiting.set(id, resolve)));",
  ),
  bug(
    "answer-to-the-wrong-asker",
    "An answer goes to whoever asked last, without looking at the name of the question (Crush).",
    QUESTIONS,
    "const resolve = this.#waiting.get(event.questionId);",
    "const resolve = [...this.#waiting.values()].at(-1);",
  ),
  bug(
    "asked-again-after-restart",
    "After a restart people are asked again, and the question they have seen cannot be answered any more.",
    DECIDE_QUESTION,
    'if (open !== undefined) return { events: [], answer: { kind: "asked", questionId: open.id } };',
    "",
  ),
  bug(
    "question-of-a-vanished-asker",
    "A question stays open after a crash, although whoever would hear the answer is gone.",
    DECIDE_RUN,
    '    ...moot.flatMap(({ id, owner }) => withdrawn(run, id, { kind: "parent", id: owner })),\n',
    "",
  ),
  bug(
    "withdrawn-approval-lets-the-call-wait",
    "An approval is taken back, and the call that waits for it is not stopped (Harn: calls that wait for one cannot be targeted).",
    DECIDE_QUESTION,
    'question.about.kind === "approval" && isCall(owner)',
    'question.about.kind === "approval" && !isCall(owner)',
  ),
  bug(
    "stopped-before-it-is-known",
    "A call is stopped for an approval that is taken back, before it is known whether that had been answered; made here.",
    "src/engine/drive.ts",
    "if (!onlyWaits(lane, work)) this.stop(lane, work, effect.reason);",
    "this.stop(lane, work, effect.reason);",
  ),
  bug(
    "no-reminder-by-question",
    "A call that is stopped by way of its approval is not reminded of: one of the ways in was forgotten (Harn).",
    DECIDE_QUESTION,
    "{ reason, remind: true }",
    "{ reason, remind: false }",
  ),
  bug(
    "no-reminder-by-key",
    "A cancel that carries an idempotency key drops the wish for a reminder on its way (Harn: two of three ways).",
    "src/engine/cancels.ts",
    '{ type: "cancel-call", callId, reason, remind }',
    '{ type: "cancel-call", callId, reason, remind: remind && key === undefined }',
  ),
  bug(
    "no-reminder-after-a-crash",
    "The worker vanishes while a call is being stopped, and the reminder with it.",
    DECIDE_RUN,
    "return settledCall(run, call, { callId: call.id, outcome: denied ? DENIED : outcome });",
    'return settledCall(run, call, { callId: call.id, outcome: denied ? DENIED : outcome }).filter((event) => event.type !== "inbox.added");',
  ),
  bug(
    "reminded-of-what-finished",
    "The model is reminded that a call was stopped which had finished before (Harn: told cancelled, and given the result).",
    DECIDE_RUN,
    'if (call.phase === "stopping" && call.remind && stopped) {',
    'if (call.phase === "stopping" && call.remind) {',
  ),
  bug(
    "reminded-unasked",
    "The model is reminded although whoever stopped the call did not want that.",
    DECIDE_RUN,
    'if (call.phase === "stopping" && call.remind && stopped) {',
    'if (call.phase === "stopping" && stopped) {',
  ),
  bug(
    "heard-at-every-turn",
    "What was in the inbox stays there, and the model hears it at every turn (Crush#3109: results repeated after a cancel).",
    LANE,
    "return { ...lane, head, inbox: left(lane.inbox, (one) => isHeld(one, lane.live?.live ?? [])) };",
    "return { ...lane, head };",
  ),
  bug(
    "inbox-lost-with-the-run",
    "The end of a run empties the inbox of its session.",
    LANE,
    "if (lane.live?.id === id) return { ...lane, live: undefined };",
    "if (lane.live?.id === id) return { ...lane, live: undefined, inbox: NO_ITEMS };",
  ),
  bug(
    "inbox-lost-at-compaction",
    "Summing up the conversation drops what the model has not heard yet.",
    LANE,
    'case "session.compacted":\n      return { ...lane, head };',
    'case "session.compacted":\n      return { ...lane, head, inbox: NO_ITEMS };',
  ),
  bug(
    "inbox-not-read-at-the-start",
    "The first turn of a run does not look into the inbox (Harn: stored, and nobody reads it).",
    DECIDE,
    "return { events: follow(lane, events), answer: next.id };",
    "return { events, answer: next.id };",
  ),
  bug(
    "own-reminder-missed",
    "The reminder that the last call's end brings is not in the turn that follows from it.",
    FOLLOW_UP,
    "const items = inboxAfter(lane, before);",
    "const items = takeable(lane.inbox, lane.live?.live ?? []);",
  ),
  bug(
    "steers-pass-the-inbox",
    "A turn that takes steers in takes the inbox for taken, too, and drops it.",
    FOLLOW_UP,
    "  ...takeItems(items, id),\n  ...takeSteers(lane, runOf(id), id),",
    "  ...(lane.steers.length > 0 ? [] : takeItems(items, id)),\n  ...takeSteers(lane, runOf(id), id),",
  ),
];
