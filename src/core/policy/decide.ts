// The policy of a lane: the events and the answer of every command.
// Pure and synchronous: no command can be interrupted half-way, so simultaneous commands have an order, that of the
// log.

import { MEMOS_PER_ACTOR_MAX, QUEUE_BYTES_MAX, QUEUE_RUNS_MAX } from "../limits.ts";
import { type CancelKey, type CancelReason, type Covered, isMeant, type SessionReceipt } from "../model/cancel.ts";
import type { Accept, Accepted, Answers, CallSettled, Command, CommandOf, Refused, Taken } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import { type RunId, runOf, type TurnId, turnId } from "../model/ids.ts";
import { takeable, wakes } from "../model/inbox.ts";
import { evolve, type Lane, leadingInterrupts, placeFor, type Waiting } from "../model/lane.ts";
import { drop, keep, memosFor, promptMemoName } from "../model/memo.ts";
import { promptBytes } from "../model/prompt.ts";
import { covers } from "./covers.ts";
import { decideOnce } from "./decide-once.ts";
import {
  beginProcess,
  cancelBackground,
  cancelOneProcess,
  detachProcess,
  hasRoom,
  loseProcesses,
  noteProcess,
  settleProcess,
  withProcesses,
} from "./decide-process.ts";
import { admitCall, answer, ask, cancelQuestion, expire } from "./decide-question.ts";
import {
  editQueued,
  moveQueued,
  nothing,
  queueBytes,
  refused,
  steerQueued,
  withdraw,
  withdrawn,
} from "./decide-queue.ts";
import {
  cancelOneCall,
  cancelRun,
  type Decided,
  parkRun,
  recoverRun,
  refuseCall,
  requestCall,
  settleCall,
  settleTurn,
} from "./decide-run.ts";
import { complete, follow, takeAll, withRequeued } from "./follow-up.ts";

type Deciders = { readonly [T in Command["type"]]: (lane: Lane, command: CommandOf<T>) => Decided<Answers[T]> };

const deciders: Deciders = {
  create,
  accept,
  edit: editQueued,
  move: moveQueued,
  withdraw,
  steer: steerQueued,
  "cancel-session": cancelNamed,
  "cancel-run": (lane, { runId, reason }) => cancelById(lane, runId, reason),
  "cancel-key": cancelByKey,
  "keep-answer": () => nothing(undefined),
  "cancel-call": (lane, { callId, reason, remind, begun }) =>
    lane.live?.id === runOf(callId)
      ? cancelOneCall(lane.live, callId, { reason, remind: remind === true, begun }, lane.head + 1)
      : nothing({ kind: "unknown" }),
  "cancel-process": cancelOneProcess,
  "cancel-question": cancelQuestion,
  answer,
  "set-mode": setMode,
  post,
  close: (lane, { reason }) => close(lane, reason),
  start,
  take: (lane, { turnId: id }) => take(lane, id),
  extend: (lane, { type: _, once: __, turnId: id, ...rest }) => ({
    events: lane.live?.turn === id ? [{ type: "turn.extended", runId: lane.live.id, turnId: id, ...rest }] : [],
    answer: undefined,
  }),
  compact: (lane, { turnId: id, summary }) => ({
    events: isTaking(lane, id) ? [{ type: "session.compacted", turnId: id, summary }] : [],
    answer: undefined,
  }),
  call,
  ask,
  "admit-call": admitCall,
  expire,
  "settle-turn": (lane, { end }) => settled(lane, lane.live?.turn === end.turnId ? settleTurn(lane.live, end) : []),
  "settle-call": settleCallIn,
  "begin-process": beginProcess,
  "note-process": noteProcess,
  "detach-process": detachProcess,
  "settle-process": settleProcess,
  recover,
  park: (lane) => withoutAnswer(lane, lane.live === undefined ? [] : parkRun(lane.live)),
};

/** The events and the answer of a command. Without events, the command changes nothing. */
export function decide<C extends Command>(lane: Lane, command: C): Decided<Answers[C["type"]]> {
  // The table is typed per command; TypeScript cannot follow the correlation through an index.
  const decider = deciders[command.type] as unknown as (lane: Lane, command: C) => Decided<Answers[C["type"]]>;
  return decideOnce(lane, command, () => complete(lane, decider(lane, command)));
}

function create(lane: Lane, command: CommandOf<"create">): Decided<Answers["create"]> {
  if (lane.phase !== "absent") return nothing({ kind: "existed", seq: 1 });
  const { title, cwd } = command;
  const named = { ...(title === undefined ? {} : { title }), ...(cwd === undefined ? {} : { cwd }) };
  const event: Event = { type: "session.created", sessionId: lane.id, ...named };
  return { events: [event], answer: { kind: "created", seq: 1 } };
}

function accept(lane: Lane, command: Accept): Decided<Accepted | Refused> {
  const known = earlierUnder(lane, command);
  if (known !== undefined) return nothing(repeat(lane, known, command.content));
  const refusal = refuse(lane, command);
  if (refusal !== undefined) return nothing(refusal);

  const { runId, prompt, delivery, key, content } = command;
  const named = { ...(key === undefined ? {} : { key }), ...(content === undefined ? {} : { content }) };
  // @fault idle-cancel-remembered:accept, later-prompt-poisoned:accept
  const events: Event[] = [{ type: "run.accepted", runId, prompt, delivery, ...named }];
  const name = promptMemoName(command);
  const memo = name === undefined ? undefined : lane.memos.get(name);
  // Cancelled before it arrived: it settles at once, and interrupts nothing.
  // @fault memo-not-honoured
  if (memo?.kind === "prompt")
    return {
      events: [...events, withdrawn({ id: runId, key }, memo.reason)],
      answer: accepted(lane, command),
      memos: [drop(memo)],
    };
  if (command.delivery === "interrupt" && lane.live !== undefined) {
    events.push(...cancelRun(lane.live, { kind: "superseded", by: command.runId }, lane.head + 2).events);
  }
  return { events: withRequeued(lane, events), answer: accepted(lane, command) };
}

function refuse(lane: Lane, command: Accept): Refused | undefined {
  const shut = refuseUnlessOpen(lane);
  if (shut !== undefined) return shut;
  const waiting = lane.queue.length + lane.steers.length;
  // @fault busy-is-only-live
  if (command.delivery === "reject" && (lane.live !== undefined || waiting > 0)) {
    return refused("busy", `Session ${lane.id} is busy${lane.live === undefined ? "" : ` with ${lane.live.id}`}.`);
  }
  if (waiting >= QUEUE_RUNS_MAX)
    return refused("queue_full", `${waiting} runs are waiting in ${lane.id}; that is the limit.`);
  if (queueBytes(lane) + promptBytes(command.prompt) > QUEUE_BYTES_MAX) {
    return refused("queue_full", `The prompts waiting in ${lane.id} would exceed ${QUEUE_BYTES_MAX} bytes.`);
  }
  return undefined;
}

function accepted(lane: Lane, command: Accept): Accepted {
  const place = placeFor(lane, command.delivery);
  const before = place === "steers" ? 0 : place === "front" ? leadingInterrupts(lane.queue) : lane.queue.length;
  return {
    kind: "accepted",
    runId: command.runId,
    seq: lane.head + 1,
    joined: place === "steers" ? "steer" : "queue",
    ahead: before + (isLive(lane, command.delivery) ? 1 : 0),
    repeated: false,
  };
}

/** An interrupted parked run ends in the same decision. */
const isLive = (lane: Lane, delivery: Accept["delivery"]): boolean =>
  lane.live !== undefined && !(lane.live.phase === "parked" && delivery === "interrupt");

type KnownRequest = NonNullable<Accept["earlier"]>;

/** The run that has this id or key already, live, waiting or settled. */
function earlierUnder(lane: Lane, { runId, key, earlier }: Accept): KnownRequest | undefined {
  for (const run of openRuns(lane)) {
    // @fault duplicate-key-runs-twice:decided
    if (run.id === runId || (key !== undefined && run.key === key)) {
      return { runId: run.id, acceptedAt: run.acceptedAt, content: run.content };
    }
  }
  return earlier;
}

export function repeat(lane: Lane, known: KnownRequest, content: string | undefined): Accepted | Refused {
  // @fault conflict-not-detected
  if (known.content !== content) return refused("conflict", "This idempotency key was used for a different prompt.");
  return standing(lane, known);
}

/** The receipt of a run that was accepted before, with its current place. */
export function standing(lane: Lane, known: KnownRequest): Accepted {
  const steer = lane.steers.some((run) => run.id === known.runId);
  const place = lane.queue.findIndex((run) => run.id === known.runId);
  const waits = steer || place !== -1;
  const ahead = waits ? Math.max(place, 0) + (lane.live === undefined ? 0 : 1) : 0;
  return {
    kind: "accepted",
    runId: known.runId,
    seq: known.acceptedAt,
    joined: steer ? "steer" : "queue",
    ahead,
    repeated: true,
  };
}

/** Covers exactly the runs in the current state, by id: everything accepted so far, and nothing accepted later. */
function cancelSession(
  lane: Lane,
  reason: CancelReason,
  background: "keep" | "stop" | "end" = "stop",
): Decided<SessionReceipt> {
  if (lane.phase === "absent") return nothing({ kind: "unknown", runs: [] });
  const covered = covers(lane, { type: "cancel-session", reason, background: "keep" }).runs;
  // @fault cancel-consumed-by-first, later-prompt-poisoned:cancel
  const waiting = covered.filter((id) => id !== lane.live?.id);
  const stopping = lane.live?.phase === "stopping" ? waiting : covered;
  const live = lane.live === undefined ? undefined : cancelRun(lane.live, reason, lane.head + 2);
  const runs: Covered[] = waiting.map((runId) => ({ runId, receipt: { kind: "withdrawn" } }));
  if (lane.live !== undefined && live !== undefined) runs.unshift(coveredLive(lane.live.id, live));
  // Together with the processes that end in between, so that the positions of later events are right.
  // @fault withdrawn-without-outcome
  const stopped = withProcesses(lane, [...(live?.events ?? []), ...waiting.map((id) => withdrawnIn(lane, id, reason))]);
  const behind = cancelBackground(lane, reason, lane.head + 2 + stopped.length, background);
  const processes = behind.covered.length === 0 ? {} : { processes: behind.covered };
  // @fault idle-cancel-remembered:cancel
  if (runs.length === 0 && behind.covered.length === 0) return nothing({ kind: "idle", runs: [] });
  const kind = lane.live === undefined && behind.covered.length === 0 ? "withdrawn" : "stopping";
  const facts = [...stopped, ...behind.events];
  return {
    // Recorded even if the only thing to cancel is a run that an inbox item would begin.
    events:
      facts.length === 0 && !lane.inbox.some(wakes)
        ? []
        : [{ type: "session.cancel_requested", reason, covers: stopping }, ...facts],
    answer: { kind, runs, ...processes },
  };
}

/** Withdraws what waits, at once. No request to stop the session is recorded: nothing that runs is stopped. */
function clearQueue(lane: Lane, reason: CancelReason): Decided<SessionReceipt> {
  if (lane.phase === "absent") return nothing({ kind: "unknown", runs: [] });
  const { runs } = covers(lane, { type: "cancel-session", reason, only: "queue" });
  if (runs.length === 0) return nothing({ kind: "idle", runs: [] });
  return {
    events: runs.map((id) => withdrawnIn(lane, id, reason)),
    answer: { kind: "withdrawn", runs: runs.map((runId) => ({ runId, receipt: { kind: "withdrawn" } })) },
  };
}

/** Also cancels the prompts that the command names and that have not arrived. */
function cancelNamed(lane: Lane, command: CommandOf<"cancel-session">): Decided<Answers["cancel-session"]> {
  const { reason, background, crowded } = command;
  const { events, answer } =
    command.only === "queue" ? clearQueue(lane, reason) : cancelSession(lane, reason, background);
  const memos = memosFor(command, reason, keysIn(lane));
  if (crowded === true) return { events, answer: CROWDED };
  if (memos.length === 0) return { events, answer };
  const covered = answer.kind === "stopping" || answer.kind === "withdrawn" ? answer : undefined;
  const found = covered ?? { kind: "withdrawn", runs: [] };
  return { events, answer: { ...found, prompts: memos.map(({ key }) => key) }, memos: memos.map(keep) };
}

const keysIn = (lane: Lane): ReadonlySet<string | undefined> => new Set(openRuns(lane).map(({ key }) => key));

const CROWDED: Refused = refused(
  "queue_full",
  `${MEMOS_PER_ACTOR_MAX} prompts of this user were cancelled and have not arrived; that is the limit. ` +
    "What had arrived was stopped.",
);

const coveredLive = (runId: RunId, live: ReturnType<typeof cancelRun>): Covered => ({ runId, receipt: live.answer });

function cancelById(lane: Lane, runId: RunId, reason: CancelReason): Decided<Answers["cancel-run"]> {
  // @fault stale-id-hits-the-next
  if (lane.live?.id === runId) {
    const decided = cancelRun(lane.live, reason, lane.head + 1);
    return { events: withRequeued(lane, decided.events), answer: decided.answer };
  }
  if (!isWaiting(lane, runId)) return nothing({ kind: "unknown" });
  // @fault cancel-lost-before-start
  return { events: [withdrawnIn(lane, runId, reason)], answer: { kind: "withdrawn" } };
}

function cancelByKey(lane: Lane, cancel: CancelKey): Decided<Answers["cancel-key"]> {
  const run = openRuns(lane).find((one) => isMeant(cancel, one));
  if (run === undefined) {
    if (cancel.crowded === true) return nothing(CROWDED);
    const memos = memosFor(cancel, cancel.reason, keysIn(lane));
    return memos.length === 0
      ? nothing({ kind: "unknown" })
      : { events: [], answer: { kind: "withdrawn" }, memos: memos.map(keep) };
  }
  const decided = cancelById(lane, run.id, cancel.reason);
  return { events: decided.events, answer: { ...decided.answer, runId: run.id } };
}

function close(lane: Lane, reason: CancelReason): Decided<SessionReceipt> {
  if (lane.phase === "absent") return nothing({ kind: "unknown", runs: [] });
  if (lane.phase === "closed") return cancelSession(lane, reason, "end");
  const cancelled = cancelSession({ ...lane, head: lane.head + 1 }, reason, "end");
  return { events: [{ type: "session.closed", reason }, ...cancelled.events], answer: cancelled.answer };
}

function start(lane: Lane): Decided<Answers["start"]> {
  const next = lane.queue[0];
  if (lane.live !== undefined || next === undefined) return nothing(undefined); // @fault two-live-runs
  const events: readonly Event[] = [
    { type: "run.started", runId: next.id },
    { type: "turn.requested", runId: next.id, turnId: turnId(next.id, 1) },
  ];
  return { events: follow(lane, events), answer: next.id }; // @fault inbox-not-read-at-the-start
}

function take(lane: Lane, id: TurnId): Decided<readonly Taken[]> {
  if (!isTaking(lane, id)) return nothing([]);
  return {
    events: takeAll(lane, takeable(lane.inbox, lane.live), id),
    answer: lane.steers.map((run) => ({ runId: run.id, prompt: run.prompt })),
  };
}

const isTaking = ({ live }: Lane, id: TurnId): boolean => live?.phase === "running" && live.turn === id;

/** The mode is the agent's own: the log does not check whether the agent has it. */
function setMode(lane: Lane, { mode, by }: CommandOf<"set-mode">): Decided<Answers["set-mode"]> {
  const shut = refuseUnlessOpen(lane);
  if (shut !== undefined) return nothing(shut);
  if (lane.mode === mode) return nothing({ kind: "unchanged", mode });
  const named = by === undefined ? {} : { by };
  return {
    events: [{ type: "session.mode_set", mode, ...named }],
    answer: { kind: "changed", mode, seq: lane.head + 1 },
  };
}

function post(lane: Lane, { item }: CommandOf<"post">): Decided<Answers["post"]> {
  const shut = refuseUnlessOpen(lane);
  if (shut !== undefined) return nothing(shut);
  if (!hasRoom(lane)) {
    return nothing(
      refused("queue_full", `${lane.inbox.length} items wait in the inbox of ${lane.id}; it has no room for more.`),
    );
  }
  return { events: [{ type: "inbox.added", item }], answer: { kind: "posted", seq: lane.head + 1 } };
}

function call(lane: Lane, { type: _, once: __, ...asked }: CommandOf<"call">): Decided<Answers["call"]> {
  const { callId } = asked;
  const run = lane.live?.id === runOf(callId) ? lane.live : undefined;
  const events = run === undefined ? undefined : requestCall(run, asked);
  if (events === undefined) return nothing(refuseCall(run, callId));
  return { events, answer: { kind: "called", callId } };
}

function settled(lane: Lane, events: readonly Event[]): Decided<Answers["settle-turn"]> {
  return events.length === 0 ? nothing("late") : { events: follow(lane, events), answer: "recorded" };
}

function settleCallIn(lane: Lane, { end }: CommandOf<"settle-call">): Decided<Answers["settle-call"]> {
  const { live: run } = lane;
  const { events } = settled(lane, run?.id === runOf(end.callId) ? settleCall(run, end) : []);
  const isEnd = (event: Event): event is CallSettled => event.type === "call.settled" && event.callId === end.callId;
  return { events, answer: events.find(isEnd) ?? "late" };
}

function withoutAnswer(lane: Lane, events: readonly Event[]): Decided<undefined> {
  return { events: follow(lane, events), answer: undefined };
}

/** Takes over from another worker. Processes are settled first, because their owners settle next. */
function recover(lane: Lane, { resume }: CommandOf<"recover">): Decided<undefined> {
  const lost = loseProcesses(lane);
  const after = lost.reduce(evolve, lane);
  const run = after.live === undefined ? [] : recoverRun(after.live, resume);
  return { events: [...lost, ...follow(after, run)], answer: undefined };
}

function refuseUnlessOpen(lane: Lane): Refused | undefined {
  if (lane.phase === "absent") return refused("not_found", `There is no session ${lane.id}.`);
  // @fault closed-session-accepts
  return lane.phase === "closed" ? refused("closed", `Session ${lane.id} is closed.`) : undefined;
}

function withdrawnIn({ queue, steers }: Lane, runId: RunId, reason: CancelReason): Event {
  const run = [...queue, ...steers].find(({ id }) => id === runId);
  return withdrawn({ id: runId, key: run?.key }, reason);
}

const isWaiting = (lane: Lane, id: RunId): boolean =>
  lane.queue.some((run) => run.id === id) || lane.steers.some((run) => run.id === id);

type OpenRun = Pick<Waiting, "id" | "key" | "content" | "acceptedAt">;
const openRuns = (lane: Lane): readonly OpenRun[] =>
  lane.live === undefined ? [...lane.queue, ...lane.steers] : [lane.live, ...lane.queue, ...lane.steers];
