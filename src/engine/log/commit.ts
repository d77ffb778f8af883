// The only writer of the log. Every command becomes events here, in the tick in which it arrives.
//
// Invariants
// 1. A command is decided when it is received. What only the store knows (a key that is taken, a head that has moved)
//    comes back from the append, and the batch is decided again.
// 2. A command is answered when the events behind its answer are durable. Every wait for the store is bounded.
// 3. A refused command leaves nothing behind, neither in memory nor in the log.
// 4. Stops and ends of work are never refused because the store fails: they are kept until they are recorded.
import { ControlError, toControlError } from "../../core/errors.ts";
import { COMMIT_ATTEMPTS_MAX, MEMO_MS } from "../../core/limits.ts";
import type { Answer, Command } from "../../core/model/command.ts";
import type { Recorded } from "../../core/model/event.ts";
import { evolve, type Lane } from "../../core/model/lane.ts";
import { covers } from "../../core/policy/covers.ts";
import { decide } from "../../core/policy/decide.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { Appended, Store } from "../../ports/store.ts";
import { closing, drivenByAnother, unanswered } from "../shutdown-errors.ts";
import { answerWritten, asksForSnapshot, batchOf, hasSnapshot, numbered, readNews } from "./batch-in-flight.ts";
import { noAnswer } from "./bounded-store.ts";
import type { CommitListener } from "./commit-listener.ts";
import { NONE, type Ports } from "./commit-parts.ts";
import { ErrorTexts } from "./error-text.ts";
import { afterFailure, type Health, isUnwritten, maySend, takesCommands, WELL } from "./health.ts";
import {
  applyStoreKnowledge,
  drivenElsewhere,
  dropStart,
  exactStops,
  isCancel,
  isKept,
  isLasting,
  isStop,
  isTaken,
  keepRule,
  mayLand,
  needsLease,
  notRecorded,
  refusedIn,
  stopsBeforeEnds,
  withKnownKey,
  withLocalKnowledge,
} from "./pending-commands.ts";
import type { Flight, Pending, SessionState } from "./session-state.ts";
import { UnansweredBatches } from "./unanswered-batches.ts";

export class Commit {
  readonly #errorTexts: ErrorTexts;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #notify: Notify;
  readonly #then: CommitListener; // @fault told-before-durable:then
  // Batches with a timeout for their callers. A late answer of the store still counts.
  readonly #unanswered: UnansweredBatches;
  #stopped = false;

  constructor({ store, clock, notify, consequences, redact }: Ports) {
    this.#errorTexts = new ErrorTexts(redact, notify);
    this.#store = store;
    this.#clock = clock;
    this.#notify = notify;
    this.#then = consequences;
    this.#unanswered = new UnansweredBatches(clock, (lane, flight) => {
      if (lane.flight === flight && lane.phase !== "gone") this.#failed(lane, noAnswer());
    });
  }

  /** No retries from now on. */
  stop(lanes: Iterable<SessionState>): void {
    this.#stopped = true;
    for (const lane of lanes) lane.cancelRetry();
  }

  /** Belay has closed: rejects every caller that still waits. Batches that were sent may have been written. */
  leave(lanes: Iterable<SessionState>): void {
    for (const lane of lanes) {
      const unclear = lane.health.kind === "unknown";
      for (const entry of lane.flight?.entries ?? []) entry.reject(unanswered(lane.id));
      for (const entry of lane.takeUnsent()) entry.reject(unclear ? unanswered(lane.id) : closing());
      // A late answer of the store has no consequences.
      lane.phase = "gone"; // @fault late-answer-goes-on
      lane.flight = undefined;
      lane.releaseWaiters();
    }
    this.#unanswered.clear();
  }

  /** Decides a command in this tick, and calls `decided`. Resolves when it is durable; rejects if it cannot be. */
  submit<C extends Command>(lane: SessionState, command: C, decided?: (answer: Answer<C>) => void): Promise<Answer<C>> {
    const clean = this.#errorTexts.redacted(lane.id, command);
    return new Promise((resolve, reject) => {
      this.#receive(lane, { ...NONE, command: clean, resolve, reject, decided } as Pending);
    });
  }

  /** Resolves when everything decided before it is durable. */
  barrier(lane: SessionState, also?: "snapshot"): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#receive(lane, { ...NONE, also, resolve: () => resolve(), reject });
    });
  }

  /** Another writer has extended the log: reads on with a batch, or after a pause if the store refuses that. */
  readOn(lane: SessionState): void {
    this.barrier(lane, "snapshot").catch(() => {
      if (lane.phase !== "ready" || lane.health.kind !== "refusing") return;
      lane.health = { ...lane.health, kind: "unknown" };
      this.#retryLater(lane);
    });
  }

  /** Resolves when nothing of this lane is in flight, even if more is decided meanwhile. */
  // @fault stop-behind-a-batch:drained
  drained(lane: SessionState): Promise<void> {
    const isDrained = lane.pending.length === 0 && lane.flight === undefined && lane.health.kind !== "unknown";
    if (isDrained || lane.phase === "gone") return Promise.resolve();
    return new Promise((resolve) => {
      lane.drained = [...lane.drained, resolve];
    });
  }

  /** Whether commands of running work are accepted now. */
  takesCommands = (lane: SessionState): boolean => takesCommands(lane.health, this.#clock.elapsed());

  /** The lane is loaded: decides the commands received meanwhile, in order, before anything begins. */
  loaded(lane: SessionState): void {
    const { received } = lane;
    lane.received = [];
    for (const entry of received) this.#receive(lane, entry);
  }

  // @fault stop-behind-a-batch:receive
  #receive(lane: SessionState, entry: Pending): void {
    const { health, phase } = lane;
    // @fault stop-behind-a-batch
    if (phase === "gone") entry.reject(drivenByAnother(lane.id));
    else if (phase === "loading") lane.received.push(entry);
    else if (needsLease(entry) && lane.epoch === undefined) entry.reject(drivenElsewhere(lane));
    else if (health.kind === "well" || isTaken(entry, health, this.#clock.elapsed())) this.#decide(lane, entry);
    else if (isKept(entry, health)) this.#keep(lane, entry, health);
    else entry.reject(health.error);
  }

  /** Decides a stop or an end that cannot be recorded yet. */
  #keep(lane: SessionState, entry: Pending, health: Exclude<Health, { kind: "well" }>): void {
    this.#decide(lane, entry);
    if (maySend(health, this.#clock.elapsed())) return;
    // An answer that needs no record is given now; any other when it is recorded.
    const isOnly = lane.flight === undefined && lane.pending.length === 1 && health.kind === "refusing";
    if (isOnly && entry.events.length + entry.memos.length === 0) {
      lane.pending = [];
      entry.resolve(entry.answer);
    } else if (isStop(entry.command)) notRecorded(entry, health.error);
  }

  #decide(lane: SessionState, entry: Pending): void {
    const isUnstarted = dropStart(lane, entry.command, (one) => this.#tryApply(lane, one));
    const before = lane.decided;
    this.#tryApply(lane, entry);
    this.#flushSoon(lane);
    const { command } = entry;
    if (command === undefined) return;
    // A stop that changes nothing may reach work that is not stopped yet. @fault cancel-hidden-by-an-interrupt
    const isNew =
      isUnstarted || entry.events.length + entry.memos.length > 0 || (isCancel(command) && command.once === undefined);
    if (!isNew) return;
    if (isCancel(command)) Object.assign(entry, { covered: covers(before, command), liveRun: before.live?.id });
    this.#then.decided(lane, command, entry.covered);
  }

  #tryApply(lane: SessionState, entry: Pending): void {
    try {
      this.#apply(lane, entry);
      lane.pending.push(entry);
      entry.decided?.(entry.answer);
    } catch (error) {
      // A contradiction in the state neither ends the worker nor leaves the caller waiting.
      this.#notify({ type: "bug", session: lane.id, error });
      entry.reject(toControlError(error));
    }
  }

  #apply(lane: SessionState, entry: Pending): void {
    if (entry.command === undefined) return;
    entry.command = withLocalKnowledge(lane, entry.command);
    const now = this.#clock.elapsed();
    lane.forgetMemos(now - MEMO_MS);
    const { events, answer, memos = NONE.memos } = decide(lane.decided, withKnownKey(lane, entry.command));
    Object.assign(entry, { events, answer, memos });
    const next = events.reduce<Lane>(evolve, lane.decided);
    lane.decided = memos.length === 0 ? next : { ...next, memos: next.memos.with(memos, now) };
  }

  /** In a microtask, so that all decisions of one tick are one batch. */
  #flushSoon(lane: SessionState): void {
    queueMicrotask(() => this.#flush(lane));
  }

  #flush(lane: SessionState): void {
    if (lane.flight !== undefined || lane.pending.length === 0) return;
    if (lane.health.kind !== "well" && !maySend(lane.health, this.#clock.elapsed())) return;
    const entries = lane.pending.splice(0);
    const events = entries.flatMap((entry) => entry.events);
    const memos = entries.flatMap((entry) => entry.memos);
    // @fault memo-not-durable
    if (events.length + memos.length === 0 && !asksForSnapshot(entries)) {
      for (const entry of entries) entry.resolve(entry.answer);
      this.#rest(lane);
      return;
    }
    this.#send(lane, { entries, events, memos, after: lane.decided });
  }

  #send(lane: SessionState, batch: Pick<Flight, "entries" | "events" | "memos" | "after">): void {
    const answers = batch.entries.map(({ answer }) => answer);
    const flight: Flight = { ...batch, answers, at: this.#clock.now(), sentAt: this.#clock.elapsed() };
    lane.flight = flight; // @fault answered-before-durable
    for (const entry of flight.entries) {
      entry.flights = [...(entry.flights ?? []).filter(({ isUnwritten }) => isUnwritten !== true), flight];
    }
    this.#unanswered.add(lane, flight);
    // @fault told-before-durable
    flight.landing = this.#store.append(batchOf(lane, flight)).then(
      (appended) => this.#answered(lane, flight, appended),
      (error: unknown) => this.#lost(lane, flight, error),
    );
  }

  #answered(lane: SessionState, flight: Flight, appended: Appended): void {
    flight.isAnswered = true;
    this.#unanswered.remove(flight);
    const { kind } = appended;
    if (kind !== "appended") flight.isUnwritten = true; // @fault late-batch-not-read
    if (lane.flight !== flight) {
      // It timed out and was sent again since: the later batch finds it in the log. A lane that is gone sends no more,
      // so the lane loaded after it reads the log.
      if (kind === "appended" && lane.phase === "gone") this.#then.landedLate(lane.id, appended.head);
      return;
    }
    // @fault fault-swallowed:landed
    if (kind === "appended") this.#landed(lane, flight, numbered(lane, flight));
    else if (lane.phase === "gone") return;
    else if (kind === "fenced") this.fence(lane);
    else if (kind === "moved") void this.#moved(lane, flight);
    else {
      // Decided again with the store's knowledge: keys that have a run, memos of another worker, too many memos.
      this.#known(lane);
      const entries = [...flight.entries, ...lane.pending];
      this.#again(lane, applyStoreKnowledge(lane, { entries, known: appended, now: this.#clock.elapsed() }));
    }
  }

  #lost(lane: SessionState, flight: Flight, error: unknown): void {
    flight.isAnswered = true;
    this.#unanswered.remove(flight);
    const failed = toControlError(error);
    if (isUnwritten(failed)) flight.isUnwritten = true;
    if (lane.flight === flight && lane.phase !== "gone") this.#failed(lane, failed); // @fault fault-swallowed
  }

  #landed(lane: SessionState, flight: Flight, events: readonly Recorded[]): void {
    lane.flight = undefined;
    lane.durable = flight.after;
    lane.moves = 0;
    lane.health = WELL;
    lane.cancelRetry();
    if (hasSnapshot(lane, flight)) lane.snapshotAt = lane.durable.head;
    this.#then.recorded(lane, events);
    for (const entry of flight.entries) entry.resolve(entry.answer);
    if (lane.pending.length > 0) this.#flushSoon(lane);
    else this.#rest(lane);
  }

  /** Another writer was faster: reads on, and decides everything again that was decided on the old head. */
  async #moved(lane: SessionState, flight: Flight): Promise<void> {
    lane.moves += 1;
    try {
      if (lane.moves > COMMIT_ATTEMPTS_MAX) {
        throw new ControlError("overloaded", `Session ${lane.id} is written to faster than Belay can decide.`);
      }
      const news = await readNews(this.#store, lane);
      if (lane.phase === "gone" || lane.flight !== flight) return;
      this.#known(lane);
      this.#note(lane, news);
      this.#again(lane, answerWritten(lane, flight.entries, { news, now: this.#clock.elapsed() }));
    } catch (error) {
      if (lane.phase === "gone" || lane.flight !== flight) return;
      // The batch is kept until the log is read: the log may contain an earlier attempt of it.
      this.#failed(lane, toControlError(error), "unread");
    }
  }

  /** The log has been read, which does not prove that it can be written: pauses keep growing until a batch succeeds. */
  #known(lane: SessionState): void {
    if (lane.health.kind !== "unknown") return;
    lane.health = { ...lane.health, kind: "refusing", scope: "new", until: 0 };
    lane.cancelRetry();
  }

  #note(lane: SessionState, news: readonly Recorded[]): void {
    if (news.length === 0) return;
    lane.durable = news.reduce<Lane>(evolve, lane.durable);
    this.#then.recorded(lane, news);
  }

  #again(lane: SessionState, entries: readonly Pending[]): void {
    lane.flight = undefined;
    lane.pending = [];
    lane.decided = lane.durable;
    for (const entry of stopsBeforeEnds(lane, entries)) this.#tryApply(lane, entry);
    this.#flushSoon(lane);
    this.#then.caughtUp(lane);
    if (lane.pending.length === 0) this.#rest(lane);
  }

  /** The store failed. `unread`: the log has moved on and could not be read. */
  #failed(lane: SessionState, error: ControlError, log: "read" | "unread" = "read"): void {
    this.#notify({ type: "store", session: lane.id, code: error.code, message: error.message });
    const { flight } = lane;
    const scope = refusedIn(flight?.entries ?? []);
    const health = afterFailure(lane.health, error, scope, this.#clock.elapsed());
    lane.health = health.kind === "refusing" && log === "unread" ? { ...health, kind: "unknown" } : health;
    const unknown = lane.health.kind === "unknown" ? flight : undefined;
    if (unknown === undefined) lane.flight = undefined;
    const entries = [...(flight?.entries ?? []), ...lane.pending];
    const keeps = keepRule(lane.health, scope);
    const isSent = maySend(lane.health, this.#clock.elapsed());
    for (const entry of entries) {
      if (!keeps(entry)) entry.reject(error);
      else if (!isSent && isStop(entry.command)) notRecorded(entry, error); // @fault stop-told-before-it-is-recorded
    }
    // A batch in doubt stays decided until the log has been read: a stop must cover what may have been accepted.
    const again = unknown === undefined ? entries : lane.pending;
    lane.pending = [];
    // @fault refused-prompt-stays-decided, refused-stays-decided
    lane.decided = unknown === undefined ? lane.durable : unknown.after;
    // @fault refused-and-recorded
    for (const entry of stopsBeforeEnds(lane, again)) if (keeps(entry) || mayLand(entry)) this.#tryApply(lane, entry);
    this.#flushSoon(lane);
    this.#then.caughtUp(lane);
    if (lane.pending.length === 0 && lane.health.kind === "refusing") this.#rest(lane);
    this.#retryLater(lane);
  }

  #retryLater(lane: SessionState): void {
    if (this.#stopped || lane.health.kind === "well") return;
    const pause = Math.max(0, lane.health.until - this.#clock.elapsed());
    lane.cancelRetry();
    // Only kept commands keep the program alive.
    const kind = lane.pending.length === 0 && lane.health.kind === "refusing" ? "idle" : undefined;
    lane.retry = this.#clock.after(pause, () => void this.#retry(lane), kind); // @fault never-tried-again
  }

  async #retry(lane: SessionState): Promise<void> {
    lane.retry = undefined;
    if (lane.phase !== "ready" || lane.health.kind === "well") return;
    if (lane.health.kind === "unknown") return this.#resolve(lane);
    // A timer may fire a fraction of a millisecond early: the pause is over when it does.
    lane.health = { ...lane.health, until: Math.min(lane.health.until, this.#clock.elapsed()) };
    // Kept commands are sent first, alone; other demands of the state follow when they are written.
    this.#flush(lane);
    this.#then.caughtUp(lane);
  }

  /** Reads the log, which shows whether the batch in doubt was written. */
  async #resolve(lane: SessionState): Promise<void> {
    const { flight, health } = lane;
    let news: readonly Recorded[];
    try {
      news = await readNews(this.#store, lane);
    } catch (error) {
      if (lane.phase === "ready" && lane.health === health) this.#failed(lane, toControlError(error));
      return;
    }
    if (lane.phase !== "ready" || lane.health !== health || lane.flight !== flight) return;
    this.#known(lane);
    this.#note(lane, news);
    // A batch without an answer may still be written. Sent again as a whole, it is written once in any case.
    const sent = (flight?.entries ?? []).filter((entry) => isLasting(entry) || mayLand(entry));
    this.#again(lane, answerWritten(lane, sent, { news, now: this.#clock.elapsed() }));
  }

  /** Another worker drives this lane, or may soon: rejects every caller that waits for it here. */
  fence(lane: SessionState): void {
    const entries = [...(lane.flight?.entries ?? []), ...lane.takeUnsent()];
    lane.phase = "gone";
    // A batch in flight may still be written, and is then passed on to followers.
    if (lane.flight !== undefined) lane.flight.entries = [];
    lane.cancelRetry();
    for (const entry of entries) entry.reject(drivenByAnother(lane.id));
    lane.releaseWaiters();
    this.#then.fenced(lane, entries.flatMap(exactStops));
  }

  #rest(lane: SessionState): void {
    lane.releaseWaiters();
    this.#then.rested(lane);
  }
}
