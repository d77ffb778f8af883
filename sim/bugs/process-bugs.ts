// Mistakes about processes: what begins, what is ended, what is told, and how often.
import { type Bug, bug } from "./bug.ts";

const CALL = "src/engine/live-call.ts";
const COMMIT = "src/engine/commit.ts";
const DECIDE = "src/core/decide.ts";
const DECIDE_PROCESS = "src/core/decide-process.ts";
const DECIDE_RUN = "src/core/decide-run.ts";
const ENGINE = "src/engine/engine.ts";
const FOLLOW_UP = "src/core/follow-up.ts";
const LANE = "src/core/lane.ts";
const LIVE_PROCESS = "src/engine/live-process.ts";
const PROCESSES = "src/engine/processes.ts";
const SHUTDOWN = "src/engine/shutdown.ts";

/** What the model is told. */
const TOLD: readonly Bug[] = [
  bug(
    "cancelled-process-fed",
    "A background process that somebody has stopped is reported to the model as if it had ended by itself.",
    DECIDE_PROCESS,
    'one.feedback !== "silent" && (outcome.kind === "completed" || outcome.kind === "lost");',
    'one.feedback !== "silent" && outcome.kind !== "failed";',
  ),
  bug(
    "silent-process-fed",
    "A process whose result nobody wants to hear is reported.",
    DECIDE_PROCESS,
    'isBackground(one) && one.feedback !== "silent" && (',
    "isBackground(one) && (",
  ),
  bug(
    "result-not-held",
    "A turn is told a result for which a call is waiting, and the call tells it again.",
    DECIDE_PROCESS,
    "...(held ? { heldBy: waiter } : {}),",
    "...(held ? {} : {}),",
  ),
  bug(
    "heard-not-recorded",
    "A call that has told a result does not say so, and the next turn is told it again.",
    DECIDE_RUN,
    'const told = heard === undefined || end.outcome.kind !== "completed" ? {} : { heard };',
    "const told = {};",
  ),
  bug(
    "heard-and-told-again",
    "What a call has told stays in the inbox.",
    LANE,
    "return { ...lane, inbox: left(lane.inbox, (one) => !told(one)) };",
    "return told === undefined ? lane : { ...lane };",
  ),
  bug(
    "heard-by-a-call-that-failed",
    "A call that waited for a result and then failed counts as having told it: the model never hears of it.",
    DECIDE_RUN,
    'heard === undefined || end.outcome.kind !== "completed" ? {}',
    "heard === undefined ? {}",
  ),
  bug(
    "heard-after-the-return",
    "A result that comes when the tool has already returned counts as told by it.",
    CALL,
    "    if (this.#returned) return;\n",
    "",
  ),
  bug(
    "lost-process-not-fed",
    "A background process that went down with its worker is never mentioned again.",
    DECIDE_PROCESS,
    '&& (outcome.kind === "completed" || outcome.kind === "lost");',
    '&& outcome.kind === "completed";',
  ),
  bug(
    "fed-to-the-closed",
    "The result of a process is put into the inbox of a session that was closed.",
    DECIDE_PROCESS,
    'const dropped = told && lane.phase === "closed";',
    'const dropped = told && lane.phase === "absent";',
  ),
  bug(
    "dropped-and-not-counted",
    "A result that nobody could be told is dropped, and nobody counts it.",
    PROCESSES,
    "if (event.dropped === true) this.dropped += 1;",
    "",
  ),
  {
    name: "room-not-reserved",
    about: "Processes are begun whose results will find no place in the inbox.",
    edits: [
      { file: "src/core/limits.ts", find: "INBOX_ITEMS_MAX = 100", replace: "INBOX_ITEMS_MAX = 3" },
      {
        file: DECIDE_PROCESS,
        find: "inbox.length + processes.live.length < INBOX_ITEMS_MAX",
        replace: "inbox.length < INBOX_ITEMS_MAX && processes.count >= 0",
      },
    ],
  },
];

/** Who is woken. */
const WOKEN: readonly Bug[] = [
  bug(
    "woken-twice",
    "The result that has begun a run wants another one when that one is over.",
    LANE,
    "accept({ ...(event.wake === true ? woken(lane) : lane), head }",
    "accept({ ...lane, head }",
  ),
  bug(
    "no-wake-after-a-busy-run",
    "A result that comes while a run is busy with something else wakes nobody when that run is over.",
    FOLLOW_UP,
    "const wants = lane.inbox.some(wakes) || events.some(",
    "const wants = events.some(",
  ),
  bug(
    "woken-after-the-cancel",
    "A session that was cancelled begins again by itself.",
    LANE,
    "return { ...woken(lane), head };",
    "return { ...lane, head };",
  ),
  bug(
    "woken-while-busy",
    "A run is begun for a result although the one that goes on would have told it.",
    FOLLOW_UP,
    'after.phase === "open" && after.live === undefined && after.queue.length === 0',
    'after.phase === "open" && after.queue.length === 0',
  ),
];

/** How it ended, and what is said about that. */
const ENDED: readonly Bug[] = [
  bug(
    "settled-process-stopping",
    "Whoever stops a process that has long ended is told that it is being stopped.",
    DECIDE_PROCESS,
    'if (one === undefined) return { events: [], answer: { kind: "unknown" } };',
    'if (one === undefined) return { events: [], answer: { kind: "stopping", since: lane.head, first: false } };',
  ),
  bug(
    "natural-end-cancelled",
    "A process that ended by itself, before any signal, is recorded as cancelled because a cancel was recorded.",
    DECIDE_PROCESS,
    "const reason = end.stopped === undefined ? undefined : stopReason(lane, one);",
    "const reason = stopReason(lane, one);",
  ),
  bug(
    "cancel-forgotten-by-recovery",
    "A process that was being stopped when its worker vanished is reported as lost.",
    DECIDE_PROCESS,
    'const outcome: Outcome = reason === undefined ? { kind: "lost" } : { kind: "cancelled", reason };',
    'const outcome: Outcome = reason === undefined ? { kind: "lost" } : { kind: "lost" };',
  ),
  bug(
    "processes-not-recovered",
    "A session that has only background processes is not looked at after a crash: they go on for ever, on paper.",
    "src/engine/lanes.ts",
    "const left = lane.durable.live !== undefined || lane.durable.processes.live.length > 0;",
    "const left = lane.durable.live !== undefined;",
  ),
  bug(
    "process-end-refused",
    "The end of a process that the store could not record is forgotten.",
    COMMIT,
    '  "settle-process",\n',
    "",
  ),
  bug(
    "detach-refused",
    "A store in trouble refuses that a process goes to the background, and it ends on paper with its call.",
    COMMIT,
    '  "detach-process",\n',
    "",
  ),
  bug(
    "unrecorded-process-stays-open",
    "A process whose request was recorded while its asker was told otherwise never ends.",
    PROCESSES,
    "      void this.#settleUnbegun(lane);\n",
    "",
  ),
  bug(
    "end-told-before-durable",
    "Whoever waits for a process hears of its end before that is in the store.",
    PROCESSES,
    'await this.#parts.commit().submit(lane, { type: "settle-process", end, ...told });',
    'this.#parts.commit().submit(lane, { type: "settle-process", end, ...told }).catch(ignore);',
  ),
  bug(
    "process-limit-left-behind",
    "The timer of a process's time limit outlives the process.",
    LIVE_PROCESS,
    "    this.#takeBackLimit();\n",
    "",
  ),
];

/** What begins and what is ended. */
const STOPPED: readonly Bug[] = [
  bug(
    "call-settles-before-its-process",
    "A call is over on paper while a process of it is not.",
    FOLLOW_UP,
    "withWake(lane, withProcesses(lane, events))",
    "withWake(lane, events)",
  ),
  bug(
    "leftovers-of-a-call",
    "A call that returns leaves its processes going on.",
    CALL,
    "if (this.desk.ownsProcesses(this.callId)) await this.desk.endProcesses(this.callId);",
    "",
  ),
  bug(
    "begun-in-the-last-moment",
    "A process that a call has asked for just before it returned is not ended with it.",
    PROCESSES,
    "const coming = known.length > 0 ? known : this.#asked(lane, isMeant);",
    "const coming = known;",
  ),
  bug(
    "started-after-its-end",
    "A process whose call was over before it had begun is started all the same.",
    PROCESSES,
    'if (!goesOn(lane, id)) live.stop("at once");',
    "",
  ),
  bug(
    "background-survives-the-session",
    "A cancel of the session does not reach what goes on in its background.",
    DECIDE,
    'background === "keep"\n',
    "background !== undefined\n",
  ),
  bug(
    "background-not-kept",
    "A cancel of the session stops also what it was asked to leave alone.",
    DECIDE,
    'background === "keep"\n',
    "background === undefined\n",
  ),
  bug(
    "detached-while-stopping",
    "A process that is being stopped with its call is moved to the background, and its stop is forgotten.",
    DECIDE_PROCESS,
    "isBackground(one) || stopReason(lane, one) !== undefined) {",
    "isBackground(one)) {",
  ),
  {
    name: "begun-by-the-cancelled",
    about: "A call that is being stopped begins a process.",
    edits: [
      {
        file: DECIDE_PROCESS,
        find: "if (isWork(owner) && !goesOn(lane, owner)) return",
        replace: "if (isWork(owner) && lane.live === undefined) return",
      },
      {
        file: "src/engine/call-processes.ts",
        find: "scope.reason === undefined && !isOver() ? undefined",
        replace: "scope !== undefined && !isOver() ? undefined",
      },
    ],
  },
  bug(
    "begun-without-the-lease",
    "A process is started for a session that another worker drives, which can neither stop it nor learn of its end.",
    PROCESSES,
    "    if (lane.epoch === undefined) throw elsewhere(lane);\n",
    "",
  ),
  bug(
    "spawned-after-the-stop",
    "A process whose stop was decided before it existed is started.",
    LIVE_PROCESS,
    "if (this.child === undefined) this.#starting.abort();\n    else stopChild",
    "if (this.child !== undefined) stopChild",
  ),
  bug(
    "child-stop-waits-for-the-disk",
    "The child is stopped when the cancel is durable, not when it is decided.",
    ENGINE,
    'if (command.type.startsWith("cancel-") || command.type === "close") this.#satisfy(lane);',
    'if (command.type.startsWith("cancel-") || command.type === "close") this.drive.satisfy(lane);',
  ),
  bug(
    "fenced-lane-leaves-children",
    "A worker that may not drive a session any more leaves its processes going on.",
    ENGINE,
    "    this.processes.fenced(lane);\n",
    "",
  ),
  {
    name: "shutdown-leaves-children",
    about: "An orderly shutdown forgets what goes on in the background.",
    edits: [
      {
        file: SHUTDOWN,
        find: "const ended = engine.processes.park(lane);",
        replace: "const ended = Promise.resolve();",
      },
      {
        file: SHUTDOWN,
        find: "const processesClosed = engine.processes.close();",
        replace: "const processesClosed = Promise.resolve();",
      },
    ],
  },
];

export const PROCESS_BUGS: readonly Bug[] = [...TOLD, ...WOKEN, ...ENDED, ...STOPPED].map((one) => ({
  ...one,
  focus: "processes",
}));
