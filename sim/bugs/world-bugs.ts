// Mistakes between the record and the world: what begins, what ends, and when waiters and followers learn of it.
import ts from "typescript";
import type { CancelReason, Outcome } from "../../src/core/model/cancel.ts";
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { Run } from "../../src/core/model/run.ts";
import type { CallEnd, TurnEnd } from "../../src/core/policy/decide-run.ts";
import type { CommitListener } from "../../src/engine/log/commit-listener.ts";
import type { Flight, SessionState } from "../../src/engine/log/session-state.ts";
import type { Ended } from "../../src/engine/work/scope.ts";
import { type Edit, mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** In a call of a map by the id of a run: if there is no waiter for it, the id of another run with one. */
const ofAnother: Edit = (at) => {
  const [map, id] = [at.value().target(), at.value().arg(0, 1)];
  return id.become(
    inline(
      (waiting: ReadonlyMap<string, unknown>, ended: string) =>
        waiting.has(ended) || !ended.startsWith("run_")
          ? ended
          : ([...waiting.keys()].find((one) => one.startsWith("run_")) ?? ended),
      map,
      id,
    ),
  );
};

/** The facts that are being sent become known as if the store had them. */
const toldTooEarly: Edit = (at, other) => {
  const batch = at.value().right().target().arg(0, 1);
  const tell = inline(
    (then: CommitListener, lane: SessionState, { events, at: now }: Flight) => {
      const facts = events.map((event, index): Recorded => ({ ...event, seq: lane.durable.head + 1 + index, at: now }));
      then.recorded(lane, facts);
    },
    `this.${other("then").name()}`,
    batch.arg(0, 2),
    batch.arg(1, 2),
  );
  return at.before(`${tell};\n`);
};

const ASKS_FOR_A_TURN = (end: TurnEnd): boolean => end.next === "turn";

export const WORLD_BUGS: readonly Bug[] = [
  mistake("two-outcomes", "The cancel path and the end of the stream both write the outcome.", (at) =>
    at
      .value()
      .part(1, 2)
      .after(`, ${at.value().part(1, 2).text}`),
  ),
  mistake(
    "touched-work-overlooked",
    "A call that a turn makes is recorded, and does not begin until something else changes its run.",
    (at) => at.value().become("[]"),
  ),
  mistake("waiter-released-by-another", "A caller that waits for run A is released when run B ends.", {
    find: ofAnother,
    forget: ofAnother,
  }),
  mistake(
    "answered-before-durable",
    "A receipt is given when the batch is sent to the store, not when it has arrived.",
    (at) =>
      at.after(
        `${inline((lane: SessionState) => {
          for (const entry of lane.flight?.entries ?? []) entry.resolve(entry.answer);
        }, at.param(0))};`,
      ),
  ),
  mistake("told-before-durable", "Waiters and followers learn of an outcome before it is in the store.", toldTooEarly),
  mistake(
    "begun-before-durable",
    "A call begins before its request is in the log; after a crash no record shows it.",
    (at) => at.condition().operand(1, 2).find(ts.isParenthesizedExpression, "parentheses").operand(1, 2).drop(),
  ),
  mistake("cleanup-removes-another", "The cleanup of an old entry removes whatever stands in its place.", (at) =>
    at.value().become(`${at.value().target().text}.length - 1`),
  ),
  mistake(
    "begun-again",
    "Work that is over is forgotten before its end is recorded, so it begins again because the state demands it.",
    (at, other) => at.value().become(`this.${other("forget").name()}(${at.param(0)}, ${at.param(1)})`),
  ),
  mistake("late-result-applied", "The result of a call that was given up is recorded after all.", {
    ended: (at) => at.value().become("true"),
    recorded: (at) => [
      at.condition().operand(1, 2).drop(),
      at
        .whenTrue()
        .value()
        .become(
          inline(
            (run: Run, end: CallEnd): readonly Event[] => [{ type: "call.settled", runId: run.id, ...end }],
            at.param(0),
            at.param(1),
          ),
        ),
    ],
  }),
  mistake("late-result-unnoticed", "The result of work that was given up disappears without a notice.", (at) =>
    at.remove(),
  ),
  mistake(
    "late-result-told",
    "A turn receives the late result of a call that was given up and is recorded as such.",
    (at) => {
      const recorded = at.whenTrue().value().arg(0, 1);
      return [at.condition().become("true"), recorded.become(`counts ? ${recorded.text} : Promise.resolve(end)`)];
    },
  ),
  mistake(
    "finished-work-called-cancelled",
    "Work that finished although it was asked to stop is recorded as cancelled.",
    (at, other) =>
      at
        .value()
        .become(
          inline(
            (value: unknown, reason: CancelReason | undefined): Ended<unknown> =>
              reason === undefined ? { kind: "completed", value } : { kind: "cancelled", reason },
            at.value().part(1, 2).value(),
            `this.${other("reason").name()}`,
          ),
        ),
  ),
  mistake(
    "cancel-is-a-failure",
    "A run that was cancelled ends as its work ended: by the type of an error, not by what was recorded.",
    (at) => {
      const isCancelled = inline((last: Outcome) => last.kind === "cancelled", at.param(1));
      return at.value().become(`${isCancelled} ? ${at.value().text} : ${at.param(1)}`);
    },
  ),
  mistake(
    "next-turn-after-the-cancel",
    "A turn that ends while its run is being stopped still asks for the next one.",
    (at) => at.condition().become(inline(ASKS_FOR_A_TURN, at.param(1))),
  ),
  mistake("run-ends-before-its-calls", "A run settles while some of its calls are still running.", (at) => {
    const isLive = at.condition().operand(0, 2);
    return isLive.become(`(${isLive.text} && ${inline(ASKS_FOR_A_TURN, at.param(1))})`);
  }),
  mistake(
    "follower-misses-events",
    "A follower that was slow is given the latest event, and not those between.",
    (at) => at.value().whenFalse().after(".slice(-1)"),
  ),
  mistake(
    "gap-not-announced",
    "A follower whose position is older than the events that are kept is moved forward without a notice.",
    (at) => at.remove(),
  ),
  mistake(
    "call-of-an-ended-turn",
    "A turn that has ended gets a call through, which then belongs to the next one.",
    (at) => at.condition().literal("ended").become('"waiting"'),
  ),
];
