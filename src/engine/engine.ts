// The house: one object that accepts, cancels, drives and tells. It takes no decision of its own; `core` does.
import type { Outcome } from "../core/cancel.ts";
import { canonical } from "../core/canonical.ts";
import type { Accepted, Answer, Command, Created, QueueReceipt, Refused } from "../core/command.ts";
import { ControlError } from "../core/control-error.ts";
import { standing } from "../core/decide.ts";
import type { Recorded } from "../core/event.ts";
import type { RunId, SessionId, WorkerId } from "../core/ids.ts";
import { emptyLane } from "../core/lane.ts";
import { RETRY_LAST_MS } from "../core/limits.ts";
import type { RunRow } from "../core/rows.ts";
import type { Clock, Ids, Notify, Store } from "../ports.ts";
import { Attendance } from "./attendance.ts";
import { awaitedOutcome } from "./awaited-outcome.ts";
import { Cancels } from "./cancels.ts";
import { Chronicle } from "./chronicle.ts";
import { closing, elsewhere, gone, leaving } from "./closing.ts";
import { Commit } from "./commit.ts";
import { Dispatch } from "./dispatch.ts";
import { canBeRefused, Drive } from "./drive.ts";
import type { EngineParts, Tap } from "./engine-parts.ts";
import { Feeds } from "./feed.ts";
import { type Following, followPages, type Heard } from "./follow.ts";
import { makeHandleDesk } from "./handle-desk.ts";
import { HookRunner } from "./hooks.ts";
import { Lanes } from "./lanes.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveProcess } from "./live-process.ts";
import { look, NOTHING } from "./look.ts";
import { type Modes, modesOf } from "./modes.ts";
import { oneByOne } from "./one-by-one.ts";
import { Outcomes } from "./outcomes.ts";
import type { HandleDesk } from "./process-handle.ts";
import { type Begin, Processes } from "./processes.ts";
import type { Asked, Begun, Made, Prompted } from "./prompted.ts";
import { Questions } from "./questions.ts";
import { RunLimits } from "./run-limits.ts";
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
  phase: "open" | "closing" | "parking" | "closed" = "open";
  /** Results that came after their work had been given up, and were dropped. */
  late = 0;

  constructor(parts: EngineParts) {
    const { store, clock } = parts;
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
    this.processes = new Processes({ ...parts, feeds: this.#feeds, commit });
    this.handles = makeHandleDesk(this);
    const world = makeWorld({
      ...parts,
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
    this.dispatch = new Dispatch({ slotsMax: parts.liveRunsMax, clock, commit });
    this.commit = new Commit({ store, clock, notify, consequences: this });
    this.lanes = new Lanes({
      ...parts,
      resume: parts.agent.onCrash ?? parts.resume,
      worker: this.worker,
      commit,
      open: () => this.phase === "open",
      ready: (lane) => {
        this.#feeds.reset(lane.id);
        this.#changed(lane);
      },
      letGo: (session) => this.#feeds.reset(session),
      unloaded: (session) => this.#loadLater(session),
    });
    const { worker, lanes, processes } = this;
    const load = async (lane: LiveLane): Promise<unknown> =>
      this.phase !== "closed" && this.commit.submit(lane, NOTHING);
    this.cancel = new Cancels({ store, lanes, processes, submit, load });
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
        this.#loadLater(lane.id);
        throw error;
      });
      this.#changed(lane);
    }
    return created;
  }

  /** Registers a prompt in this very tick: whatever follows, also in the same tick, comes after it. */
  prompt(session: SessionId, asked: Asked): Prompted {
    const runId = this.#ids.make("run_") as RunId;
    if (this.phase !== "open") return { runId, accepted: Promise.reject(closing()), bound: undefined };
    this.lanes.moveIn(runId, session);
    const { prompt, delivery, key } = asked;
    const bound = key === undefined ? undefined : { key, content: this.#content(asked) };
    const command: Command & { type: "accept" } = {
      type: "accept",
      runId,
      prompt,
      delivery,
      ...bound, // @fault key-not-recorded
    };
    const lane = this.lanes.get(session);
    const prepare = key === undefined ? undefined : (known: typeof command) => this.#lookUpKey(lane, known, key);
    const accepted = this.commit.submit(lane, command, prepare).then(
      (answer) => this.#acceptedOrThrown(runId, answer),
      (error: unknown) => {
        this.lanes.moveOut(runId); // @fault refused-run-keeps-its-home
        throw error;
      },
    );
    return { runId, accepted, bound };
  }

  #content({ delivery, prompt, made = {} }: Asked): string {
    const within = Object.keys(made).length === 0 ? [] : [made];
    return this.#ids.digest(canonical([delivery, prompt.text, prompt.data, ...within]));
  }

  /** A process for the session itself. */
  async beginProcess(lane: LiveLane, begin: Begin): Promise<LiveProcess> {
    this.#refuseWhenClosing();
    return this.processes.begin(lane, begin);
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

  decided(lane: LiveLane, command: Command): void {
    // A stop is carried out as soon as it is decided, also if the store cannot record it yet. Everything else that the
    // state demands waits until it is durable, because it can still be refused: an interrupt as well, and behind one a
    // stop adds nothing to the state.
    const run = lane.decided.live;
    // @fault cancel-hidden-by-an-interrupt
    if (run?.phase === "stopping" && canBeRefused(lane, run.reason)) this.cancel.carryOut(lane, command);
    // @fault stop-waits-for-the-disk, refused-interrupt-stops:decided, child-stop-waits-for-the-disk
    if (command.type.startsWith("cancel-") || command.type === "close") this.#satisfy(lane);
    this.dispatch.note(lane); // @fault queue-stranded-after-failure:decided, queue-stranded-after-cancel:decided
  }

  recorded(lane: LiveLane, events: readonly Recorded[]): void {
    for (const event of events) {
      // Also one whose acceptance was never answered, and one that nobody has asked for: a cancel finds it at once.
      // @fault caught-up-run-without-a-home
      if (event.type === "run.accepted" && lane.phase !== "gone") this.lanes.moveIn(event.runId, lane.id);
      if (event.type === "run.settled") this.lanes.moveOut(event.runId); // @fault run-kept-in-mind
    }
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

  fenced(lane: LiveLane): void {
    this.lanes.forget(lane);
    lane.epoch = undefined;
    this.dispatch.forget(lane);
    this.#limits.leave(lane.id); // @fault limit-outlives-the-lane
    // Whoever drives it next says how they end, and not to us.
    this.#outcomes.leave(this.lanes.moveAllOut(lane.id));
    this.#feeds.reset(lane.id);
    this.processes.fenced(lane); // @fault fenced-lane-leaves-children
    this.drive.letGo(lane);
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

  async #lookUpKey(lane: LiveLane, command: Command & { type: "accept" }, key: string): Promise<typeof command> {
    await this.commit.quiet(lane); // @fault duplicate-key-runs-twice:looked-up
    const row = await this.store.run({ session: lane.id, key }); // @fault key-looked-up-in-vain
    return row === undefined
      ? command
      : { ...command, earlier: { runId: row.id, acceptedAt: row.acceptedAt, content: row.content } };
  }

  #acceptedOrThrown(runId: RunId, answer: Accepted | Refused): Accepted {
    if (answer.kind === "refused" || answer.runId !== runId) this.lanes.moveOut(runId);
    if (answer.kind === "refused") throw new ControlError(answer.code, answer.message);
    return answer;
  }

  #loadLater(session: SessionId): void {
    const again = (): void => {
      const lane = this.lanes.peek(session);
      if (this.phase !== "open" || lane?.epoch !== undefined) return;
      if (lane?.atRest === false) return void this.#loadLater(session);
      if (lane !== undefined) this.lanes.forget(lane);
      this.lanes.get(session);
    };
    this.clock.after(RETRY_LAST_MS, again, "idle");
  }

  #refuseWhenClosing(): void {
    if (this.phase !== "open") throw closing();
  }
}

export type QueueChange = Extract<Command, { readonly type: "edit" | "move" | "withdraw" | "steer" }>;

function isRefused(answer: unknown): answer is Refused {
  return (answer as Partial<Refused> | undefined)?.kind === "refused";
}
