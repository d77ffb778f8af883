// The processes of this worker: started when their request is durable, stopped when the state demands it, and reported
// when their end is durable.
import { Bug } from "../../core/bug.ts";
import { ControlError, toControlError } from "../../core/errors.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Answers, CommandOf } from "../../core/model/command.ts";
import type { Feedback, Recorded } from "../../core/model/event.ts";
import type { CallId, ProcessId, SessionId, Work } from "../../core/model/ids.ts";
import type { Process, ProcessEnd } from "../../core/model/process.ts";
import { isStopRefusable, mayStart, mayStopProcess } from "../../core/policy/covers.ts";
import { demandStops } from "../../core/policy/decide-process.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  Child,
  CommandLine,
  Output,
  ProcessInfo,
  ProcessResult,
  Spawner,
  StartOptions,
  Tier,
} from "../../ports/spawner.ts";
import type { Store } from "../../ports/store.ts";
import type { Commit } from "../log/commit.ts";
import type { Feeds } from "../log/feed.ts";
import type { SessionState } from "../log/session-state.ts";
import { type Deadline, makeDeadline } from "../work/deadline.ts";
import { LiveProcess, noteOf, type ProcessListener, type StopWithin } from "./live-process.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly feeds: Feeds;
  readonly commit: Commit;
  /** A process of this call is recorded as ended, or is late. */
  readonly over: (lane: SessionState, call: CallId) => void;
  /** Opened on first use: most programs start no processes. */
  readonly spawner: (() => Promise<Spawner>) | undefined;
}

/** A validated request. */
export interface BeginProcess {
  readonly owner: CallId | SessionId;
  readonly command: CommandLine;
  readonly options: StartOptions;
  readonly feedback: Feedback;
  /** The call or turn that starts it for the session. */
  readonly by?: Work;
  /** The part of the grace period that passes before a stop of its call sends the first signal. Default none. */
  readonly share?: number;
  /** The error if the requesting work may begin nothing any more. Called in the tick in which the request is sent. */
  readonly refusal?: () => ControlError | undefined;
}

export class ProcessManager {
  readonly #parts: Parts;
  readonly #live = new Map<ProcessId, LiveProcess>();
  /** Number of results that were not reported, because their session had closed. */
  dropped = 0;
  /** The containment tier. Undefined until the first process was requested. */
  tier: Tier | undefined = undefined;
  #spawner: Promise<Spawner> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get(id: ProcessId): LiveProcess | undefined {
    return this.#live.get(id);
  }

  get count(): number {
    return this.#live.size;
  }

  /** Registers a process in this tick, so that a later stop covers it, and starts it once that is durable. */
  async begin(lane: SessionState, begin: BeginProcess): Promise<LiveProcess> {
    if (this.#parts.spawner === undefined) throw NO_SPAWNER();
    const refused = begin.refusal?.();
    if (refused !== undefined) throw refused;
    const live = await this.#request(lane, begin);
    try {
      const child = await this.#start(lane, live, begin);
      live.began(child);
      this.#note(lane, live.id, child);
    } catch (error) {
      const { code, message } = toControlError(error);
      live.failed({ code, message });
      if (!live.starting.aborted) throw error;
    }
    if (lane.phase === "gone") live.stop("at once");
    const { timeoutMs } = begin.options;
    if (timeoutMs !== undefined) live.limit(timeoutMs, (reason) => this.#cancel(lane, live.id, reason));
    return live;
  }

  async #request(
    lane: SessionState,
    { owner, by, command, options, feedback, share }: BeginProcess,
  ): Promise<LiveProcess> {
    const { cwd, lasting } = options;
    const request: CommandOf<"begin-process"> = {
      ...{ type: "begin-process", owner, command, feedback },
      ...(cwd === undefined ? {} : { cwd }),
      ...(lasting === undefined ? {} : { lasting }),
      ...(by === undefined ? {} : { by }),
    };
    let live: LiveProcess | undefined;
    const register = (answer: Answers["begin-process"]): void => {
      if (answer.kind === "refused" || live !== undefined) return;
      live = new LiveProcess(answer.processId, owner, this.#listener(lane), share);
      this.#live.set(live.id, live);
    };
    try {
      const begun = await this.#parts.commit.submit(lane, request, register);
      if (begun.kind === "refused") throw new ControlError(begun.code, begun.message);
      if (live === undefined) throw new Bug(`${begun.processId} was decided without being registered`);
      return live;
    } catch (error) {
      // @fault unrecorded-process-kept
      if (live !== undefined) this.#live.delete(live.id);
      live?.discard(error);
      this.#over(lane, owner);
      throw error;
    }
  }

  async #start(lane: SessionState, live: LiveProcess, { command, options }: BeginProcess): Promise<Child> {
    const { id } = live;
    const { timeoutMs: _, feedback: __, lasting: ___, ...rest } = options;
    const spawner = live.starting.aborted ? undefined : await this.spawner();
    // A stop that can still be refused neither starts nor stops anything until it is recorded or refused.
    while (isInDoubt(lane, id)) await this.#parts.commit.drained(lane);
    // A second line of defence: every stop reaches a starting process in the tick of its decision.
    if (lane.phase === "gone" || !mayStart(lane.decided, lane.durable, id)) live.stop("at once");
    if (spawner === undefined) throw new ControlError("not_started", `${id} was stopped before it was started.`);
    const home = lane.decided.cwd === undefined ? {} : { workspace: lane.decided.cwd };
    return spawner.spawn({ ...rest, ...home, id, sessionId: lane.id, command, signal: live.starting });
  }

  #note(lane: SessionState, processId: ProcessId, { pid, tier, profile }: Child): void {
    // Only for display: a failing store may refuse it.
    this.#parts.commit.submit(lane, { type: "note-process", processId, pid, tier, profile }).catch(ignore);
  }

  /** Refused only by a failing store, which keeps it, or if another worker drives the lane. */
  #cancel(lane: SessionState, processId: ProcessId, reason: CancelReason): void {
    this.#parts.commit.submit(lane, { type: "cancel-process", processId, reason }).catch(ignore);
  }

  /** Stops what the state demands to be stopped, and settles recorded processes that were never started. */
  satisfy(lane: SessionState): void {
    const { decided, durable } = lane;
    if (decided.processes.live.length === 0) return;
    const deadline = this.#deadline();
    for (const { id, alone } of demandStops(decided)) {
      if (mayStopProcess(decided, durable, id)) this.#live.get(id)?.stop(alone ? "alone" : deadline, "with-call");
    }
    if (lane.epoch === undefined) return;
    for (const { id } of decided.processes.live) {
      if (this.#live.has(id) || !durable.processes.live.some((one) => one.id === id)) continue;
      // Recorded although its caller got an error: the store's answer was lost.
      const end = { processId: id, failed: UNBEGUN };
      // @fault unrecorded-process-stays-open
      this.#parts.commit.submit(lane, { type: "settle-process", end }).catch(ignore);
    }
  }

  /** A stop was decided: stops what it covers in this tick, whatever the store does. */
  stopAll(lane: SessionState, ids: readonly ProcessId[], within: StopWithin): void {
    for (const id of ids) this.#live.get(id)?.stop(within, withCall(lane, id));
  }

  /** Moves a process to the background. False: it has ended, or is being stopped. */
  async detach(lane: SessionState, processId: ProcessId, feedback: Feedback): Promise<boolean> {
    const live = this.#live.get(processId);
    await this.#parts.commit.submit(lane, { type: "detach-process", processId, feedback });
    // By what is recorded rather than the answer: while the store fails it may be decided twice.
    return live?.detached === true;
  }

  /** Whether this call has pending processes: neither recorded as ended, nor past their deadline. */
  hasPending({ decided, durable }: SessionState, call: CallId): boolean {
    if (decided.processes.live.length === 0 && durable.processes.live.length === 0) return false;
    const isPending = ({ id, owner }: Process): boolean => owner === call && this.#live.get(id)?.isLate === false;
    if (decided.processes.live.some(isPending)) return true;
    // Its end is decided, and not durable yet.
    const isLeft = (id: ProcessId): boolean => decided.processes.live.some((one) => one.id === id);
    return durable.processes.live.some((one) => isPending(one) && !isLeft(one.id));
  }

  /** A call has returned: stops the processes it has left. Resolves when they have ended. */
  async endOf(lane: SessionState, call: CallId): Promise<void> {
    await this.#endAll(lane, (owner) => owner === call, { kind: "parent", id: call });
  }

  async #endAll(
    lane: SessionState,
    isMeant: (owner: CallId | SessionId) => boolean,
    reason: CancelReason,
  ): Promise<void> {
    const deadline = this.#deadline();
    // Each is awaited once: then its end is recorded, or it is late.
    const waited = new Set<LiveProcess>();
    while (lane.phase !== "gone") {
      // @fault begun-in-the-last-moment
      const meant = lane.decided.processes.live.flatMap(({ id, owner }) => (isMeant(owner) ? [id] : []));
      const ids = meant.filter((id) => this.#live.get(id)?.isLate !== true);
      const coming = ids.flatMap((id) => this.#live.get(id) ?? []).filter((live) => !waited.has(live));
      for (const live of coming) {
        waited.add(live);
        live.stop(deadline, reason.kind === "shutdown" ? withCall(lane, live.id) : undefined);
      }
      for (const id of ids) this.#cancel(lane, id, reason);
      // A process that is only in the log is settled as never started.
      if (coming.length === 0) return;
      await Promise.allSettled(coming.map(({ over }) => over));
    }
  }

  /** Another worker drives this lane: kills its processes here. */
  fenced(lane: SessionState): void {
    for (const { id } of [...lane.decided.processes.live, ...lane.durable.processes.live])
      this.#live.get(id)?.stop("at once");
  }

  /** At a shutdown: ends background processes, and records that. */
  async park(lane: SessionState): Promise<void> {
    await this.#endAll(lane, () => true, { kind: "shutdown" });
  }

  /** Starts nothing more, and ends what is left. */
  async close(): Promise<void> {
    // A spawner that could not be opened has nothing to close.
    await this.#spawner?.then((spawner) => spawner.close()).catch(ignore);
  }

  recorded(events: readonly Recorded[]): void {
    for (const event of events) {
      const detached = event.type === "process.detached" ? this.#live.get(event.processId) : undefined;
      if (detached !== undefined) detached.detached = true;
      if (event.type !== "process.settled") continue;
      if (event.dropped === true) this.dropped += 1; // @fault dropped-and-not-counted
      const live = this.#live.get(event.processId);
      if (live !== undefined) live.recorded = resultOf(event);
    }
  }

  spawner(): Promise<Spawner> {
    const { spawner } = this.#parts;
    if (spawner === undefined) return Promise.reject(NO_SPAWNER());
    this.#spawner ??= spawner().then(
      (opened) => {
        this.tier = opened.tier;
        return opened;
      },
      (error: unknown) => {
        // The missing part may exist the next time.
        this.#spawner = undefined;
        throw error;
      },
    );
    return this.#spawner;
  }

  /** Removes the kept output of these processes. */
  async discard(ids: readonly ProcessId[]): Promise<void> {
    if (ids.length === 0 || this.#parts.spawner === undefined) return;
    // Output that cannot be removed now is removed when it exceeds its limit.
    await this.spawner()
      .then((spawner) => spawner.discard?.(ids))
      .catch(ignore);
  }

  list(lane: SessionState): readonly ProcessInfo[] {
    return lane.durable.processes.live.map(({ id, owner, title, phase, feedback }) => ({
      ...{ id, owner, title, phase, feedback },
      ...this.#childInfo(id),
    }));
  }

  #childInfo(id: ProcessId): Partial<ProcessInfo> {
    const child = this.#live.get(id)?.child;
    if (child === undefined) return {};
    const { pid, tier, mechanism, profile, startedAt, output } = child;
    return { pid, tier, mechanism, profile, startedAt, bytes: output.counts.bytes.all };
  }

  /** Whether there is, or was, such a process. */
  async isKnown(id: ProcessId): Promise<boolean> {
    return (await this.#parts.store.process(id)) !== undefined;
  }

  /** The recorded end of a process. Undefined: it has not ended, or its log was trimmed. */
  async ended(id: ProcessId): Promise<ProcessResult | undefined> {
    const row = await this.#parts.store.process(id);
    if (row?.settledAt === undefined) return undefined;
    const { events } = await this.#parts.store.read(row.session, { after: row.settledAt - 1, limit: 1 });
    const [event] = events;
    if (event?.type === "process.settled" && event.processId === id) return resultOf(event);
    return row.outcome === undefined ? undefined : { processId: id, outcome: row.outcome };
  }

  #listener(lane: SessionState): ProcessListener {
    return {
      clock: this.#parts.clock,
      settle: (end, waiters) => this.#settle(lane, end, waiters),
      note: (live, output) => this.#publishOutput(lane, live, output),
      late: ({ owner }) => this.#over(lane, owner),
    };
  }

  async #settle(lane: SessionState, end: ProcessEnd, waiters: readonly Work[]): Promise<ProcessResult> {
    const { processId } = end;
    try {
      // @fault end-told-before-durable
      await this.#parts.commit.submit(lane, { type: "settle-process", end, waiters });
      const recorded = this.#live.get(processId)?.recorded ?? (await this.ended(processId));
      return recorded ?? { processId, outcome: { kind: "lost" } };
    } finally {
      const owner = this.#live.get(processId)?.owner;
      this.#live.delete(processId);
      if (owner !== undefined) this.#over(lane, owner);
    }
  }

  #over(lane: SessionState, owner: CallId | SessionId): void {
    if (isCall(owner)) this.#parts.over(lane, owner);
  }

  #deadline(): Deadline {
    return makeDeadline(this.#parts.clock, this.#parts.graceMs);
  }

  #publishOutput(lane: SessionState, live: LiveProcess, output: Output): void {
    const note = noteOf(output);
    if (note === undefined) return;
    const { bytes, tail } = note;
    const { counts, lastAt } = output;
    const silenceMs = Math.max(0, Math.round(this.#parts.clock.elapsed() - lastAt));
    const delta = { type: "output", processId: live.id, bytes, lines: counts.lines, silenceMs, tail } as const;
    this.#parts.feeds.delta(lane.id, delta, lane.durable.head);
  }
}

export function resultOf(event: Extract<Recorded, { type: "process.settled" }>): ProcessResult {
  const { type: _, seq: __, at: ___, dropped: ____, ...result } = event;
  return result;
}

const UNBEGUN = {
  code: "unavailable",
  message: "It was never started: the store did not answer in time.",
} as const;

/** Whether a stop of it is decided that can still be refused, or the log may contain a stop that is unknown here. */
function isInDoubt({ phase, health, decided, durable }: SessionState, id: ProcessId): boolean {
  if (phase === "gone") return false;
  return health.kind === "unknown" || isStopRefusable(decided, durable, id);
}

const NO_SPAWNER = (): ControlError =>
  new ControlError("uncontained", "No processes can be started here: Belay was opened without them.", {
    hint: "Open it with `processes: {}`.",
  });

const ignore = (): void => {};

/** A process of a call is stopped with it, and one of the session separately. */
function withCall({ decided }: SessionState, id: ProcessId): "with-call" | undefined {
  const owner = decided.processes.live.find((one) => one.id === id)?.owner;
  return owner !== undefined && isCall(owner) ? "with-call" : undefined;
}

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
