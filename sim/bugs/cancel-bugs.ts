// Mistakes about what a cancel covers, and what its asker is told.
import { type Bug, bug } from "./bug.ts";

const DECIDE = "src/core/decide.ts";
const DECIDE_RUN = "src/core/decide-run.ts";

export const CANCEL_BUGS: readonly Bug[] = [
  bug(
    "cancel-consumed-by-first",
    "A pending cancel is one boolean: the first of two accepted prompts uses it up.",
    DECIDE,
    "const waiting = [...lane.queue, ...lane.steers];\n  const fresh",
    "const waiting = [...lane.queue, ...lane.steers].slice(0, 1);\n  const fresh",
  ),
  {
    name: "idle-cancel-remembered",
    about: "A cancel of an idle session leaves a mark, and the next prompt pays for it.",
    edits: [
      {
        file: DECIDE,
        find: 'if (runs.length === 0 && behind.covered.length === 0) return nothing({ kind: "idle", runs: [] });',
        replace:
          'if (runs.length === 0 && behind.covered.length === 0) {\n    MARKED.add(lane.id);\n    return nothing({ kind: "idle", runs: [] });\n  }',
      },
      {
        file: DECIDE,
        find: 'const events: Event[] = [{ type: "run.accepted", runId, prompt, delivery, ...named }];',
        replace:
          'const events: Event[] = [{ type: "run.accepted", runId, prompt, delivery, ...named }];\n  if (MARKED.delete(lane.id)) events.push(withdrawn(command.runId, { kind: "user" }));',
      },
      {
        file: DECIDE,
        find: "const KEY_TAKEN: Refused",
        replace: "const MARKED = new Set<string>();\nconst KEY_TAKEN: Refused",
      },
    ],
  },
  {
    name: "later-prompt-poisoned",
    about: "The mark of a cancel outlives it, and covers a prompt that was accepted after it.",
    edits: [
      {
        file: DECIDE,
        find: "const waiting = [...lane.queue, ...lane.steers];\n  const fresh",
        replace: "MARKED.set(lane.id, reason);\n  const waiting = [...lane.queue, ...lane.steers];\n  const fresh",
      },
      {
        file: DECIDE,
        find: 'const events: Event[] = [{ type: "run.accepted", runId, prompt, delivery, ...named }];',
        replace:
          'const events: Event[] = [{ type: "run.accepted", runId, prompt, delivery, ...named }];\n  const mark = MARKED.get(lane.id);\n  if (mark !== undefined && lane.live?.phase === "stopping") events.push(withdrawn(command.runId, mark));',
      },
      {
        file: DECIDE,
        find: "const KEY_TAKEN: Refused",
        replace: "const MARKED = new Map<string, CancelReason>();\nconst KEY_TAKEN: Refused",
      },
    ],
  },
  bug(
    "cancel-lost-before-start",
    "A cancel by id between acceptance and start is answered and forgotten.",
    DECIDE,
    'return { events: [withdrawn(runId, reason)], answer: { kind: "withdrawn" } };',
    'return { events: [], answer: { kind: "withdrawn" } };',
  ),
  bug(
    "withdrawn-without-outcome",
    "Queued prompts dropped by a cancel of the session get no outcome of their own.",
    DECIDE,
    "[...(live?.events ?? []), ...waiting.map((run) => withdrawn(run.id, reason))]",
    "[...(live?.events ?? [])]",
  ),
  bug(
    "stale-id-hits-the-next",
    "A cancel by the id of a run that is over stops whatever is live now.",
    DECIDE,
    "if (lane.live?.id === runId) {\n    const decided = cancelRun",
    "if (lane.live !== undefined) {\n    const decided = cancelRun",
  ),
  bug(
    "second-reason-overwrites",
    "A second cancel replaces the reason of the first.",
    DECIDE_RUN,
    'case "stopping": // The first reason wins.\n      return { events: [],',
    'case "stopping": // The first reason wins.\n      return { events: [{ type: "run.cancel_requested", runId: run.id, reason }],',
  ),
  bug(
    "call-cancel-stops-the-run",
    "Cancelling one call stops the run it belongs to.",
    DECIDE_RUN,
    "const { events, answer } = cancelCall(run.id, call, stop, next);",
    "const { events, answer } = cancelRun(run, stop.reason, next);",
  ),
  bug(
    "call-cancel-hits-a-sibling",
    "Cancelling one call stops the first one there is.",
    DECIDE_RUN,
    "const call = run.live.find((one) => one.id === callId);\n  if (call === undefined) return { events: [], answer",
    "const call = run.live[0];\n  if (call === undefined) return { events: [], answer",
  ),
  bug(
    "cancel-hidden-by-an-interrupt",
    "A cancel that is decided behind an interrupt changes nothing in the state, so what began meanwhile is not told.",
    "src/engine/engine.ts",
    'if (run?.phase === "stopping" && canBeRefused(lane, run.reason)) this.cancel.carryOut(lane, command);\n',
    "\n",
  ),
  bug(
    "stop-waits-for-the-disk",
    "The abort is fired when the cancel is durable, not when it is decided.",
    "src/engine/engine.ts",
    'if (command.type.startsWith("cancel-") || command.type === "close") this.#satisfy(lane);\n',
    "",
  ),
  bug(
    "grace-without-end",
    "Work that does not stop is waited for, for ever.",
    "src/engine/drive.ts",
    "work.takeBackGrace = this.#clock.after(this.#graceFor(lane, work), () => this.#abandon(lane, work, reason));",
    "this.#graceFor(lane, work);",
  ),
  bug(
    "abandoned-not-named",
    "A run settles as cancelled and hides that some of its work goes on.",
    DECIDE_RUN,
    "return cancelled(run.reason, didNotStop(last) ? [...run.abandoned, name] : run.abandoned);",
    "return cancelled(run.reason, run.abandoned);",
  ),
  bug(
    "later-cancel-sorted-first",
    "While a session is loaded, what is asked of it is not kept in order: a cancel covers a prompt that came after it.",
    "src/engine/lanes.ts",
    "    lane.mailbox.push(...waiting);\n",
    '    lane.mailbox.push(...waiting.toSorted((one, two) => Number(two.command.type === "accept") - Number(one.command.type === "accept")));\n',
  ),
];
