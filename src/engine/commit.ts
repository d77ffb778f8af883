// The only writer. Every command of everybody becomes facts here, in the order in which it was received.
//
// Invariants
// 1. Nobody is answered before the facts their answer speaks of are durable.
// 2. A refused command leaves nothing: neither in memory nor in the log.
// 3. What must not be lost (a cancel, the end of a piece of work) is never refused for the store's trouble; it waits.
import type { Answer, Command } from "../core/command.ts";
import { ControlError, STOP_UNRECORDED, toControlError } from "../core/control-error.ts";
import { decide } from "../core/decide.ts";
import type { Event, Recorded } from "../core/event.ts";
import { evolve, type Lane } from "../core/lane.ts";
import {
  COMMIT_ATTEMPTS_MAX,
  PAGE_EVENTS_MAX,
  RETRY_FIRST_MS,
  RETRY_LAST_MS,
  SNAPSHOT_EVENTS,
} from "../core/limits.ts";
import type { Batch, Clock, Notify, Store } from "../ports.ts";
import { closing } from "./closing.ts";
import type { Entry, LiveLane } from "./live-lane.ts";

/** What follows from a decision, in the rest of the house. */
export interface Consequences {
  /** The lane has decided something. Not durable yet. */
  decided(lane: LiveLane, command: Command): void;
  /** These facts are durable. */
  recorded(lane: LiveLane, events: readonly Recorded[]): void;
  /** What is durable was read again, because somebody else wrote or nobody knew. */
  caughtUp(lane: LiveLane): void;
  /** Nothing is on its way any more. */
  rested(lane: LiveLane): void;
  /** Somebody else drives this lane now. */
  fenced(lane: LiveLane): void;
}

export class Commit {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #notify: Notify;
  readonly #then: Consequences; // @fault told-before-durable:then
  #stopped = false;

  constructor(ports: {
    readonly store: Store;
    readonly clock: Clock;
    readonly notify: Notify;
    readonly consequences: Consequences;
  }) {
    this.#store = ports.store;
    this.#clock = ports.clock;
    this.#notify = ports.notify;
    this.#then = ports.consequences;
  }

  /** Nothing is tried again any more. */
  stop(lanes: Iterable<LiveLane>): void {
    this.#stopped = true;
    for (const lane of lanes) lane.takeBackRetry?.();
  }

  /** The house has closed. Whoever still waits is told what is known: what was sent may have been written. */
  leave(lanes: Iterable<LiveLane>): void {
    for (const lane of lanes) {
      const [sent, unsent] = [lane.flying, [...lane.pending, ...lane.mailbox.splice(0)]];
      // An answer that still comes must not set anything in motion.
      lane.phase = "gone"; // @fault late-answer-goes-on
      lane.flying = [];
      lane.pending = [];
      for (const entry of sent) entry.reject(unanswered(lane));
      for (const entry of unsent) entry.reject(lane.doubt ? unanswered(lane) : closing());
      letGo(lane);
    }
  }

  /** Registers a command in this very tick. Resolves when its facts are durable; rejects if trouble refused it. */
  submit<C extends Command>(lane: LiveLane, command: C, prepare?: (command: C) => Promise<C>): Promise<Answer<C>> {
    return new Promise((resolve, reject) => {
      // An entry is kept among entries of other commands; its callbacks fit its own command by construction.
      const entry = { command, prepare, resolve, reject, events: NO_EVENTS, answer: undefined } as unknown as Entry;
      if (lane.phase === "gone") return reject(movedAway(lane));
      lane.mailbox.push(entry);
      if (lane.phase === "ready") this.pump(lane);
    });
  }

  /** Decides what has been received, until something must be waited for. */
  pump(lane: LiveLane): void {
    if (lane.pumping || lane.doubt) return;
    lane.pumping = true;
    let entry = lane.mailbox[0];
    while (entry !== undefined) {
      if (entry.prepare !== undefined) {
        void this.#prepare(lane, entry, entry.prepare);
        return;
      }
      lane.mailbox.shift();
      this.#decide(lane, entry);
      entry = lane.mailbox[0];
    }
    lane.pumping = false;
  }

  /** Resolves when nothing of this lane is on its way to the store. */
  quiet(lane: LiveLane): Promise<void> {
    if (lane.pending.length === 0 && lane.flying.length === 0 && !lane.doubt) return Promise.resolve();
    return new Promise((resolve) => {
      lane.quiet = [...lane.quiet, resolve];
    });
  }

  async #prepare(lane: LiveLane, entry: Entry, prepare: NonNullable<Entry["prepare"]>): Promise<void> {
    try {
      entry.command = await prepare(entry.command);
      if (lane.mailbox.shift() === entry) this.#decide(lane, entry);
    } catch (error) {
      lane.mailbox.shift();
      entry.reject(toControlError(error));
    }
    lane.pumping = false;
    this.pump(lane);
  }

  // @fault order-lost-after-doubt:decide
  #decide(lane: LiveLane, entry: Entry): void {
    this.#tryApply(lane, entry);
    this.#flushSoon(lane);
    // A stop may have to be carried out although it has changed nothing, unless it is one that was answered before.
    const isNew = entry.events.length > 0 || (isCancel(entry.command) && entry.command.once === undefined);
    if (isNew) this.#then.decided(lane, entry.command);
  }

  #tryApply(lane: LiveLane, entry: Entry): void {
    try {
      this.#apply(lane, entry);
      lane.pending.push(entry);
    } catch (error) {
      // A contradiction in our own state must not take the worker down, nor leave the asker waiting.
      this.#notify({ type: "bug", session: lane.id, error });
      entry.reject(toControlError(error));
    }
  }

  #apply(lane: LiveLane, entry: Entry): void {
    const decided = decide(lane.decided, entry.command);
    let next = lane.decided;
    for (const event of decided.events) next = evolve(next, event);
    entry.events = decided.events;
    entry.answer = decided.answer;
    lane.decided = next;
  }

  /** In a microtask, so that what is decided in one tick is one batch. */
  #flushSoon(lane: LiveLane): void {
    queueMicrotask(() => this.#flush(lane));
  }

  #flush(lane: LiveLane): void {
    if (lane.flying.length > 0 || lane.pending.length === 0 || lane.doubt) return;
    lane.takeBackRetry?.();
    lane.takeBackRetry = undefined;
    lane.flying = lane.pending;
    lane.pending = [];
    lane.sent = lane.decided; // @fault answered-before-durable
    const events = lane.flying.flatMap((entry) => entry.events);
    if (events.length === 0) {
      this.#landed(lane, events, 0);
      return;
    }
    const at = this.#clock.now();
    // @fault told-before-durable
    lane.landing = this.#store.append(batch(lane, events, at)).then(
      (appended) => {
        lane.landing = undefined;
        if (appended.kind === "appended") return this.#landed(lane, events, at); // @fault fault-swallowed:landed
        if (lane.phase === "gone") return;
        if (appended.kind === "fenced") return this.fence(lane);
        void this.#moved(lane);
      },
      (error: unknown) => {
        lane.landing = undefined;
        if (lane.phase === "gone") return;
        lane.unsure = { entries: lane.flying, events, read: [] }; // @fault fault-swallowed
        this.#failed(lane, toControlError(error));
      },
    );
  }

  #landed(lane: LiveLane, events: readonly Event[], at: number): void {
    const first = lane.durable.head + 1;
    const landed = lane.flying;
    lane.durable = lane.sent ?? lane.durable;
    lane.flying = [];
    lane.attempts = 0;
    if (events.length > 0) {
      if (lane.durable.head - lane.snapshotAt >= SNAPSHOT_EVENTS) lane.snapshotAt = lane.durable.head;
      this.#then.recorded(
        lane,
        events.map((event, index): Recorded => ({ ...event, seq: first + index, at })),
      );
    }
    for (const entry of landed) entry.resolve(entry.answer);
    if (lane.pending.length > 0) this.#flushSoon(lane);
    else this.#rest(lane);
  }

  /** Somebody was faster: look again, and decide everything anew that was decided on what turned out to be old. */
  async #moved(lane: LiveLane): Promise<void> {
    lane.attempts += 1;
    try {
      if (lane.attempts > COMMIT_ATTEMPTS_MAX) {
        throw new ControlError("overloaded", `Session ${lane.id} is written to faster than Belay can decide.`);
      }
      await this.#catchUp(lane);
      this.#again(lane, [...lane.flying, ...lane.pending]);
    } catch (error) {
      this.#failed(lane, toControlError(error));
    }
  }

  /** All of it or nothing: what was kept would be decided on half of what it was written with. */
  async #catchUp(lane: LiveLane): Promise<void> {
    const news: Recorded[] = [];
    for (;;) {
      const after = news.at(-1)?.seq ?? lane.durable.head;
      // @fault catch-up-ends-at-a-short-page:read
      const { events } = await this.#store.read(lane.id, { after, limit: PAGE_EVENTS_MAX });
      // One that was let go meanwhile tells nobody what others write.
      if (lane.phase === "gone") return;
      if (events.length === 0) break;
      news.push(...events); // @fault catch-up-ends-at-a-short-page
    }
    if (news.length === 0) return;
    if (lane.unsure !== undefined) lane.unsure.read = news;
    lane.durable = news.reduce<Lane>(evolve, lane.durable);
    this.#then.recorded(lane, news);
  }

  #again(lane: LiveLane, entries: readonly Entry[]): void {
    lane.flying = [];
    lane.pending = [];
    lane.decided = lane.durable;
    // All of them before anything follows from them: work must not begin whose stop comes next in the list, and what
    // was received after them must not be decided between two of them.
    for (const entry of entries) this.#tryApply(lane, entry); // @fault order-lost-after-doubt:again
    this.#flushSoon(lane);
    this.#then.caughtUp(lane);
    this.pump(lane);
  }

  /** The store could not. Whoever can be refused is refused; the rest is kept, and tried until it is recorded. */
  #failed(lane: LiveLane, error: ControlError): void {
    this.#notify({ type: "store", session: lane.id, code: error.code, message: error.message });
    // Nobody knows what was written: until the log has been read, nothing may be decided on what we believe.
    lane.doubt ||= !WROTE_NOTHING.has(error.code); // @fault lost-answer-taken-for-no
    const entries = [...lane.flying, ...lane.pending, ...(lane.doubt && !lane.pumping ? lane.mailbox.splice(0) : [])];
    lane.flying = [];
    lane.pending = [];
    lane.decided = lane.durable; // @fault refused-prompt-stays-decided, refused-stays-decided
    const kept = entries.filter((entry) => isLasting(entry.command)); // @fault refused-and-recorded
    for (const entry of entries) {
      if (!isLasting(entry.command)) entry.reject(error);
      else if (isCancel(entry.command)) notRecorded(entry, error); // @fault stop-told-before-it-is-recorded
    }
    for (const entry of kept) this.#tryApply(lane, entry);
    // What was refused stands in nobody's way any more: neither in that of another's stop, nor in that of a beginning.
    this.#then.caughtUp(lane);
    if (kept.length === 0 && !lane.doubt) {
      this.#rest(lane);
      return;
    }
    // A store that was closed will not come back; what was kept is recovered at the next start.
    if (this.#stopped) return;
    const pause = Math.min(RETRY_FIRST_MS * 2 ** lane.attempts, RETRY_LAST_MS);
    lane.attempts = Math.min(lane.attempts + 1, 8);
    lane.takeBackRetry = this.#clock.after(pause, () => void this.#retry(lane)); // @fault never-tried-again
  }

  /** What was lost may have been written after all: read before writing. */
  async #retry(lane: LiveLane): Promise<void> {
    lane.takeBackRetry = undefined;
    if (lane.phase !== "ready") return;
    lane.flying = lane.pending;
    lane.pending = [];
    try {
      await this.#catchUp(lane);
    } catch (error) {
      this.#failed(lane, toControlError(error));
      return;
    }
    lane.doubt = false;
    this.#clearDoubt(lane);
    // With what was received meanwhile, as far as it need not wait: there may be a stop among it for what would begin
    // now.
    const ready = lane.pumping ? 0 : lane.mailbox.findIndex((entry) => entry.prepare !== undefined);
    // @fault order-lost-after-doubt:received
    const received = lane.mailbox.splice(0, ready === -1 ? lane.mailbox.length : ready);
    this.#again(lane, [...lane.flying, ...lane.pending, ...received]);
    if (lane.pending.length === 0) this.#rest(lane);
  }

  /** What was written after all is answered, not decided again: a cancel would cover what was accepted after it. */
  #clearDoubt(lane: LiveLane): void {
    const { unsure } = lane;
    lane.unsure = undefined;
    if (unsure === undefined || !begins(unsure.read, unsure.events)) return; // @fault lost-answer-decided-again
    for (const entry of lane.flying) if (unsure.entries.includes(entry)) entry.resolve(entry.answer);
    lane.flying = lane.flying.filter((entry) => !unsure.entries.includes(entry));
  }

  /** Somebody else drives this lane, or may soon: whoever waits for it here is told so. */
  fence(lane: LiveLane): void {
    const entries = [...lane.flying, ...lane.pending, ...lane.mailbox.splice(0)];
    lane.phase = "gone";
    lane.flying = [];
    lane.pending = [];
    for (const entry of entries) entry.reject(movedAway(lane));
    letGo(lane);
    this.#then.fenced(lane);
  }

  #rest(lane: LiveLane): void {
    letGo(lane);
    this.#then.rested(lane);
  }
}

function letGo(lane: LiveLane): void {
  const waiting = lane.quiet;
  lane.quiet = [];
  for (const resolve of waiting) resolve();
}

/** After these codes a store promises that nothing of the batch is in the log. */
const WROTE_NOTHING: ReadonlySet<string> = new Set(["store_full", "store_locked", "store_corrupt", "overloaded"]);

/** Whether what was read begins with these facts. Ids are made once, so the names of things suffice. */
function begins(read: readonly Recorded[], events: readonly Event[]): boolean {
  const name = (event: Event | undefined): string =>
    JSON.stringify(event, ["type", "runId", "turnId", "callId", "questionId", "processId", "covers"]) ?? "";
  return events.every((event, index) => name(event) === name(read[index]));
}

const NO_EVENTS: readonly Event[] = [];

function batch(lane: LiveLane, events: readonly Event[], at: number): Batch {
  const state = lane.decided;
  return {
    session: lane.id,
    expected: lane.durable.head,
    events,
    at,
    ...(lane.epoch === undefined ? {} : { epoch: lane.epoch }),
    ...(state.head - lane.snapshotAt >= SNAPSHOT_EVENTS ? { snapshot: state } : {}),
  };
}

/** Not that of a question: whether there is still one to take back is known only from the log. */
const isCancel = ({ type }: Command): boolean =>
  type !== "cancel-question" && (type.startsWith("cancel-") || type === "close");

/** Facts about the world, and requests to stop: refusing them would not make them untrue. */
// @fault cancel-refused-with-the-rest
export const isLasting = (command: Command): boolean => isCancel(command) || LASTING.has(command.type);

const LASTING: ReadonlySet<Command["type"]> = new Set([
  "settle-turn", // @fault end-of-work-refused
  "settle-call",
  "settle-process", // @fault process-end-refused
  "detach-process", // @fault detach-refused
  "expire",
  "recover", // @fault recovery-not-repeated
  "park",
]);

/** The asker of a cancel is told the truth now; the cancel itself is kept. */
function notRecorded(entry: Entry, error: ControlError): void {
  const message = `The stop was carried out here, but could not be recorded yet: ${error.message}`;
  entry.reject(new ControlError(error.code, message, { cause: error, hint: STOP_UNRECORDED }));
  entry.resolve = ignore;
  entry.reject = ignore;
}

const ignore = (): void => {};

const unanswered = (lane: LiveLane): ControlError =>
  new ControlError("unavailable", `Belay has closed before the store answered for session ${lane.id}.`);

const movedAway = (lane: LiveLane): ControlError =>
  new ControlError("unavailable", `Session ${lane.id} is driven by another worker now.`);
