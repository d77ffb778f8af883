// The engine: creates the components, passes on the consequences of each decision, and offers the requests of the
// library. It decides nothing; `core` does.
import { canonical } from "../core/canonical.ts";
import { ControlError } from "../core/errors.ts";
import type { CancelReason, Outcome } from "../core/model/cancel.ts";
import type { Accepted, Answer, Command, Created, QueueReceipt, Refused } from "../core/model/command.ts";
import type { Recorded } from "../core/model/event.ts";
import { type RunId, type Seq, type SessionId, sessionOf, type WorkerId } from "../core/model/ids.ts";
import { emptyLane } from "../core/model/lane.ts";
import type { Retention } from "../core/model/retention.ts";
import type { RunRow } from "../core/model/rows.ts";
import type { SessionDeleted } from "../core/model/upkeep.ts";
import type { Coverage } from "../core/policy/covers.ts";
import { standing } from "../core/policy/decide.ts";
import { isRefusedForItsKey } from "../core/policy/decide-once.ts";
import type { Agent } from "../ports/agent.ts";
import type { Clock, Ids } from "../ports/clock.ts";
import type { Notify } from "../ports/hooks.ts";
import type { Store } from "../ports/store.ts";
import { Acceptance, type Begun, type Made, type Prompted, type PromptRequest } from "./acceptance.ts";
import { Cancels, type Once, type Submit } from "./cancels.ts";
import { awaitedOutcome } from "./ends/end-waiter.ts";
import { Waiters } from "./ends/waiters.ts";
import { WorkEnds } from "./ends/work-ends.ts";
import type { EngineParts, Tap } from "./engine-parts.ts";
import { isRefused, requestOf } from "./keyed-request.ts";
import { AllSessionsFeed } from "./log/all-sessions-feed.ts";
import { readBarrier } from "./log/barrier.ts";
import { BoundedStore } from "./log/bounded-store.ts";
import { Commit } from "./log/commit.ts";
import type { CommitListener } from "./log/commit-listener.ts";
import { Feeds } from "./log/feed.ts";
import { type FollowItem, type Following, followPages } from "./log/follow.ts";
import { LeaseKeeper } from "./log/lease-keeper.ts";
import { pagedItems } from "./log/paged-items.ts";
import { SessionRegistry } from "./log/session-registry.ts";
import type { SessionState } from "./log/session-state.ts";
import type { Stoppable } from "./log/stoppable-generator.ts";
import { loopWatch } from "./loop-watch.ts";
import { type Modes, modesOf } from "./modes.ts";
import type { LiveProcess } from "./process/live-process.ts";
import type { ProcessHost } from "./process/process-handle.ts";
import { type BeginProcess, ProcessManager } from "./process/process-manager.ts";
import { closing, elsewhere, gone, leaving } from "./shutdown-errors.ts";
import { Removal } from "./upkeep/removal.ts";
import { type RetentionLoop, startRetention } from "./upkeep/retention.ts";
import { StoreCheck } from "./upkeep/store-check.ts";
import { StoreSize } from "./upkeep/store-size.ts";
import { AbortQueue } from "./work/abort-queue.ts";
import { Dispatcher } from "./work/dispatcher.ts";
import { Driver } from "./work/driver.ts";
import { HookRunner } from "./work/hooks.ts";
import { Questions } from "./work/questions.ts";
import { RunLimits } from "./work/run-limits.ts";
import type { WorkHost } from "./work/run-work.ts";
import { noteTimes } from "./work/start-times.ts";
import { UnrecordedStops } from "./work/unrecorded-stops.ts";
import { makeWorkStarter } from "./work/work-starter.ts";
import { LoopBudget, YieldGate } from "./yield-gate.ts";

type From = Pick<Following, "after" | "signal" | "deltas">;

export class Engine implements CommitListener, WorkHost {
  readonly agent: Agent;
  readonly store: Store;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly graceMs: number;
  readonly worker: WorkerId;
  readonly modes: Modes;
  readonly budget: LoopBudget;
  readonly storeCheck: StoreCheck;
  readonly storeSize: StoreSize;
  readonly allSessionsFeed: AllSessionsFeed;
  readonly feeds = new Feeds();
  readonly hooks: HookRunner;
  readonly commit: Commit;
  readonly lanes: SessionRegistry;
  readonly cancel: Cancels;
  readonly questions: Questions;
  readonly processes: ProcessManager;
  readonly ends: WorkEnds;
  readonly handles: ProcessHost;
  readonly drive: Driver;
  readonly dispatch: Dispatcher;
  readonly removal: Removal;
  readonly #ids: Ids;
  readonly #tap: Tap | undefined;
  readonly #keptStops = new UnrecordedStops();
  readonly #aborts: AbortQueue;
  readonly #acceptance: Acceptance;
  readonly #leaseKeeper: LeaseKeeper;
  readonly #limits: RunLimits;
  readonly #retention: Retention | undefined;
  phase: "open" | "closing" | "parking" | "closed" = "open";
  /** Keeps the store within its limits. Undefined: it has none. */
  retention: RetentionLoop | undefined;
  /** Number of results that arrived after their work had been abandoned, and were dropped. */
  late = 0;

  /** In the order of construction: each component receives those above it, and reports to the methods below. */
  constructor(parts: EngineParts) {
    const { clock, ids, graceMs, agent } = parts;
    const isClosed = (): boolean => this.phase === "closed";
    const store = new BoundedStore(parts.store, clock, (session) => this.#leaseKeeper.left(session), isClosed);
    const notify: Notify = (notice) => {
      if (notice.type === "late") this.late += 1;
      parts.notify(notice);
    };
    const open = (): boolean => this.phase === "open";
    this.agent = agent;
    this.store = store;
    this.clock = clock;
    this.notify = notify;
    this.graceMs = graceMs;
    this.#ids = ids;
    this.#tap = parts.tap;
    this.worker = ids.make("wrk_") as WorkerId;
    this.modes = modesOf(agent);
    this.budget = new LoopBudget(clock, loopWatch(parts.watch, { clock, notify, lane: (id) => this.lanes.peek(id) }));
    this.storeCheck = new StoreCheck(store, clock);
    this.storeSize = new StoreSize(store, clock);
    this.#retention = parts.retention;
    this.allSessionsFeed = new AllSessionsFeed(this.worker);
    this.hooks = new HookRunner(parts.hooks, clock, notify);
    const { worker, feeds } = this;
    const redact = parts.redact === undefined ? {} : { redact: parts.redact };
    const commit = new Commit({ store, clock, notify, consequences: this, ...redact });
    this.commit = commit;
    const lanes = new SessionRegistry({
      ...{ store, clock, worker, commit, open, resume: agent.onCrash ?? parts.resume },
      stopped: (lane) => this.#keptStops.submit(lane, commit),
      ready: (lane) => this.#ready(lane),
      release: (session) => feeds.reset(session),
      unloaded: (session, { retryable }) => this.#leaseKeeper.retry(session, "ours", retryable),
    });
    this.lanes = lanes;
    const fence = (lane: SessionState): void => commit.fence(lane);
    this.#leaseKeeper = new LeaseKeeper({ store, clock, worker, lanes, open, fence });
    this.#acceptance = new Acceptance({
      ...{ store, ids, commit, lanes, open },
      claimed: (lane) => this.#changed(lane),
      unclaimed: (session) => this.#leaseKeeper.retry(session, "ours", true),
    });
    const submit: Submit = (lane, command, once) => this.#submit(lane, command, once);
    const load = async (lane: SessionState): Promise<unknown> => this.phase !== "closed" && commit.barrier(lane);
    this.cancel = new Cancels({ store, lanes, submit, load });
    this.#limits = new RunLimits({ clock, limitMs: parts.runLimitMs, cancel: this.cancel });
    const waiters = new Waiters();
    this.questions = new Questions({ store, clock, commit, lanes, submit, waiters });
    const over: Driver["processOver"] = (lane, call) => this.drive.processOver(lane, call);
    const processes = new ProcessManager({ store, clock, graceMs, feeds, commit, over, spawner: parts.spawner });
    this.processes = processes;
    this.ends = new WorkEnds({ store, lanes, waiters, processes, pages: (session, from) => this.pages(session, from) });
    this.handles = this.#processHost();
    this.#aborts = new AbortQueue(clock);
    const world = makeWorkStarter(this, (lane) => open() && this.dispatch.hasSlot(lane));
    this.drive = new Driver({ clock, graceMs, world, aborts: this.#aborts });
    this.dispatch = new Dispatcher({ slotsMax: parts.liveRunsMax, commit, begin: (lane) => this.drive.satisfy(lane) });
    this.removal = new Removal(this, (session) => this.#leaseKeeper.removed(session));
  }

  /** The part of the engine that process handles use. */
  #processHost(): ProcessHost {
    const { clock, processes, lanes, cancel, ends, budget } = this;
    return {
      ...{ clock, processes, gate: new YieldGate(budget) },
      info: (id) => {
        const lane = lanes.peek(sessionOf(id));
        return lane === undefined ? undefined : processes.list(lane).find((one) => one.id === id);
      },
      cancel: (id, reason) => cancel.process(id, reason),
      settled: (id, signal) => ends.process(id, signal),
    };
  }

  /** Takes over the work that other workers, or an earlier process, have left. Resolves when all of it has begun. */
  async start(): Promise<void> {
    await this.#leaseKeeper.start();
    if (this.#retention !== undefined) this.retention = startRetention(this.#retention, this);
    this.storeCheck.watch(this.notify);
  }

  async create(session: SessionId | undefined, made: Made): Promise<{ id: SessionId; created: Created }> {
    return this.#acceptance.session(session, made);
  }

  begin(session: SessionId | undefined, made: Made, asked: PromptRequest): Begun {
    return this.#acceptance.promptIn(session, made, asked);
  }

  prompt(session: SessionId, asked: PromptRequest): Prompted {
    return this.#acceptance.prompt(session, asked);
  }

  /** Starts a process for the session itself. */
  async beginProcess(session: SessionId, begin: BeginProcess): Promise<LiveProcess> {
    this.#refuseWhenClosing();
    return this.processes.begin(this.lanes.get(session), begin);
  }

  async delete(session: SessionId, reason: CancelReason): Promise<SessionDeleted> {
    this.#refuseWhenClosing();
    return this.removal.remove(session, reason);
  }

  /** Sends any other command to a session. */
  async ask<C extends Command>(session: SessionId, command: C, key?: string): Promise<Answer<C>> {
    this.#refuseWhenClosing();
    return this.#submit(this.lanes.get(session), command, { key });
  }

  /** Changes the queue on behalf of a user. */
  async change(session: SessionId, command: QueueChange, key?: string): Promise<QueueReceipt> {
    const receipt = await this.ask(session, command, key);
    if (receipt.kind !== "unknown") return receipt;
    const state = (await this.loaded(session))?.durable;
    return state === undefined
      ? { kind: "refused", code: "not_found", message: `There is no session ${session}.` }
      : receipt;
  }

  /** The lane once all its decisions are durable, or as it is if the store fails. Undefined: no such session. */
  async loaded(session: SessionId): Promise<SessionState | undefined> {
    const lane = this.lanes.get(session);
    await readBarrier(lane, this);
    return lane.durable.phase === "absent" ? undefined : lane;
  }

  /** The receipt of a run's acceptance, with its current place. */
  async standing(row: RunRow): Promise<Accepted> {
    const { id, acceptedAt, content, session } = row;
    const state = (await this.loaded(session))?.durable ?? emptyLane(session);
    return standing(state, { runId: id, acceptedAt, content });
  }

  /** An id that no session has. */
  newSession(): SessionId {
    return this.#acceptance.newSession();
  }

  digest(text: string): string {
    return this.#ids.digest(text);
  }

  /** Resolves with the run's own outcome, once it is durable. Undefined: no such run. */
  async outcome(runId: RunId): Promise<Outcome | undefined> {
    const recent = this.ends.waiters.recent(runId);
    if (recent !== undefined) return recent;
    if (this.phase === "closed") throw gone(runId);
    const release = (run: RunId): ControlError => (this.phase === "closed" ? leaving(run) : elsewhere(run));
    const loaded: Engine["loaded"] = (session) => this.loaded(session);
    const { store, lanes } = this;
    return awaitedOutcome(runId, { store, lanes, waiters: this.ends.waiters, loaded, release });
  }

  /** Number of runs, waiters and followers in memory: 0 when nothing runs and no caller waits. */
  get held(): number {
    return this.lanes.runCount + this.ends.waiters.size + this.feeds.size;
  }

  follow(session: SessionId, from: From): AsyncGenerator<FollowItem, void> {
    return pagedItems(this.pages(session, () => from));
  }

  /** The same, in pages of the events available. The starting position is read with the first page. */
  pages(session: SessionId, from: () => From): Stoppable<readonly FollowItem[]> {
    const drives = (): boolean => this.lanes.peek(session)?.epoch !== undefined;
    const outputSoFar = (): ReturnType<SessionState["outputSoFar"]> => this.lanes.peek(session)?.outputSoFar();
    return followPages(this.store, this.feeds, session, () => ({ ...from(), drives, outputSoFar }));
  }

  // Consequences of a decision (CommitListener).

  /** Carries out a stop in the tick of its decision, even if it cannot be recorded. Everything else waits for that. */
  decided(lane: SessionState, command: Command, covered: Coverage | undefined): void {
    if (covered !== undefined && "reason" in command) {
      const deadline = this.drive.deadline();
      this.drive.stopAll(lane, covered.work, command.reason, deadline); // @fault stop-waits-for-the-disk
      const alone = command.type === "cancel-process" && command.reason.kind !== "shutdown";
      // @fault child-stop-waits-for-the-disk
      this.processes.stopAll(lane, covered.processes, alone ? "alone" : deadline);
    }
    this.dispatch.note(lane); // @fault queue-stranded-after-failure:decided, queue-stranded-after-cancel:decided
  }

  recorded(lane: SessionState, events: readonly Recorded[]): void {
    // It was written after its session was loaded again: the lane that drives the session now reads it from the log.
    if (lane.phase === "gone" && this.lanes.readOn(lane.id, events.at(-1)?.seq ?? 0)) return; // @fault landed-twice
    for (const event of events) {
      // Including a run whose acceptance was never answered, or that no client requested: a cancel finds it at once.
      // @fault caught-up-run-without-a-home
      if (event.type === "run.accepted" && lane.phase !== "gone") this.lanes.indexRun(event.runId, lane.id);
      if (event.type === "run.settled") this.lanes.unindexRun(event.runId); // @fault run-kept-in-mind
    }
    noteTimes(lane, events);
    lane.transcript?.note(events); // @fault transcript-stands-still:note
    if (lane.durable.live === undefined && lane.transcript?.isLarge === true) lane.transcript = undefined;
    this.feeds.push(lane.id, events);
    this.allSessionsFeed.push(lane.id, events);
    this.#tap?.(lane.id, events);
    this.ends.waiters.recorded(events);
    this.processes.recorded(events);
    this.hooks.recorded(lane, events);
    this.#limits.recorded(lane, events);
    this.#changed(lane, events); // @fault queue-stranded-after-failure:recorded, queue-stranded-after-cancel:recorded
  }

  caughtUp(lane: SessionState): void {
    this.#changed(lane);
  }

  landedLate(session: SessionId, head: Seq): void {
    this.lanes.readOn(session, head);
  }

  rested(lane: SessionState): void {
    this.lanes.note(lane);
  }

  fenced(lane: SessionState, kept: readonly Command[]): void {
    this.lanes.forget(lane);
    lane.epoch = undefined;
    this.dispatch.forget(lane);
    this.#limits.leave(lane.id); // @fault limit-outlives-the-lane
    // The next driver records how they end, and not through this worker.
    this.ends.waiters.leave(this.lanes.unindexSession(lane.id));
    this.feeds.reset(lane.id);
    this.ends.fenced(lane);
    this.processes.fenced(lane); // @fault fenced-lane-leaves-children
    this.drive.release(lane);
    this.#leaseKeeper.left(lane.id);
    if (kept.length === 0) return; // @fault unrecorded-stop-lost-with-the-lease
    this.#keptStops.add(lane.id, kept);
    if (this.phase === "open") this.lanes.get(lane.id);
  }

  /** Accepts no new prompts from now on. The rest of a graceful shutdown is in `shutdown.ts`. */
  stopAccepting(phase: "closing" | "parking"): void {
    this.phase = phase;
    this.dispatch.stop();
    this.retention?.stop();
    this.storeCheck.unwatch();
    this.#leaseKeeper.stop();
  }

  /** The last step: releases callers that still wait or follow. */
  closed(): void {
    this.phase = "closed";
    for (const lane of this.lanes.all()) this.drive.leave(lane);
    this.#aborts.flush();
    this.commit.stop(this.lanes.all());
    this.#limits.close();
    this.budget.watch?.close();
    this.ends.waiters.close();
    this.feeds.closeAll();
    this.allSessionsFeed.close();
  }

  /** The store is closed: callers that still wait for it get an error, and work that has not stopped is abandoned. */
  left(): void {
    const lanes = [...this.lanes.all()];
    this.commit.leave(lanes); // @fault closed-house-keeps-callers-waiting
    for (const lane of lanes) this.drive.abandonAll(lane);
  }

  #ready(lane: SessionState): void {
    this.#leaseKeeper.loaded(lane.id);
    this.feeds.reset(lane.id);
    this.#changed(lane);
  }

  /** `events`: nothing else has changed. */
  #changed(lane: SessionState, events?: readonly Recorded[]): void {
    if (lane.refused.length > 0) this.ends.waiters.leave(this.lanes.forgetRefused(lane), "absent");
    this.drive.satisfy(lane, events); // @fault child-stop-waits-for-the-disk:drive
    this.processes.satisfy(lane);
    this.dispatch.note(lane);
    this.lanes.note(lane);
  }

  async #submit<C extends Command>(lane: SessionState, command: C, once: Once<Answer<C>>): Promise<Answer<C>> {
    const { key, decided } = once;
    if (this.phase === "closed") throw closing();
    if (key === undefined) return this.commit.submit(lane, command, decided);
    const content = this.#ids.digest(canonical(requestOf(command)));
    const answer: Answer<C> | Refused = await this.commit.submit(lane, { ...command, once: { key, content } }, decided);
    if (isRefused(answer) && isRefusedForItsKey(answer)) throw new ControlError(answer.code, answer.message);
    return answer;
  }

  #refuseWhenClosing(): void {
    if (this.phase !== "open") throw closing();
  }
}

export type QueueChange = Extract<Command, { readonly type: "edit" | "move" | "withdraw" | "steer" }>;
