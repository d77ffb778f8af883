// Mistakes about processes: which are started, which are stopped, how they end, and what the model gets of them.

import type { CancelReceipt } from "../../src/core/model/cancel.ts";
import type { CallId, SessionId } from "../../src/core/model/ids.ts";
import type { Lane } from "../../src/core/model/lane.ts";
import type { SessionState } from "../../src/engine/log/session-state.ts";
import { mistake } from "../../test/mistakes/mistake.ts";
import { inline } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** Which results reach the model. */
const REPORTED: readonly Bug[] = [
  mistake(
    "cancelled-process-fed",
    "A background process that was stopped is reported to the model as if it had ended by itself.",
    (at) => {
      const outcome = at.value().operand(2, 3);
      return outcome.become(`${outcome.operand(0, 2).left().text} !== "failed"`);
    },
  ),
  mistake("silent-process-fed", "A process whose feedback is silent is reported to the model.", (at) =>
    at.value().operand(1, 3).drop(),
  ),
  mistake(
    "result-not-held",
    "A turn reports a result for which a call is waiting, and the call reports the same result again.",
    (at) => at.remove(),
  ),
  mistake(
    "heard-not-recorded",
    "The end of a call does not record which results the call has reported, and the next turn reports them again.",
    (at) => at.value().become("{}"),
  ),
  mistake("heard-and-told-again", "A result that a call has reported stays in the inbox.", (at) =>
    at.value().part(1, 2).remove(),
  ),
  mistake(
    "heard-by-a-call-that-failed",
    "A call that waited for a result and then failed counts as having reported it: the model never gets it.",
    (at) => at.value().condition().operand(1, 2).drop(),
  ),
  mistake(
    "heard-after-the-return",
    "A result that arrives after the tool has returned counts as reported by its call.",
    (at) => at.remove(),
  ),
  mistake(
    "lost-process-not-fed",
    "A background process that was lost with its worker is never reported to the model.",
    (at) => at.remove(),
  ),
  mistake(
    "limited-process-not-fed",
    "A background process that its time limit has ended is never reported to the model.",
    (at) => {
      const outcome = at.value().operand(2, 3);
      const kind = outcome.operand(0, 2).left().text;
      return outcome.become(`(${kind} === "completed" || ${kind} === "lost")`);
    },
  ),
  mistake("fed-to-the-closed", "The result of a process is put into the inbox of a closed session.", (at) =>
    at.literal("closed").become('"absent"'),
  ),
  mistake("dropped-and-not-counted", "A result that is dropped because its session is closed is not counted.", (at) =>
    at.remove(),
  ),
  mistake("room-not-reserved", "Processes are started although their results will not fit into the inbox.", {
    limit: (at) => at.literal(100).become("3"),
    room: (at) => {
      const reserved = at.value().value().left();
      return reserved.become(reserved.left().text);
    },
  }),
];

/** What becomes of processes that are slow to die, or must not be hurried. */
const DYING: readonly Bug[] = [
  mistake(
    "dying-process-forgotten",
    "A call ends while its process is still dying, and nothing in the log names that process.",
    (at) => at.condition().become("true"),
  ),
  mistake("dying-not-named", "The outcome of a call hides that one of its processes is still dying.", (at) => {
    const outcome = at.value();
    return outcome.become(outcome.arg(0, 2).text);
  }),
  mistake(
    "uninterrupted-command-stopped-at-once",
    "The command of a call that cannot be interrupted gets SIGTERM as soon as the call is stopped.",
    (at) => at.value().whenFalse().become("0"),
  ),
  mistake(
    "background-asked-late",
    "A command that was moved to the background is asked to end late, because its call could not be interrupted.",
    (at) => {
      const share = at.value();
      return share.become(share.whenTrue().text);
    },
  ),
].map((bug) => ({ ...bug, focus: "late-death" as const }));

/** Which results begin a run. */
const WAKING: readonly Bug[] = [
  mistake("woken-twice", "A result that has begun a run begins another one when that run is over.", (at) => {
    const lane = at.value().arg(0, 2).part(0, 2).value();
    return lane.become(lane.value().whenFalse().text);
  }),
  mistake(
    "no-wake-after-a-busy-run",
    "A result that arrives while a run is busy with other work begins no run when that run is over.",
    (at) => at.value().operand(0, 2).drop(),
  ),
  mistake("woken-after-the-cancel", "A cancelled session begins a run by itself.", (at) => {
    const lane = at.value().part(0, 3).value();
    return lane.become(lane.arg(0, 1).text);
  }),
  mistake("woken-while-busy", "A run is begun for a result although the live run would have reported it.", (at) =>
    at.value().operand(1, 3).drop(),
  ),
];

/** How a process ended, and what is recorded and answered about it. */
const ENDED: readonly Bug[] = [
  mistake(
    "settled-process-stopping",
    "A cancel of a process that has ended is answered as if the process were being stopped.",
    (at) =>
      at
        .whenTrue()
        .value()
        .part(1, 2)
        .value()
        .become(
          inline((lane: Lane): CancelReceipt => ({ kind: "stopping", since: lane.head, first: false }), at.param(0)),
        ),
  ),
  mistake(
    "natural-end-cancelled",
    "A process that ended by itself, before any signal, is recorded as cancelled because a cancel was recorded.",
    (at) => at.value().become(at.value().whenFalse().text),
  ),
  mistake(
    "cancel-forgotten-by-recovery",
    "A process that was being stopped when its worker vanished is recorded as lost.",
    (at) => at.value().become(at.value().whenTrue().text),
  ),
  mistake(
    "processes-not-recovered",
    "A session that has only background processes is not recovered after a crash: in the log they never end.",
    (at) => at.value().operand(1, 2).drop(),
  ),
  mistake(
    "unrecorded-process-stays-open",
    "A process whose request was recorded although the caller got an error never ends.",
    (at) => at.remove(),
  ),
  mistake(
    "end-told-before-durable",
    "A caller that waits for a process gets its end before the store has recorded it.",
    (at) => at.value().become(`${at.value().value().text}.catch(() => {})`),
  ),
  mistake("process-limit-left-behind", "The timer of a process's time limit outlives the process.", (at) =>
    at.remove(),
  ),
];

/** Which processes are started and which are stopped. */
const STOPPED: readonly Bug[] = [
  mistake(
    "call-settles-before-its-process",
    "The end of a call is recorded while one of its processes has not ended.",
    (at) => {
      const events = at.value().part(0, 2).value().arg(1, 2);
      return events.become(events.arg(1, 2).text);
    },
  ),
  mistake("leftovers-of-a-call", "A call that returns leaves its processes running.", (at) => at.remove()),
  mistake(
    "begun-in-the-last-moment",
    "A process that a call requested just before it returned is not ended with the call.",
    (at) =>
      at
        .value()
        .become(
          inline(
            (lane: SessionState, isMeant: (owner: CallId | SessionId) => boolean) =>
              lane.durable.processes.live.flatMap(({ id, owner }) => (isMeant(owner) ? [id] : [])),
            at.param(0),
            at.param(1),
          ),
        ),
  ),
  mistake("unrecorded-process-kept", "A process whose request was refused by the store is never forgotten.", (at) =>
    at.remove(),
  ),
  mistake("background-survives-the-session", "A cancel of the session does not stop its background processes.", (at) =>
    at.value().value().condition().become("true"),
  ),
  mistake(
    "background-not-kept",
    "A cancel of the session also stops the background processes that it was asked to keep.",
    (at) => at.value().value().condition().become("false"),
  ),
  mistake(
    "detached-while-stopping",
    "A process that is being stopped with its call is moved to the background, and its stop is forgotten.",
    (at) => at.condition().operand(2, 4).drop(),
  ),
  mistake("begun-by-the-cancelled", "A call that is being stopped starts a process.", {
    decide: (at) =>
      at
        .condition()
        .operand(1, 2)
        .become(inline((lane: Lane) => lane.live === undefined, at.param(0))),
    start: (at) => at.value().value().condition().operand(0, 2).drop(),
  }),
  mistake(
    "begun-without-the-lease",
    "A process is started for a session that another worker drives, which can neither stop it nor learn of its end.",
    (at) => at.value().body().become("false"),
  ),
  mistake("spawned-after-the-stop", "A process is started although its stop was decided before it existed.", (at) =>
    at.whenTrue().remove(),
  ),
  mistake(
    "child-stop-waits-for-the-disk",
    "The child is stopped when the cancel is durable, not when it is decided.",
    (at) => at.remove(),
  ),
  mistake(
    "fenced-lane-leaves-children",
    "A worker that may not drive a session any more leaves its processes running.",
    (at) => at.remove(),
  ),
  mistake("shutdown-leaves-children", "An orderly shutdown leaves background processes running.", {
    park: (at) => at.value().become("Promise.resolve()"),
    close: (at) => at.value().become("Promise.resolve()"),
  }),
];

/** What a store in trouble must not keep from being recorded. */
const IN_TROUBLE: readonly Bug[] = [
  mistake("process-end-refused", "The end of a process that the store could not record is dropped.", (at) =>
    at.remove(),
  ),
  mistake(
    "detach-refused",
    "A store in trouble refuses to move a process to the background, and in the log the process ends with its call.",
    (at) => at.remove(),
  ),
];

const ANYWHERE: readonly Bug[] = [...REPORTED, ...WAKING, ...ENDED, ...STOPPED];

export const PROCESS_BUGS: readonly Bug[] = [
  ...DYING,
  ...IN_TROUBLE.map((one) => ({ ...one, focus: "store-trouble" as const })),
  ...ANYWHERE.map((one) => ({ ...one, focus: "processes" as const })),
];
