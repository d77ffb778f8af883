// Mistakes about what a cancel covers, and what its receipt says.
import ts from "typescript";
import type { Stop } from "../../src/core/call.ts";
import type { CancelReason } from "../../src/core/cancel.ts";
import type { Accept } from "../../src/core/command.ts";
import type { Event } from "../../src/core/event.ts";
import type { Lane } from "../../src/core/lane.ts";
import type { Run } from "../../src/core/run.ts";
import type { Entry, LiveLane } from "../../src/engine/live-lane.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** Where a mistake keeps, beside the state, which session was cancelled and why. */
type Remembering = { cancelled?: Map<string, CancelReason> };

export const CANCEL_BUGS: readonly Bug[] = [
  mistake(
    "cancel-consumed-by-first",
    "A pending cancel is one boolean: the first of two accepted prompts uses it up.",
    (at) => at.value().after(".slice(0, 1)"),
  ),
  mistake("idle-cancel-remembered", "A cancel of an idle session leaves a mark, and the next prompt pays for it.", {
    cancel: (at) => [
      at.whenTrue().before(
        `{ ${inline((lane: Lane) => {
          const known = globalThis as Remembering;
          known.cancelled ??= new Map();
          known.cancelled.set(lane.id, { kind: "user" });
        }, at.param(0))}; `,
      ),
      at.whenTrue().after(" }"),
    ],
    accept: (at) =>
      at.after(
        `${inline(
          (lane: Lane, { runId }: Accept, events: Event[]) => {
            const { cancelled } = globalThis as Remembering;
            if (cancelled?.delete(lane.id) !== true) return;
            events.push({ type: "run.settled", runId, outcome: { kind: "cancelled", reason: { kind: "user" } } });
          },
          at.param(0),
          at.param(1),
          at.name(),
        )};`,
      ),
  }),
  mistake(
    "later-prompt-poisoned",
    "The mark of a cancel outlives it, and covers a prompt that was accepted after it.",
    {
      cancel: (at) =>
        at.before(
          `${inline(
            (lane: Lane, reason: CancelReason) => {
              const known = globalThis as Remembering;
              known.cancelled ??= new Map();
              known.cancelled.set(lane.id, reason);
            },
            at.param(0),
            at.param(1),
          )};\n`,
        ),
      accept: (at) =>
        at.after(
          `${inline(
            (lane: Lane, { runId }: Accept, events: Event[]) => {
              const reason = (globalThis as Remembering).cancelled?.get(lane.id);
              if (reason === undefined || lane.live?.phase !== "stopping") return;
              events.push({ type: "run.settled", runId, outcome: { kind: "cancelled", reason } });
            },
            at.param(0),
            at.param(1),
            at.name(),
          )};`,
        ),
    },
  ),
  mistake("cancel-lost-before-start", "A cancel by id between acceptance and start is answered and forgotten.", (at) =>
    at.find(ts.isArrayLiteralExpression, "a list").become("[]"),
  ),
  mistake(
    "withdrawn-without-outcome",
    "Queued prompts dropped by a cancel of the session get no outcome of their own.",
    (at) => at.value().arg(1, 2).part(1, 2).remove(),
  ),
  mistake("stale-id-hits-the-next", "A cancel by the id of a run that is over stops whatever is live now.", (at) =>
    at.condition().become(inline((lane: Lane) => lane.live !== undefined, at.param(0))),
  ),
  mistake("second-reason-overwrites", "A second cancel replaces the reason of the first.", (at) =>
    at
      .find((node) => ts.isArrayLiteralExpression(node) && node.elements.length === 0, "an empty list")
      .become(
        inline(
          (run: Run, reason: CancelReason): readonly Event[] => [
            { type: "run.cancel_requested", runId: run.id, reason },
          ],
          at.param(0),
          at.param(1),
        ),
      ),
  ),
  mistake("call-cancel-stops-the-run", "Cancelling one call stops the run it belongs to.", (at, other) =>
    at
      .value()
      .become(
        `${other("run").name()}(${at.param(0)}, ${inline(({ reason }: Stop) => reason, at.param(2))}, ${at.param(3)})`,
      ),
  ),
  mistake("call-cancel-hits-a-sibling", "Cancelling one call stops the first one there is.", (at) =>
    at.value().become(`${at.value().target().text}[0]`),
  ),
  mistake(
    "cancel-hidden-by-an-interrupt",
    "A cancel decided behind an interrupt changes nothing in the state, so what began meanwhile is not stopped.",
    (at) => at.value().operand(1, 2).drop(),
  ),
  mistake("stop-waits-for-the-disk", "The abort is fired when the cancel is durable, not when it is decided.", (at) =>
    at.remove(),
  ),
  mistake("grace-without-end", "Work that does not stop is waited for without a limit.", (at) =>
    at.value().become(at.value().right().arg(0, 2).text),
  ),
  mistake("abandoned-not-named", "A run settles as cancelled and hides that some of its work is still running.", (at) =>
    at.value().arg(1, 2).become(at.value().arg(1, 2).whenFalse().text),
  ),
  mistake(
    "later-cancel-sorted-first",
    "While a session is loaded, its requests are not kept in order: a cancel covers a prompt that came after it.",
    (at) =>
      at.before(
        `${inline((lane: LiveLane) => {
          const isAccept = ({ command }: Entry): number => Number(command?.type === "accept");
          lane.received.sort((one, two) => isAccept(two) - isAccept(one));
        }, at.param(0))};\n`,
      ),
  ),
];
