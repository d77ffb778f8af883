// Mistakes between the record and the world: what begins, what ends, and who hears of it when.
import { type Bug, bug } from "./bug.ts";

const COMMIT = "src/engine/commit.ts";
const DRIVE = "src/engine/drive.ts";
const DECIDE_RUN = "src/core/decide-run.ts";

export const WORLD_BUGS: readonly Bug[] = [
  bug(
    "two-outcomes",
    "The cancel path and the end of the stream both write the outcome.",
    DECIDE_RUN,
    'return [...before, runSettled(run, end.outcome, "turn")];',
    'return [...before, runSettled(run, end.outcome, "turn"), runSettled(run, end.outcome, "turn")];',
  ),
  bug(
    "waiter-released-by-another",
    "Whoever waits for A is released when B ends.",
    "src/engine/outcomes.ts",
    "const waiting = this.#waiting.get(event.runId);\n      this.#waiting.delete(event.runId);",
    "const id = this.#waiting.has(event.runId) ? event.runId : [...this.#waiting.keys()][0] ?? event.runId;\n      const waiting = this.#waiting.get(id);\n      this.#waiting.delete(id);",
  ),
  bug(
    "answered-before-durable",
    "A receipt is given when the batch is sent, not when it has arrived.",
    COMMIT,
    "    lane.sent = lane.decided;\n",
    "    lane.sent = lane.decided;\n    for (const entry of lane.flying) entry.resolve(entry.answer);\n",
  ),
  bug(
    "told-before-durable",
    "Waiters and followers hear of an outcome before it is in the store.",
    COMMIT,
    "    const at = this.#clock.now();\n    lane.landing = ",
    "    const at = this.#clock.now();\n    this.#then.recorded(lane, events.map((event, index): Recorded => ({ ...event, seq: lane.durable.head + 1 + index, at })));\n    lane.landing = ",
  ),
  bug(
    "begun-before-durable",
    "A call begins before its request is in the log; after a crash nobody knows of it.",
    DRIVE,
    "&& !(this.#world.begins() && begins(lane, effect.work))) continue;",
    "&& !this.#world.begins()) continue;",
  ),
  bug(
    "cleanup-removes-another",
    "The cleanup of an old entry removes whatever stands in its place.",
    DRIVE,
    "const at = lane.works.indexOf(work);",
    "const at = lane.works.length - 1;",
  ),
  bug(
    "begun-again",
    "Work that is over is forgotten before its end is recorded, so the state has it begun again.",
    DRIVE,
    "    this.#noteStill(lane);\n    return counts;",
    "    this.forget(lane, work);\n    return counts;",
  ),
  {
    name: "late-result-applied",
    about: "The result of a call that was given up is recorded after all.",
    edits: [
      {
        file: DRIVE,
        find: 'const counts = work.phase === "live" || work.phase === "stopping";',
        replace: "const counts = true;",
      },
      {
        file: DECIDE_RUN,
        find: 'if (call === undefined || run.phase === "parked") return [];',
        replace: 'if (call === undefined) return [{ type: "call.settled", runId: run.id, ...end }];',
      },
    ],
  },
  bug(
    "late-result-unnoticed",
    "The result of work that was given up disappears without a word.",
    "src/engine/desk.ts",
    'this.parts.notify({ type: "late", runId: this.begun.id, work: work.name, outcome });',
    "return;",
  ),
  bug(
    "late-result-told",
    "A turn is told the late result of a call that was given up, and recorded as such.",
    "src/engine/live-call.ts",
    "if (recorded !== undefined) this.#settle(recorded, outcome, result);",
    "this.#settle(recorded ?? Promise.resolve(), outcome, result);",
  ),
  bug(
    "event-after-the-outcome",
    "Text that arrives late is recorded behind the outcome of its run.",
    "src/core/decide.ts",
    'events: lane.live?.turn === id ? [{ type: "turn.extended", runId: lane.live.id, turnId: id, ...rest }] : [],',
    'events: lane.live !== undefined && lane.live.turn !== undefined ? [{ type: "turn.extended", runId: lane.live.id, turnId: id, ...rest }] : [],',
  ),
  bug(
    "finished-work-called-cancelled",
    "Work that finished although it was asked to stop is recorded as cancelled.",
    "src/engine/scope.ts",
    'return { kind: "completed", value: await work(this) };',
    'const value = await work(this);\n      return this.#reason === undefined ? { kind: "completed", value } : { kind: "cancelled", reason: this.#reason };',
  ),
  bug(
    "cancel-is-a-failure",
    "A run that was cancelled ends as its work ended: by the type of an error, not by what was recorded.",
    DECIDE_RUN,
    "return cancelled(run.reason, didNotStop(last) ? [...run.abandoned, name] : run.abandoned);",
    'return last.kind === "cancelled" ? cancelled(run.reason, didNotStop(last) ? [...run.abandoned, name] : run.abandoned) : last;',
  ),
  bug(
    "next-turn-after-the-cancel",
    "A turn that ends while its run is being stopped still asks for the next one.",
    DECIDE_RUN,
    "if (goesOn) return [...before, nextTurn(run)];",
    'if (end.next === "turn") return [...before, nextTurn(run)];',
  ),
  bug(
    "run-ends-before-its-calls",
    "A run settles while calls of it are still going on.",
    DECIDE_RUN,
    "if (run.live.length > 0 || asked.length > 0) return",
    'if ((run.live.length > 0 && end.next === "turn") || asked.length > 0) return',
  ),
  bug(
    "follower-misses-events",
    "A follower that was slow is given the latest event, and not those between.",
    "src/engine/feed.ts",
    "return first.seq > after + 1 ? undefined : this.#recent.slice(after + 1 - first.seq);",
    "return first.seq > after + 1 ? undefined : this.#recent.slice(after + 1 - first.seq).slice(-1);",
  ),
  bug(
    "gap-not-announced",
    "A follower below what is kept is silently moved on.",
    "src/engine/follow.ts",
    'yield [{ type: "gap", from: cursor + 1, to: gapTo }];',
    "",
  ),
  bug(
    "call-of-an-ended-turn",
    "A turn that has ended gets a call through, which then belongs to the next one.",
    "src/engine/live-turn.ts",
    'if (this.work.phase === "ended")',
    'if (this.work.phase === "waiting")',
  ),
];
