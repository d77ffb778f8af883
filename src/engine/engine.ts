// The house: one object that accepts, cancels, drives and tells. It takes no decision of its own; `core` does.
import type { Outcome } from "../core/cancel.ts";
import { canonical } from "../core/canonical.ts";
import type { Accepted, Answer, Command, CommandOf, Created, QueueReceipt, Refused } from "../core/command.ts";
import { ControlError } from "../core/control-error.ts";
import type { Coverage } from "../core/covers.ts";
import { repeat, standing } from "../core/decide.ts";
import type { Recorded } from "../core/event.ts";
import type { RunId, SessionId, WorkerId } from "../core/ids.ts";
import { emptyLane } from "../core/lane.ts";
import type { RunRow } from "../core/rows.ts";
import type { Clock, Ids, Notify, Store } from "../ports.ts";
import { Attendance } from "./attendance.ts";
import { awaitedOutcome } from "./awaited-outcome.ts";
import { BoundedStore } from "./bounded-store.ts";
import { Cancels } from "./cancels.ts";
import { Chronicle } from "./chronicle.ts";
import { closing, elsewhere, gone, leaving } from "./closing.ts";
import { Commit } from "./commit.ts";
import { Dispatch } from "./dispatch.ts";
import { Drive } from "./drive.ts";
import type { EngineParts, Tap } from "./engine-parts.ts";
import { Feeds } from "./feed.ts";
import { type Following, followPages, type Heard } from "./follow.ts";
import { makeHandleDesk } from "./handle-desk.ts";
import { HookRunner } from "./hooks.ts";
import { KeptStops } from "./kept-stops.ts";
import { Lanes } from "./lanes.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveProcess } from "./live-process.ts";
import { look } from "./look.ts";
import { type Modes, modesOf } from "./modes.ts";
import { oneByOne } from "./one-by-one.ts";
import { Outcomes } from "./outcomes.ts";
import type { HandleDesk } from "./process-handle.ts";
import { type Begin, Processes } from "./processes.ts";
import type { Asked, Begun, Made, Prompted } from "./prompted.ts";
import { Questions } from "./questions.ts";
import { RunLimits } from "./run-limits.ts";
import { noteTimes } from "./since.ts";
import type { Stoppable } from "./stoppable.ts";
import { StoreCheck } from "./store-check.ts";
import { makeWorld } from "./world.ts";

type From = Pick<Following, "after" | "signal" | "deltas">;

export class Engine {
  readonly worker: WorkerId;
  readonly store: Store;
  readonly clock: Clock;
  readonly lanes: Lanes;
  readonly dispatch: Dispatch;
  readonly drive: Drive;
  readonly commit: Commit;
  readonly cancel: Cancels;
  readonly questions: Questions;
  readonly processes: Processes;
  readonly handles: HandleDesk;
  readonly chronicle: Chronicle;
  readonly modes: Modes;
  readonly storeCheck: StoreCheck;
  readonly #ids: Ids;
  readonly #feeds = new Feeds();
  readonly #outcomes = new Outcomes();
  readonly #hooks: HookRunner;
  readonly #limits: RunLimits;
  readonly #attendance: Attendance;
  readonly #tap: Tap | undefined;
  readonly #keptStops = new KeptStops();
  phase: "open" | "closing" | "parking" | "closed" = "open";
  /** Results that came after their work had been given up, and were dropped. */
  late = 0;

  constructor(parts: EngineParts) {
    const { clock } = parts;
    const store = new BoundedStore(parts.store, clock);
    const notify: Notify = (notice) => {
      if (notice.type === "late") this.late += 1;
      parts.notify(notice);
    };
    this.store = store;
    this.clock = clock;
    this.#tap = parts.tap;
    this.modes = modesOf(parts.agent);
    this.storeCheck = new StoreCheck(store, clock);
    this.#ids = parts.ids;
    this.worker = parts.ids.make("wrk_") as WorkerId;
    this.chronicle = new Chronicle(this.worker);
    this.#hooks = new HookRunner(parts.hooks, clock, notify);
    const commit = (): Commit => this.commit;
    const submit = <C extends Command>(lane: LiveLane, command: C, key: string | undefined): Promise<Answer<C>> =>
      this.#submit(lane, command, key);
    this.questions = new Questions({ store, clock, commit, lanes: () => this.lanes, submit });
    this.processes = new Processes({ ...parts, store, feeds: this.#feeds, commit });
    this.handles = makeHandleDesk(this);
    const world = makeWorld({
      ...parts,
      store,
      notify,
      feeds: this.#feeds,
      hooks: this.#hooks,
      questions: this.questions,
      handles: this.handles,
      digest: (text) => this.digest(text),
      commit,
      drive: () => this.drive,
      parking: () => this.phase === "parking",
      begins: () => this.phase === "open",
    });
    this.drive = new Drive({ clock, graceMs: parts.graceMs, world });
    this.dispatch = new Dispatch({ slotsMax: parts.liveRunsMax, commit });
    this.commit = new Commit({ store, clock, notify, consequences: this });
    this.lanes = new Lanes({
      ...parts,
      store,
      resume: parts.agent.onCrash ?? parts.resume,
      worker: this.worker,
      commit,
      open: () => this.phase === "open",
      recovered: (lane) => this.#keptStops.submit(lane, this.commit),
      ready: (lane) => {
        this.#attendance.loaded(lane.id);
        this.#feeds.reset(lane.id);
        this.#changed(lane);
      },
      letGo: (session) => this.#feeds.reset(session),
      unloaded: (session, { retryable }) => this.#attendance.retry(session, "ours", retryable),
    });
    const { worker, lanes } = this;
    const load = async (lane: LiveLane): Promise<unknown> => this.phase !== "closed" && this.commit.barrier(lane);
    this.cancel = new Cancels({ store, lanes, submit, load });
    const fence = (lane: LiveLane): void => this.commit.fence(lane);
    this.#attendance = new Attendance({ store, clock, worker, lanes, open: () => this.phase === "open", fence });
    this.#limits = new RunLimits({ clock, limitMs: parts.runLimitMs, cancel: this.cancel });
  }

  /** Takes up what other workers, or an earlier life, have left. Resolves when all of it is under way. */
  async start(): Promise<void> {
    await this.#attendance.start();
  }

  async create(session: SessionId | undefined, made: Made): Promise<{ id: SessionId; created: Created }> {
    this.#refuseWhenClosing();
    const id = session ?? this.newSession();
    const created = await this.#create(session === undefined ? this.lanes.fresh(id) : this.lanes.get(id), made);
    return { id, created };
  }

  /** A prompt in a session of its own, both recorded together. In a session that exists, it joins that one. */
  begin(session: SessionId | undefined, made: Made, asked: Asked): Begun {
    const id = session ?? this.newSession();
    if (this.phase === "open") {
      const lane = session === undefined ? this.lanes.fresh(id) : this.lanes.get(id);
      // Refused together with the prompt, which says why.
      this.#create(lane, made).catch(() => {});
    }
    return { sessionId: id, ...this.prompt(id, { ...asked, made }) };
  }

  async #create(lane: LiveLane, made: Made): Promise<Created> {
    const created = await this.commit.submit(lane, { type: "create", ...made });
    // A session that was absent had no lease to take.
    if (lane.epoch === undefined) {
      // A claim that failed may still have been made: then no other worker takes the session up, so this one must.
      await this.lanes.claim(lane).catch((error: unknown) => {
        this.#attendance.retry(lane.id, "ours", true);
        throw error;
      });
      this.#changed(lane);
    }
    return created;
  }

  /** Registers a prompt in this very tick: whatever follows, also in the same tick, comes after it. */
  prompt(session: SessionId, asked: Asked): Prompted {
    const runId = this.#ids.make("run_") as RunId;
    if (this.phase !== "open") return { runId, accepted: Promise.reject(closing()) };
    this.lanes.moveIn(runId, session);
    const { prompt, delivery, key } = asked;
    const bound = key === undefined ? undefined : { key, content: this.#content(asked) };
    const command: CommandOf<"accept"> = {
      type: "accept",
      runId,
      prompt,
      delivery,
      ...bound, // @fault key-not-recorded
    };
    const lane = this.lanes.get(session);
    const accepted = this.commit.submit(lane, command).then(
      (answer) => this.#accepted(lane, command, answer),
      (error: unknown) => {
        this.lanes.refused(lane, runId); // @fault refused-run-keeps-its-home
        throw error;
      },
    );
    return { runId, accepted };
  }

  #content({ delivery, prompt, made = {} }: Asked): string {
    const within = Object.keys(made).length === 0 ? [] : [made];
    return this.#ids.digest(canonical([delivery, prompt.text, prompt.data, ...within]));
  }

  /** A process for the session itself. */
  async beginProcess(session: SessionId, begin: Begin): Promise<LiveProcess> {
    this.#refuseWhenClosing();
    return this.processes.begin(this.lanes.get(session), begin);
  }

  /** Anything else that is asked of a session. */
  async ask<C extends Command>(session: SessionId, command: C, key?: string): Promise<Answer<C>> {
    this.#refuseWhenClosing();
    return this.#submit(this.lanes.get(session), command, key);
  }

  /** A change of the queue, by whoever it belongs to. */
  async change(session: SessionId, command: QueueChange, key?: string): Promise<QueueReceipt> {
    const receipt = await this.ask(session, command, key);
    if (receipt.kind !== "unknown") return receipt;
    const state = (await this.loaded(session))?.durable;
    return state === undefined
      ? { kind: "refused", code: "not_found", message: `There is no session ${session}.` }
      : receipt;
  }

  /**
   * The lane with everything decided so far durable, or with what is while the store is in trouble; undefined if there
   * is no such session.
   */
  async loaded(session: SessionId): Promise<LiveLane | undefined> {
    const lane = this.lanes.get(session);
    await look(lane, this);
    return lane.durable.phase === "absent" ? undefined : lane;
  }

  /** A run's acceptance, as it would be answered now. */
  async standing(row: RunRow): Promise<Accepted> {
    const { id, acceptedAt, content, session } = row;
    const state = (await this.loaded(session))?.durable ?? emptyLane(session);
    return standing(state, { runId: id, acceptedAt, content });
  }

  /** An id that no session has. */
  newSession(): SessionId {
    return this.#ids.make("ses_") as SessionId;
  }

  digest(text: string): string {
    return this.#ids.digest(text);
  }

  /** Resolves with the run's own outcome, once it is durable. Undefined: no such run. */
  async outcome(runId: RunId): Promise<Outcome | undefined> {
    const recent = this.#outcomes.recent(runId);
    if (recent !== undefined) return recent;
    if (this.phase === "closed") throw gone(runId);
    const letGo = (run: RunId): ControlError => (this.phase === "closed" ? leaving(run) : elsewhere(run));
    const loaded = (session: SessionId): Promise<LiveLane | undefined> => this.loaded(session);
    const { store, lanes } = this;
    return awaitedOutcome(runId, { store, lanes, outcomes: this.#outcomes, loaded, letGo });
  }

  /** Runs, waits, questions and followings that are kept in mind: none is left when nobody is there. */
  get held(): number {
    return this.lanes.homes + this.#outcomes.size + this.questions.size + this.#feeds.size;
  }

  follow(session: SessionId, from: From): AsyncGenerator<Heard, void> {
    return oneByOne(this.pages(session, () => from));
  }

  /** The same, as many at a time as there are. Where to begin is asked for with the first page. */
  pages(session: SessionId, from: () => From): Stoppable<readonly Heard[]> {
    const drives = (): boolean => this.lanes.peek(session)?.epoch !== undefined;
    const said = (): ReturnType<LiveLane["said"]> => this.lanes.peek(session)?.said();
    return followPages(this.store, this.#feeds, session, () => ({ ...from(), drives, said }));
  }

  // What follows from a decision (Consequences).

  /** A stop is carried out in the tick of its decision, even if the store cannot record it. All else waits for that. */
  decided(lane: LiveLane, command: Command, covered: Coverage | undefined): void {
    if (covered !== undefined && "reason" in command) {
      this.drive.stopAll(lane, covered.work, command.reason); // @fault stop-waits-for-the-disk
      this.processes.stopAll(covered.processes); // @fault child-stop-waits-for-the-disk
    }
    this.dispatch.note(lane); // @fault queue-stranded-after-failure:decided, queue-stranded-after-cancel:decided
  }

  recorded(lane: LiveLane, events: readonly Recorded[]): void {
    for (const event of events) {
      // Also one whose acceptance was never answered, and one that nobody has asked for: a cancel finds it at once.
      // @fault caught-up-run-without-a-home
      if (event.type === "run.accepted" && lane.phase !== "gone") this.lanes.moveIn(event.runId, lane.id);
      if (event.type === "run.settled") this.lanes.moveOut(event.runId); // @fault run-kept-in-mind
    }
    noteTimes(lane, events);
    lane.transcript?.note(events); // @fault transcript-stands-still:note
    if (lane.durable.live === undefined && lane.transcript?.isLarge === true) lane.transcript = undefined;
    this.#feeds.push(lane.id, events);
    this.chronicle.push(lane.id, events);
    this.#tap?.(lane.id, events);
    this.#outcomes.recorded(events);
    this.questions.recorded(events);
    this.processes.recorded(events);
    this.#hooks.recorded(lane, events);
    this.#limits.recorded(lane, events);
    this.#changed(lane); // @fault queue-stranded-after-failure:recorded, queue-stranded-after-cancel:recorded
  }

  caughtUp(lane: LiveLane): void {
    this.#changed(lane);
  }

  rested(lane: LiveLane): void {
    this.lanes.note(lane);
  }

  fenced(lane: LiveLane, kept: readonly Command[]): void {
    this.lanes.forget(lane);
    lane.epoch = undefined;
    this.dispatch.forget(lane);
    this.#limits.leave(lane.id); // @fault limit-outlives-the-lane
    // Whoever drives it next says how they end, and not to us.
    this.#outcomes.leave(this.lanes.moveAllOut(lane.id));
    this.#feeds.reset(lane.id);
    this.processes.fenced(lane); // @fault fenced-lane-leaves-children
    this.drive.letGo(lane);
    this.#attendance.left(lane.id);
    if (kept.length === 0) return;
    this.#keptStops.add(lane.id, kept);
    if (this.phase === "open") this.lanes.get(lane.id);
  }

  /** Closes: no new prompts. The orderly part is `shutdown.ts`'s. */
  stopAccepting(phase: "closing" | "parking"): void {
    this.phase = phase;
    this.dispatch.stop();
    this.#attendance.stop();
  }

  /** The last thing: whoever still waits or follows is let go. */
  closed(): void {
    this.phase = "closed";
    for (const lane of this.lanes.all()) this.drive.leave(lane);
    this.commit.stop(this.lanes.all());
    this.#limits.close();
    this.#outcomes.close();
    this.#feeds.closeAll();
    this.chronicle.close();
  }

  #satisfy(lane: LiveLane): void {
    this.drive.satisfy(lane); // @fault child-stop-waits-for-the-disk:drive
    this.processes.satisfy(lane);
  }

  #changed(lane: LiveLane): void {
    if (lane.refused.size > 0) this.#outcomes.leave(this.lanes.forgetRefused(lane), "absent");
    this.#satisfy(lane);
    this.dispatch.note(lane);
    this.lanes.note(lane);
  }

  async #submit<C extends Command>(lane: LiveLane, command: C, key: string | undefined): Promise<Answer<C>> {
    if (this.phase === "closed") throw closing();
    if (key === undefined) return this.commit.submit(lane, command);
    const content = this.#ids.digest(canonical(command));
    const answer: Answer<C> | Refused = await this.commit.submit(lane, { ...command, once: { key, content } });
    if (isRefused(answer) && answer.code === "conflict") throw new ControlError(answer.code, answer.message);
    return answer;
  }

  /** The caller's own answer; a prompt that would be refused may be a repeat that only the store remembers. */
  async #accepted(lane: LiveLane, command: CommandOf<"accept">, answer: Accepted | Refused): Promise<Accepted> {
    if (answer.kind === "refused" || answer.runId !== command.runId) this.lanes.moveOut(command.runId);
    if (answer.kind === "accepted") return answer;
    const { key, content } = command;
    const row = key === undefined ? undefined : await this.store.run({ session: lane.id, key });
    if (row === undefined || answer.code === "conflict") throw new ControlError(answer.code, answer.message);
    const repeated = repeat(lane.durable, { runId: row.id, acceptedAt: row.acceptedAt, content: row.content }, content);
    if (repeated.kind === "refused") throw new ControlError(repeated.code, repeated.message);
    return repeated;
  }

  #refuseWhenClosing(): void {
    if (this.phase !== "open") throw closing();
  }
}

export type QueueChange = Extract<Command, { readonly type: "edit" | "move" | "withdraw" | "steer" }>;

function isRefused(answer: unknown): answer is Refused {
  return (answer as Partial<Refused> | undefined)?.kind === "refused";
}
