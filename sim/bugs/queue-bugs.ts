// Mistakes about acceptance, the queue, deliveries and which run is next.
import type { Command } from "../../src/core/model/command.ts";
import type { Event } from "../../src/core/model/event.ts";
import type { RunId } from "../../src/core/model/ids.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** A change of the state starts nothing if it is the end of a run of this kind. */
const notAfter = (kind: "failed" | "cancelled"): Bug["edits"] => ({
  decided: (at) => {
    const isOther = inline(
      (command: Command, end: string) => command.type !== "settle-turn" || command.end.outcome.kind !== end,
      at.param(1),
      JSON.stringify(kind),
    );
    return at.before(`if (${isOther}) `);
  },
  recorded: (at) => {
    const isOther = inline(
      (events: readonly Event[], end: string) =>
        !events.some((event) => event.type === "run.settled" && event.outcome.kind === end),
      at.param(1),
      JSON.stringify(kind),
    );
    return at.before(`if (${isOther}) `);
  },
});

export const QUEUE_BUGS: readonly Bug[] = [
  mistake(
    "queue-stranded-after-failure",
    "A run that fails returns without looking at the queue; what waits behind it stays there.",
    notAfter("failed"),
  ),
  mistake(
    "queue-stranded-after-cancel",
    "A run that was cancelled returns without looking at the queue.",
    notAfter("cancelled"),
  ),
  mistake("steer-lost-at-the-end", "A steer that arrives in the last turn of a run is dropped with it.", (at) =>
    at.value().become(at.value().part(0, 2).value().text),
  ),
  mistake("steer-taken-twice", "A steer that was taken in stays in the inbox, and is taken in again.", (at) =>
    at.remove(),
  ),
  mistake("steer-loses-its-identity", "A prompt that was folded into the live run ends like a separate run.", (at) =>
    at.arg(1, 2).part(1, 2).remove(),
  ),
  mistake(
    "requeued-behind-later-ones",
    "A steer that finds no live run any more goes to the end of the queue, behind prompts that came after it.",
    (at) => at.value().arg(1, 3).become(at.value().arg(1, 3).whenTrue().text),
  ),
  mistake(
    "duplicate-key-runs-twice",
    "The second of two requests that race looks its key up before the first one is durable.",
    {
      decided: (at) => at.condition().operand(1, 2).drop(),
      "looked-up": (at) => at.condition().become("true"),
    },
  ),
  mistake("conflict-not-detected", "The same key with different content gets the receipt of the first prompt.", (at) =>
    at.condition().become(`${at.condition().left().text} === null`),
  ),
  mistake("closed-session-accepts", "A prompt slips into a session after it was closed.", (at) =>
    at
      .value()
      .condition()
      .after(` && ${inline((lane: Lane) => lane.live === undefined, at.param(0))}`),
  ),
  mistake("busy-is-only-live", "A session with a queue and nothing live yet is taken for idle.", (at) =>
    at.condition().operand(1, 2).operand(1, 2).drop(),
  ),
  mistake("edit-after-start", "A prompt is edited although its run has begun.", (at) =>
    at.condition().after(` || ${inline((lane: Lane, id: RunId) => lane.live?.id === id, at.param(0), at.param(1))}`),
  ),
  mistake("move-loses-an-entry", "An entry that is moved within the queue is taken out and not put back.", (at) => {
    const queue = at.part(0, 1).value().part(2, 3).value();
    return queue.become(queue.arg(0, 3).text);
  }),
  mistake("interrupt-at-the-tail", "An interrupt stops the live run and then waits behind the whole queue.", (at) =>
    at.value().become(at.value().whenFalse().text),
  ),
  mistake(
    "refused-interrupt-stops",
    "An interrupt that the store then refuses has already stopped the live run.",
    (at) => at.remove(),
  ),
  mistake(
    "key-of-a-withdrawn-prompt-forgotten",
    "A prompt is withdrawn and sent again before either is durable: its key is not known, and it is accepted twice.",
    (at) => at.condition().become("true"),
  ),
  mistake(
    "last-come-first-served",
    "A lane that comes back with more work passes those that wait: one session starves the others.",
    (at) => at.value().become(`[...${at.value().text}].reverse()`),
  ),
  mistake("slot-not-given-back", "The end of a run does not free its place among the live ones.", (at) => at.remove()),
  mistake("two-live-runs", "A start looks at the queue only: two runs of one session are live at once.", (at) =>
    at.condition().operand(0, 2).drop(),
  ),
];
