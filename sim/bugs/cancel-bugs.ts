// Mistakes about what a cancel covers, and what its receipt says.
import ts from "typescript";
import type { Stop } from "../../src/core/model/call.ts";
import type { CancelReason } from "../../src/core/model/cancel.ts";
import type { Accept } from "../../src/core/model/command.ts";
import type { Event } from "../../src/core/model/event.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import type { Run } from "../../src/core/model/run.ts";
import type { Pending, SessionState } from "../../src/engine/log/session-state.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** Where a mistake keeps, beside the state, which session was cancelled and why. */
type Remembering = { cancelled?: Map<string, CancelReason> };

export const CANCEL_BUGS: readonly Bug[] = [
  mistake("memo-not-honoured", "A prompt that was cancelled before it arrived is carried out when it does.", (at) =>
    at.condition().become("false"),
  ),
  mistake("memo-not-durable", "The cancel of a prompt that has not arrived is answered before it is durable.", (at) => {
    const count = at.condition().operand(0, 2);
    return count.become(count.operand(0, 2).text);
  }),
  mistake(
    "cancel-consumed-by-first",
    "A pending cancel is one boolean: the first of two accepted prompts uses it up.",
    (at) => at.value().after(".slice(0, 1)"),
  ),
  mistake(
    "retries-starve-the-loop",
    "Promises of stopped work settle without a turn of the event loop, so an agent that tries again blocks everything.",
    (at) => at.value().operand(0, 2).drop(),
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
    (at) => at.value().operand(2, 3).drop(),
  ),
  mistake("stop-waits-for-the-disk", "The abort is fired when the cancel is durable, not when it is decided.", (at) =>
    at.remove(),
  ),
  mistake("grace-without-end", "Work that does not stop is waited for without a limit.", (at) =>
    at.value().become(at.value().right().arg(0, 2).text),
  ),
  mistake("abandoned-not-named", "A run settles as cancelled and hides that some of its work is still running.", (at) =>
    at.value().arg(1, 3).become(at.value().arg(1, 3).whenFalse().text),
  ),
  mistake("begun-not-noted", "A call that is stopped is recorded as not begun, although it was carried out.", (at) =>
    at.remove(),
  ),
  mistake("unbegun-not-told", "A call that was stopped before it began is recorded as one that may have begun.", (at) =>
    at.value().become("false"),
  ),
  mistake("error-of-a-stop-dropped", "What work throws while it is being stopped is recorded nowhere.", (at) =>
    at.condition().become("true"),
  ),
  mistake(
    "later-cancel-sorted-first",
    "While a session is loaded, its requests are not kept in order: a cancel covers a prompt that came after it.",
    (at) =>
      at.before(
        `${inline((lane: SessionState) => {
          const isAccept = ({ command }: Pending): number => Number(command?.type === "accept");
          lane.received.sort((one, two) => isAccept(two) - isAccept(one));
        }, at.param(0))};\n`,
      ),
  ),
];
