// Mistakes about the calls a turn ends with: when they begin, which worker may begin them again, what they hold, what
// they cost.

import ts from "typescript";
import type { Call } from "../../src/core/model/call.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import type { SessionState } from "../../src/engine/log/session-state.ts";
import type { LiveCall } from "../../src/engine/work/live-call.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

export const CALL_BUGS: readonly Bug[] = [
  mistake(
    "end-calls-begun-before-durable",
    "The calls a turn ends with begin before their request is durable; after a crash no record of them exists.",
    (at) => {
      const keep = at.find(ts.isExpressionStatement, "a statement");
      const begin = inline(
        (call: LiveCall) => {
          call.phase = "live";
          call.begin();
        },
        keep.value().arg(0, 1),
      );
      return keep.become(`{ ${keep.text} ${begin}; }`);
    },
  ),
  mistake(
    "end-calls-asked-while-stopping",
    "A turn that ends in a run that is stopping still requests its calls; the provider rejects calls without a " +
      "result in every later request (claude-code#1894, and most loops at some time).",
    (at) => at.value().become(at.value().whenTrue().text),
  ),
  mistake(
    "end-calls-forgotten",
    "The handles of the calls a turn ends with are not kept, so no component can run the calls.",
    (at) => at.remove(),
  ),
  mistake("end-call-carried-out-twice", "A call is passed to its tool twice.", (at) =>
    at.after(`void ${at.value().value().target().arg(0, 1).value().text}.catch(() => undefined);`),
  ),
  mistake("survivors-not-begun-again", "The next worker never begins the calls that were kept across a crash.", (at) =>
    at.literal(0).become("9"),
  ),
  mistake(
    "unsafe-call-begun-again",
    "After a crash the next worker also repeats calls that are not idempotent: the mail is sent twice.",
    (at) => at.condition().become(inline((call: Call) => call.byEnd === true, at.param(1))),
  ),
  mistake(
    "safe-call-not-begun-again",
    "A call that may be repeated is recorded as lost after a crash, and the model gets an unknown outcome.",
    (at) => at.remove(),
  ),
  mistake(
    "next-turn-before-the-last-call",
    "The first of several results requests the next turn, and the model is asked before the other results exist.",
    (at) => at.condition().operand(1, 2).drop(),
  ),
  mistake(
    "next-turn-never-asked-for",
    "The last result is recorded and no turn is requested after it: the session stays busy without an end.",
    (at) => at.whenTrue().value().become(at.whenTrue().value().part(0, 2).value().text),
  ),
  mistake(
    "next-turn-beside-survivors",
    "A recovery requests the next turn while calls it must wait for still run; their last result requests it again.",
    (at) => at.value().become(at.value().whenFalse().text),
  ),
  mistake(
    "place-kept-by-the-abandoned",
    "An abandoned call keeps its slot, and the calls behind it wait for something that may never end (Crush counts " +
      "finished jobs against its limit).",
    (at) => at.remove(),
  ),
  mistake(
    "place-kept-by-the-cancelled",
    "A call that is cancelled while it waits for a slot stays in the queue for it; the slot it gets later is lost.",
    { queue: (at) => at.remove(), place: (at) => at.remove() },
  ),
  mistake("place-kept-by-the-finished", "A slot is not released when its call ends.", (at) => at.remove()),
  mistake("limit-left-behind", "The timer of a call's time limit keeps running after the call has ended.", (at) =>
    at.remove(),
  ),
  mistake("run-limit-left-behind", "The timer of a run's time limit outlives the run.", (at) => at.remove()),
  mistake("sibling-stopped-at-once", "The stop of one call also stops the calls beside it.", (at) =>
    at.value().become(inline((lane: Lane) => (lane.live?.live ?? []).map(({ id }) => id), at.param(0))),
  ),
  mistake(
    "hook-holds-up-the-stop",
    "A call that waits in a hook of the host ignores a stop (Harn: calls in pre-hooks cannot be targeted).",
    (at) => at.value().become(at.value().arg(0, 1).text),
  ),
  mistake(
    "place-holds-up-the-stop",
    "A call that waits for a slot ignores a stop (Crush: a lock that cannot be cancelled).",
    (at) => at.value().value().become(at.value().value().arg(0, 1).text),
  ),
  mistake("failed-hook-agrees", "A hook that throws counts as one that has no objection to the call.", (at) =>
    at.become("return undefined;"),
  ),
  mistake(
    "begins-in-the-tick-of-its-stop",
    "A call does not check for a stop that comes between the last thing it waited for and its beginning; made here.",
    { wait: (at) => at.remove(), check: (at) => at.remove() },
  ),
  mistake(
    "begins-behind-an-interrupt",
    "A call that waited begins although the stop of its run is in the log and only the store's answer is missing; " +
      "made here.",
    (at) => at.remove(),
  ),
  mistake("partial-lost-with-the-stop", "The partial result of a call is discarded when the call is stopped.", (at) =>
    at.value().part(1, 2).value().become("undefined"),
  ),
  mistake("changes-not-told", "The changes a call made before it failed are not recorded with its end.", (at) =>
    at.remove(),
  ),
  mistake(
    "usage-lost-with-the-stop",
    "A turn that is stopped is recorded without its cost (openai-agents-js#995, convex agent#293).",
    (at) => at.value().part(4, 5).remove(),
  ),
  mistake(
    "usage-lost-with-the-worker",
    "The known cost of a turn is not counted when the turn's worker has vanished.",
    (at) => at.value().become("{}"),
  ),
  mistake(
    "usage-of-the-last-turn-only",
    "The cost of a run is only the cost of its last turn: a budget is never used up.",
    (at) => at.value().whenFalse().become(at.value().whenFalse().arg(1, 2).text),
  ),
  mistake(
    "own-stop-not-recorded",
    "An agent that stops the run it works on is aborted, and no cancel is recorded: the run ends as failed.",
    (at) =>
      at.become(
        `${inline(
          (lane: SessionState) => {
            for (const work of lane.works) work.scope.cancel({ kind: "policy", note: "its own" });
          },
          at.value().value().arg(0, 2),
        )};`,
      ),
  ),
  mistake(
    "leaving-worker-takes-the-lease",
    "A request to a worker that has shut down makes it claim the session again, and the next worker waits; made here.",
    (at) => at.remove(),
  ),
  mistake(
    "calls-without-results",
    "The model gets a call that is still running without a result (opencode#10616: 311 of them in 44 sessions).",
    (at, other) => {
      const results = other("results").value().arg(0, 1).value().operand(0, 2).target();
      return at.condition().become(`${results.text}.size < ${at.condition().left().text}`);
    },
  ),
  mistake(
    "transcript-skips-events",
    "The cached transcript takes in new events while it is still being read, and never reads those in between.",
    (at) => at.condition().become(`${at.condition().left().text} <= ${at.condition().right().left().text}`),
  ),
  mistake(
    "transcript-stands-still",
    "The cached transcript is read once, and each later turn gets the transcript of the first.",
    {
      note: (at) => at.remove(),
      read: (at) => at.condition().become(`${at.condition().left().text} === 0`),
    },
  ),
];
