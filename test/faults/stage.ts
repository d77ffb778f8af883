// Where a story is played: callers who ask and keep what they are told, a house that may be started again, a disk, a
// clock, and a store in trouble between them.
import type { CancelOptions, PromptOptions, RunControl } from "../../src/control.ts";
import type { Recorded } from "../../src/core/event.ts";
import type { RunId, SessionId } from "../../src/core/ids.ts";
import type { Session } from "../../src/library/session.ts";
import type { Notice } from "../../src/ports.ts";
import { type FaultyStore, faultyStore } from "../../src/testing/faulty-store.ts";
import { type ManualClock, manualClock, settled } from "../../src/testing/manual-clock.ts";
import { sequentialIds } from "../../src/testing/sequential-ids.ts";
import { actingAgent, Gates } from "./acts.ts";
import { type Disk, makeDisk } from "./disk.ts";
import type { Cancelled, Changed, Followed, Held, History, Prompted } from "./history.ts";
import { hold } from "./history.ts";
import { Life } from "./life.ts";

export interface StageOptions {
  readonly liveRunsMax?: number;
  readonly runLimitMs?: number;
}

type EventOf<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;

export class Stage implements History {
  readonly clock: ManualClock = manualClock();
  readonly disk: Disk = makeDisk(this.clock);
  readonly faulty: FaultyStore = faultyStore(this.disk.store);
  readonly gates: Gates = new Gates();
  readonly held: Held[] = [];
  readonly prompts: Prompted[] = [];
  readonly cancels: Cancelled[] = [];
  readonly changes: Changed[] = [];
  readonly followed: Followed[] = [];
  readonly carriedOut: { id: string; life: number }[] = [];
  readonly crashed = new Set<number>();
  readonly closedUnanswered = new Set<number>();
  readonly #finished = new Set<RunId>();
  readonly notices: Notice[] = [];
  readonly sessions = new Set<SessionId>();
  answersLost = false;
  saidInternal = false;
  readonly #options: StageOptions;
  readonly #ids = sequentialIds();
  readonly #leave: AbortController[] = [];
  #life: Life | undefined;
  #lives = 0;

  constructor(options: StageOptions = {}) {
    this.#options = options;
  }

  get logs(): ReadonlyMap<SessionId, readonly Recorded[]> {
    return this.disk.logs;
  }

  get life(): Life {
    if (this.#life === undefined) throw new Error("The house was not opened.");
    return this.#life;
  }

  get a(): Session {
    return this.life.belay.session("ses_a");
  }

  /** Everything that can happen without time passing has happened. */
  calm(): Promise<void> {
    return settled();
  }

  /** A start that is refused is told with a code, and made again, as an operator would. */
  async open(): Promise<void> {
    for (let attempt = 1; attempt <= STARTS_MAX; attempt += 1) {
      const life = this.#begin();
      const started = this.hold(`start ${life.number}`, life.engine.start());
      await this.calm();
      if (started.told.kind !== "refused") return;
      life.crash();
      // Whoever has tried in vain for long enough waits until the store is well again.
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
      if (closed.told.kind === "waiting") await this.pass(CLOSE_LIMIT_MS + CLOSE_EXTRA_MS);
    }
    await this.open();
  }

  hold(what: string, promise: Promise<unknown>): Held {
    const held = hold(what, this.life.number, promise);
    this.held.push(held);
    return held;
  }

  /** Refused for the store's trouble, it is asked again, as a client would. */
  async create(session: SessionId = "ses_a"): Promise<void> {
    for (let attempt = 1; attempt <= CREATES_MAX; attempt += 1) {
      const made = this.hold(`create ${session}`, this.life.belay.createSession({ id: session }));
      this.sessions.add(session);
      await this.calm();
      if (made.told.kind !== "refused") return;
    }
  }

  prompt(text: string, options: PromptOptions = {}, session: SessionId = "ses_a"): RunControl {
    const run = this.life.belay.session(session).prompt(text, options);
    return this.#prompted(run, text, options.key);
  }

  /** In a session of its own. */
  begin(text: string, key: string): RunControl {
    return this.#prompted(this.life.belay.prompt(text, { key }), text, key);
  }

  cancelRun(run: RunControl, options: CancelOptions = {}): Held {
    return this.#cancelled(run.id, run.cancel(options));
  }

  cancelId(runId: RunId, options: CancelOptions = {}): Held {
    return this.#cancelled(runId, this.life.belay.cancel(runId, options));
  }

  /** What is asked for with this promise is recorded as one event of this kind, with these fields. */
  change(promise: Promise<unknown>, event: Recorded["type"], like: Readonly<Record<string, unknown>>): Held {
    const receipt = this.hold(`${event} ${JSON.stringify(like)}`, promise);
    this.changes.push({ session: "ses_a", event, like, receipt });
    return receipt;
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
    const heard: Followed["heard"] = [];
    const { a } = this;
    const reading = async (): Promise<string> => {
      for await (const event of a.events({ after, deltas, signal: leave.signal })) {
        if (event.type === "gap") heard.push({ from: event.from, to: event.to });
        else if ("seq" in event) heard.push(event.seq);
      }
      return leave.signal.aborted ? "left" : "over";
    };
    this.followed.push({ session: a.id, heard, after, ended: hold("follow", this.life.number, reading()) });
  }

  /** Whoever follows goes home. */
  leave(): void {
    for (const one of this.#leave) one.abort();
  }

  #begin(): Life {
    this.#lives += 1;
    const number = this.#lives;
    const carriedOut = (id: string): void => void this.carriedOut.push({ id, life: number });
    const life = new Life({
      number,
      store: this.faulty,
      clock: this.clock,
      ids: this.#ids,
      agent: actingAgent({ carriedOut, finished: (runId) => this.#finished.add(runId), gates: this.gates }),
      liveRunsMax: this.#options.liveRunsMax ?? 16,
      runLimitMs: this.#options.runLimitMs,
      carriedOut,
      notice: (notice) => this.notices.push(notice),
    });
    this.#life = life;
    return life;
  }

  #prompted(run: RunControl, text: string, key: string | undefined): RunControl {
    this.sessions.add(run.sessionId);
    const { id: runId, sessionId: session } = run;
    const accepted = this.hold(`accept ${runId} (${text})`, run.accepted);
    this.prompts.push({ session, runId, key, accepted, outcome: this.hold(`outcome of ${runId}`, run.outcome) });
    return run;
  }

  #cancelled(runId: RunId, promise: Promise<unknown>): Held {
    const ended = (event: Recorded): boolean => event.type === "run.settled" && event.runId === runId;
    const open = !this.#finished.has(runId) && ![...this.logs.values()].some((log) => log.some(ended));
    const receipt = this.hold(`cancel ${runId}`, promise);
    this.cancels.push({ runId, open, receipt });
    return receipt;
  }
}

/** More than the faults that one play can meet at its start. */
const STARTS_MAX = 4;
const CREATES_MAX = 3;
export const CLOSE_LIMIT_MS = 3_000;
/** What the store may take on top of that before the house leaves anyway, and a little more. */
export const CLOSE_EXTRA_MS = 1_500;
