// Mistakes about acceptance, the queue, deliveries and who is next.
import { type Bug, bug } from "./bug.ts";

const DECIDE = "src/core/decide.ts";
const FOLLOW_UP = "src/core/follow-up.ts";
const DISPATCH = "src/engine/dispatch.ts";
const ENGINE = "src/engine/engine.ts";

/** Whoever is told of a change starts nothing if the change is the end of a run of this kind. */
const notAfter = (kind: "failed" | "cancelled"): Bug["edits"] => [
  {
    file: ENGINE,
    find: "this.#satisfy(lane);\n    this.dispatch.note(lane);\n  }",
    replace: `this.#satisfy(lane);\n    if (command.type !== "settle-turn" || command.end.outcome.kind !== "${kind}") this.dispatch.note(lane);\n  }`,
  },
  {
    file: ENGINE,
    find: "this.#limits.recorded(lane, events);\n    this.#changed(lane);",
    replace: `this.#limits.recorded(lane, events);\n    if (!events.some((event) => event.type === "run.settled" && event.outcome.kind === "${kind}")) this.#changed(lane);`,
  },
];

export const QUEUE_BUGS: readonly Bug[] = [
  {
    name: "queue-stranded-after-failure",
    about: "A run that fails returns without looking at the queue; what waits behind it stays there.",
    edits: notAfter("failed"),
  },
  {
    name: "queue-stranded-after-cancel",
    about: "A run that was cancelled returns without looking at the queue.",
    edits: notAfter("cancelled"),
  },
  bug(
    "steer-lost-at-the-end",
    "A steer that arrives in the last turn of a run is dropped with it.",
    FOLLOW_UP,
    'return [...events, ...lane.steers.map((run): Event => ({ type: "run.requeued", runId: run.id }))];',
    "return events;",
  ),
  bug(
    "steer-taken-twice",
    "A steer that was taken in stays in the inbox, and is taken in again.",
    FOLLOW_UP,
    '    { type: "run.settled", runId: run.id, outcome: { kind: "completed", into } },\n',
    "",
  ),
  bug(
    "steer-loses-its-identity",
    "A prompt that was folded into the live run ends like a run of its own.",
    FOLLOW_UP,
    'outcome: { kind: "completed", into } },',
    'outcome: { kind: "completed" } },',
  ),
  bug(
    "requeued-behind-later-ones",
    "A steer that finds no run any more goes to the end of the queue, behind prompts that came after it.",
    "src/core/lane.ts",
    "return insertAt(queue, after === -1 ? queue.length : after, run);",
    "return insertAt(queue, queue.length, run);",
  ),
  {
    name: "duplicate-key-runs-twice",
    about: "The second of two requests that race looks its key up before the first one is durable.",
    edits: [
      {
        file: DECIDE,
        find: "if (run.id === runId || (key !== undefined && run.key === key)) {",
        replace: "if (run.id === runId) {",
      },
      {
        file: ENGINE,
        find: "    await this.commit.quiet(lane);\n    const row = await this.store.run({ session: lane.id, key });",
        replace: "    const row = await this.store.run({ session: lane.id, key });",
      },
    ],
  },
  bug(
    "conflict-not-detected",
    "The same key with other content gets the first one's receipt.",
    DECIDE,
    'if (known.content !== content) return refused("conflict"',
    'if (known.content === null) return refused("conflict"',
  ),
  bug(
    "closed-session-accepts",
    "A prompt slips into a session after it was closed.",
    DECIDE,
    'return lane.phase === "closed" ? refused("closed"',
    'return lane.phase === "closed" && lane.live === undefined ? refused("closed"',
  ),
  bug(
    "busy-is-only-live",
    "A session with a queue and nothing live yet is taken for idle.",
    DECIDE,
    'command.delivery === "reject" && (lane.live !== undefined || waiting > 0)',
    'command.delivery === "reject" && lane.live !== undefined',
  ),
  bug(
    "edit-after-start",
    "A prompt is edited although its run has begun.",
    DECIDE,
    "if (lane.queue.some((run) => run.id === id)) return change();",
    "if (lane.queue.some((run) => run.id === id) || lane.live?.id === id) return change();",
  ),
  bug(
    "move-loses-an-entry",
    "An entry that is moved within the queue is taken out and not put back.",
    "src/core/lane.ts",
    "queue: insertAt(without(lane.queue, event.runId), event.index, find(lane.queue, event.runId)),",
    "queue: without(lane.queue, event.runId),",
  ),
  bug(
    "interrupt-at-the-tail",
    "An interrupt stops the live run and then waits behind the whole queue.",
    "src/core/lane.ts",
    'return delivery === "interrupt" ? "front" : "back";',
    'return "back";',
  ),
  {
    name: "refused-interrupt-stops",
    about: "An interrupt that the store then refuses has already stopped the live run.",
    edits: [
      {
        file: ENGINE,
        find: 'if (command.type.startsWith("cancel-") || command.type === "close") this.#satisfy(lane);',
        replace:
          'if (command.type.startsWith("cancel-") || command.type === "close" || command.type === "accept") this.#satisfy(lane);',
      },
      {
        file: "src/engine/drive.ts",
        find: 'if (effect.type === "stop" && canBeRefused(lane, effect.reason)) continue;\n',
        replace: "",
      },
    ],
  },
  bug(
    "last-come-first-served",
    "A lane that comes back with more work passes those that wait: one session starves the others.",
    DISPATCH,
    "for (const lane of this.#ready) {",
    "for (const lane of [...this.#ready].reverse()) {",
  ),
  bug(
    "slot-not-given-back",
    "The end of a run does not free its place among the live ones.",
    DISPATCH,
    '    lane.slot = "free";\n    this.#used -= 1;',
    '    lane.slot = "free";',
  ),
  bug(
    "two-live-runs",
    "A start looks at the queue only: two runs of one session are live at once.",
    DECIDE,
    "if (lane.live !== undefined || next === undefined) return nothing(undefined);",
    "if (next === undefined) return nothing(undefined);",
  ),
];
