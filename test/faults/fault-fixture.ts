// Where a story is played: callers whose requests are tracked, a server that may be started again, a disk, a clock, and
// a store that fails between them.

import { STORE_WAIT_MS } from "../../src/core/limits.ts";
import type { Accepted } from "../../src/core/model/command.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, SessionId } from "../../src/core/model/ids.ts";
import type { Retention } from "../../src/core/model/retention.ts";
import type { CancelOptions, PromptOptions, RunControl } from "../../src/ports/control.ts";
import type { Notice } from "../../src/ports/hooks.ts";
import type { Session } from "../../src/sdk/session.ts";
import { type FaultyStore, faultyStore } from "../../src/testing/faulty-store.ts";
import { type ManualClock, manualClock, settled } from "../../src/testing/manual-clock.ts";
import { sequentialIds } from "../../src/testing/sequential-ids.ts";
import type { ExpectedEvent } from "../oracle/caller-history.ts";
import type { Effect } from "../oracle/check-effects.ts";
import { actingAgent, Gates } from "./acts.ts";
import { type Disk, makeDisk } from "./disk.ts";
import { Life } from "./life.ts";
import {
  fulfilledValue,
  type LogHeads,
  promptLabel,
  type Requested,
  type StageRecords,
  type TrackedFollower,
  type TrackedRequest,
  track,
} from "./tracked-request.ts";

export interface TrackedPrompt {
  readonly runId: RunId;
  readonly accepted: TrackedRequest;
  readonly outcome: TrackedRequest;
}

export interface StageOptions {
  readonly liveRunsMax?: number;
  readonly runLimitMs?: number;
  readonly retention?: Retention;
}

type EventOf<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;

export class FaultFixture implements StageRecords {
  readonly clock: ManualClock = manualClock();
  readonly disk: Disk = makeDisk(this.clock);
  readonly faulty: FaultyStore = faultyStore(this.disk.store);
  readonly gates: Gates = new Gates();
  readonly requests: TrackedRequest[] = [];
  readonly prompts: TrackedPrompt[] = [];
  readonly followers: TrackedFollower[] = [];
  readonly effects: Effect[] = [];
  readonly crashed = new Set<number>();
  readonly closedUnanswered = new Set<number>();
  readonly #finished = new Set<RunId>();
  readonly notices: Notice[] = [];
  readonly sessions = new Set<SessionId>();
  answersLost = false;
  storeFailsInternally = false;
  readonly #options: StageOptions;
  readonly #ids = sequentialIds();
  readonly #leave: AbortController[] = [];
  #life: Life | undefined;
  #lives = 0;
  #ticks = 0;

  constructor(options: StageOptions = {}) {
    this.#options = options;
  }

  get logs(): ReadonlyMap<SessionId, readonly Recorded[]> {
    return this.disk.logs;
  }

  get life(): Life {
    if (this.#life === undefined) throw new Error("The server was not opened.");
    return this.#life;
  }

  get a(): Session {
    return this.life.belay.session("ses_a");
  }

  /** Everything that can happen without time passing has happened. */
  calm(): Promise<void> {
    return settled();
  }

  /** A start that fails, at once or because the store does not answer, is tried again, as an operator would. */
  async open(): Promise<void> {
    for (let attempt = 1; attempt <= STARTS_MAX; attempt += 1) {
      const life = this.#begin();
      const started = this.hold(`start ${life.number}`, life.engine.start());
      await this.calm();
      if (started.state.kind === "pending") await this.pass(STORE_WAIT_MS);
      if (started.state.kind !== "refused") return;
      life.crash();
      // The last attempt is made once the store works again.
      if (attempt === STARTS_MAX - 1) this.faulty.heal();
    }
  }

  /** Ends this life and begins the next. */
  async restart(how: "park" | "cancel" | "crash"): Promise<void> {
    if (how === "crash") {
      this.crashed.add(this.life.number);
      this.life.crash();
    } else {
      const closed = this.hold(`close ${how}`, this.life.belay.close({ mode: how, limitMs: CLOSE_LIMIT_MS }));
      await this.calm();
      if (closed.state.kind === "pending") await this.pass(CLOSE_LIMIT_MS + CLOSE_EXTRA_MS);
    }
    await this.open();
  }

  /** Tracks a request. `requested`: what the model checks about it, besides that it is answered. */
  hold(label: string, promise: Promise<unknown>, requested?: Requested, stopsRun = false): TrackedRequest {
    const tracked = this.#track(label, promise, requested, stopsRun);
    this.requests.push(tracked);
    return tracked;
  }

  /** Refused for the store's trouble, it is asked again, as a client would. */
  async create(session: SessionId = "ses_a"): Promise<void> {
    for (let attempt = 1; attempt <= CREATES_MAX; attempt += 1) {
      const made = this.hold(`create ${session}`, this.life.belay.createSession({ id: session }));
      this.sessions.add(session);
      await this.calm();
      if (made.state.kind !== "refused") return;
    }
  }

  prompt(text: string, options: PromptOptions = {}, session: SessionId = "ses_a"): RunControl {
    const run = this.life.belay.session(session).prompt(text, options);
    return this.#prompted(run, { text, ...options });
  }

  /** In a session of its own. */
  begin(text: string, key: string): RunControl {
    return this.#prompted(this.life.belay.prompt(text, { key }), { text, key });
  }

  cancelRun(run: RunControl, options: CancelOptions = {}): TrackedRequest {
    return this.#cancelled(run.id, run.cancel(options));
  }

  cancelId(runId: RunId, options: CancelOptions = {}): TrackedRequest {
    return this.#cancelled(runId, this.life.belay.cancel(runId, options));
  }

  cancelSession(options: CancelOptions = {}): TrackedRequest {
    return this.hold("cancel ses_a", this.a.cancel(options), () => ({
      ...{ name: "cancel-session", sessionId: "ses_a", params: {} },
    }));
  }

  cancelKey(key: string, options: CancelOptions = {}): TrackedRequest {
    const label = promptLabel("ses_a", key);
    return this.hold(`cancel key ${key}`, this.a.cancelPrompt(key, options), () => ({
      ...{ name: "cancel-prompt", sessionId: "ses_a", params: { label } },
    }));
  }

  cancelCall(callId: CallId): TrackedRequest {
    return this.hold(`cancel ${callId}`, this.life.belay.cancel(callId), () => ({
      ...{ name: "cancel-call", sessionId: "ses_a", params: { callId } },
    }));
  }

  cancelProcess(processId: ProcessId): TrackedRequest {
    return this.hold(`cancel ${processId}`, this.life.belay.cancel(processId), () => ({
      ...{ name: "cancel-process", sessionId: "ses_a", params: { processId } },
    }));
  }

  /** A request that is recorded as one event of this type, with these fields. */
  change(promise: Promise<unknown>, type: Recorded["type"], like: ExpectedEvent["like"]): TrackedRequest {
    const event = { type, like, unique: true };
    return this.hold(`${type} ${JSON.stringify(like)}`, promise, () => ({
      ...{ name: "change", sessionId: "ses_a", params: { event } },
    }));
  }

  /** A reply to a question, which ends it like this. */
  reply(promise: Promise<unknown>, questionId: QuestionId, ending: ExpectedEvent["like"]): TrackedRequest {
    const event = { type: "question.settled", like: { questionId, ending }, unique: true } as const;
    return this.hold(`reply to ${questionId}`, promise, () => ({
      ...{ name: "answer", sessionId: "ses_a", params: { questionId, event } },
    }));
  }

  /** The last event of a kind, if there is one. */
  last<T extends Recorded["type"]>(type: T, session: SessionId = "ses_a"): EventOf<T> | undefined {
    const is = (event: Recorded): event is EventOf<T> => event.type === type;
    return this.logs.get(session)?.filter(is).at(-1);
  }

  pass(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  follow(after = 0, deltas: "with" | "without" = "without"): void {
    const leave = new AbortController();
    this.#leave.push(leave);
    const received: TrackedFollower["received"] = [];
    const { a } = this;
    const reading = async (): Promise<string> => {
      for await (const event of a.events({ after, deltas, signal: leave.signal })) {
        if (event.type === "gap" || "seq" in event) received.push(event);
      }
      return leave.signal.aborted ? "left" : "over";
    };
    this.followers.push({ sessionId: a.id, received, after, end: this.#track("follow", reading()) });
  }

  /** Every follower disconnects. */
  leave(): void {
    for (const one of this.#leave) one.abort();
  }

  #begin(): Life {
    this.#lives += 1;
    const number = this.#lives;
    const began = (work: string): void => void this.effects.push({ kind: "begin", work, life: number });
    const ended = (work: string): void => void this.effects.push({ kind: "end", work, life: number });
    const life = new Life({
      number,
      store: this.faulty,
      clock: this.clock,
      ids: this.#ids,
      agent: actingAgent({ began, ended, finished: (runId) => this.#finished.add(runId), gates: this.gates }),
      liveRunsMax: this.#options.liveRunsMax ?? 16,
      runLimitMs: this.#options.runLimitMs,
      retention: this.#options.retention,
      began,
      notice: (notice) => this.notices.push(notice),
    });
    this.#life = life;
    return life;
  }

  #prompted(run: RunControl, { text, key, delivery = "queue" }: PromptOptions & { readonly text: string }): RunControl {
    this.sessions.add(run.sessionId);
    const { id: runId, sessionId } = run;
    const label = promptLabel(sessionId, key ?? runId);
    const accepted = this.hold(`accept ${runId} (${text})`, run.accepted, () => ({
      ...{ name: "prompt", sessionId, params: { label, runId, text, delivery } },
    }));
    // A repeated prompt gets the outcome of the run it repeats.
    const outcome = this.hold(`outcome of ${runId}`, run.outcome, () => ({
      ...{ name: "outcome", sessionId, params: { runId: fulfilledValue<Accepted>(accepted)?.runId ?? runId } },
    }));
    this.prompts.push({ runId, accepted, outcome });
    return run;
  }

  #cancelled(runId: RunId, promise: Promise<unknown>): TrackedRequest {
    const ended = (event: Recorded): boolean => event.type === "run.settled" && event.runId === runId;
    const open = !this.#finished.has(runId) && ![...this.logs.values()].some((log) => log.some(ended));
    const isOf = (event: Recorded): boolean => event.type === "run.accepted" && event.runId === runId;
    const requested: Requested = () => {
      const [sessionId = "ses_a"] = [...this.logs].find(([, log]) => log.some(isOf)) ?? [];
      return { name: "cancel-run", sessionId, params: { runId } };
    };
    return this.hold(`cancel ${runId}`, promise, requested, open);
  }

  #track(label: string, promise: Promise<unknown>, requested?: Requested, stopsRun = false): TrackedRequest {
    const tick = (): number => {
      this.#ticks += 1;
      return this.#ticks;
    };
    const other: Requested = () => ({ name: "other", sessionId: "ses_a", params: { label } });
    const heads = (): LogHeads => new Map([...this.logs].map(([session, log]) => [session, log.length]));
    const { number: life } = this.life;
    return track({ label, life, requested: requested ?? other, stopsRun }, promise, { tick, heads });
  }
}

/** More than the faults that one play can meet at its start. */
const STARTS_MAX = 4;
const CREATES_MAX = 3;
export const CLOSE_LIMIT_MS = 3_000;
/** What the store may take on top of that before the server closes anyway, and a little more. */
export const CLOSE_EXTRA_MS = 1_500;
