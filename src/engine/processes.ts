// The processes of this worker: begun when their request is durable, stopped when the state demands it, and told about
// when their end is durable.
import type { CancelReason } from "../core/cancel.ts";
import type { Answers, Command, CommandOf } from "../core/command.ts";
import { ControlError, toControlError } from "../core/control-error.ts";
import { demandStops } from "../core/decide-process.ts";
import type { Feedback, Recorded } from "../core/event.ts";
import type { CallId, ProcessId, SessionId, Work } from "../core/ids.ts";
import type { Process, ProcessEnd } from "../core/process.ts";
import type { Clock, Store } from "../ports.ts";
import type {
  Child,
  CommandLine,
  Output,
  ProcessInfo,
  ProcessResult,
  Spawner,
  StartOptions,
  Tier,
} from "../spawner.ts";
import type { Commit } from "./commit.ts";
import { canBeRefused } from "./drive.ts";
import type { Feeds } from "./feed.ts";
import type { LiveLane } from "./live-lane.ts";
import { LiveProcess, noteOf, type ProcessDesk } from "./live-process.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly feeds: Feeds;
  readonly commit: () => Commit;
  /** Opened when it is first needed: most programs start no processes. */
  readonly spawner: (() => Promise<Spawner>) | undefined;
}

/** What is asked for, checked. */
export interface Begin {
  readonly owner: CallId | SessionId;
  readonly command: CommandLine;
  readonly options: StartOptions;
  readonly feedback: Feedback;
  /** The call or turn that starts it for the session. */
  readonly by?: Work;
  /** Why whoever asks begins nothing any more, if so. Looked at in the tick in which the request is sent. */
  readonly refusal?: () => ControlError | undefined;
}

export class Processes {
  readonly #parts: Parts;
  readonly #live = new Map<ProcessId, LiveProcess>();
  /** What has been asked for and is not known to be recorded, with whose it is. */
  readonly #beginning = new WeakMap<LiveLane, Map<Promise<LiveProcess>, CallId | SessionId>>();
  /** Results nobody could be told, because their session had ended. */
  dropped = 0;
  /** How surely trees die here. Undefined until the first one was asked for. */
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

  /** Records that it is to be started, and starts it. Rejects if it could not be. */
  async begin(lane: LiveLane, { owner, by, command, options, feedback, refusal }: Begin): Promise<LiveProcess> {
    const spawner = await this.spawner();
    const refused = refusal?.();
    if (refused !== undefined) throw refused;
    // Whoever drives it could neither stop it nor learn how it ended.
    if (lane.epoch === undefined) throw elsewhere(lane); // @fault begun-without-the-lease
    const { cwd, timeoutMs, feedback: _, lasting, ...rest } = options;
    const home = lane.decided.cwd === undefined ? {} : { workspace: lane.decided.cwd };
    // Nothing may take longer to end than whoever stops it is told.
    const graceMs = Math.min(options.graceMs ?? this.#parts.graceMs, this.#parts.graceMs);
    const place = cwd === undefined ? {} : { cwd };
    const kept = { ...(lasting === undefined ? {} : { lasting }), ...(by === undefined ? {} : { by }) };
    const asked = { owner, command, feedback, ...place, ...kept };
    const live = await this.#asking(lane, { type: "begin-process", ...asked });
    const { id } = live;
    // Whatever was decided since the request was sent counts: also that its call has ended, and it with it.
    this.satisfy(lane);
    if (!goesOn(lane, id)) live.stop("at once"); // @fault started-after-its-end
    try {
      const request = { ...rest, ...place, ...home, graceMs, id, sessionId: lane.id, command, signal: live.starting };
      const child = await spawner.spawn(request);
      live.began(child);
      this.#note(lane, id, child);
    } catch (error) {
      const { code, message } = toControlError(error);
      live.failed({ code, message });
      if (!live.starting.aborted) throw error;
    }
    if (lane.phase === "gone") live.stop("at once");
    if (timeoutMs !== undefined) live.limit(timeoutMs, (reason) => this.#cancel(lane, id, reason));
    return live;
  }

  /** Known to whoever must end it from the moment it is asked for. */
  async #asking(lane: LiveLane, request: CommandOf<"begin-process">): Promise<LiveProcess> {
    const asking = this.#ask(lane, request);
    const others = this.#beginning.get(lane) ?? new Map();
    this.#beginning.set(lane, others.set(asking, request.owner));
    try {
      return await asking;
    } finally {
      others.delete(asking);
    }
  }

  async #ask(lane: LiveLane, request: CommandOf<"begin-process">): Promise<LiveProcess> {
    let begun: Answers["begin-process"];
    try {
      begun = await this.#parts.commit().submit(lane, request);
    } catch (error) {
      void this.#settleUnbegun(lane); // @fault unrecorded-process-stays-open
      throw error;
    }
    if (begun.kind === "refused") throw new ControlError(begun.code, begun.message);
    const live = new LiveProcess(begun.processId, request.owner, this.#desk(lane));
    this.#live.set(live.id, live);
    return live;
  }

  /** Recorded after all, although whoever asked was refused: the answer of the store was lost. It never begins. */
  async #settleUnbegun(lane: LiveLane): Promise<void> {
    await this.#parts.commit().quiet(lane);
    // Of a lane that is not ours any more it is refused: its next driver says what became of it.
    for (const { id } of lane.durable.processes.live) {
      if (this.#live.has(id)) continue;
      const end = { processId: id, failed: UNBEGUN };
      this.#parts.commit().submit(lane, { type: "settle-process", end }).catch(ignore);
    }
  }

  #note(lane: LiveLane, processId: ProcessId, { pid, tier, profile }: Child): void {
    // Only for people: a store in trouble may refuse it.
    this.#parts.commit().submit(lane, { type: "note-process", processId, pid, tier, profile }).catch(ignore);
  }

  /** Refused only by a store in trouble, which keeps it, or by a lane that is not ours any more. */
  #cancel(lane: LiveLane, processId: ProcessId, reason: CancelReason): void {
    this.#parts.commit().submit(lane, { type: "cancel-process", processId, reason }).catch(ignore);
  }

  /** Stops what the state demands to be stopped. */
  satisfy(lane: LiveLane): void {
    for (const { id, reason } of demandStops(lane.decided)) {
      if (!canBeRefused(lane, reason)) this.#live.get(id)?.stop();
    }
  }

  /** A cancel that waits behind something for the store: what it aims at is stopped now. */
  stopNow(lane: LiveLane, command: Command): void {
    if (command.type === "cancel-process") this.#live.get(command.processId)?.stop();
    if (command.type !== "cancel-session" || command.background === "keep") return;
    for (const one of lane.decided.processes.live) if (isStoppedWith(lane, one)) this.#live.get(one.id)?.stop();
  }

  /** From now on it is the session's. False: it has ended, or is being stopped. */
  async detach(lane: LiveLane, processId: ProcessId, feedback: Feedback): Promise<boolean> {
    const live = this.#live.get(processId);
    await this.#parts.commit().submit(lane, { type: "detach-process", processId, feedback });
    // By what is recorded, not by the answer: after trouble with the store it may have been decided twice.
    return live?.detached === true;
  }

  owns(lane: LiveLane, call: CallId): boolean {
    const isMeant = (owner: CallId | SessionId): boolean => owner === call;
    return lane.decided.processes.live.some(({ owner }) => isMeant(owner)) || this.#asked(lane, isMeant).length > 0;
  }

  /** A call has returned: what it has left going on ends with it. Resolves when that is recorded. */
  async endOf(lane: LiveLane, call: CallId): Promise<void> {
    await this.#endAll(lane, (owner) => owner === call, { kind: "parent", id: call });
  }

  /** Also what was asked for in the last moment, and is known here once its request is durable. */
  async #endAll(lane: LiveLane, isMeant: (owner: CallId | SessionId) => boolean, reason: CancelReason): Promise<void> {
    while (lane.phase !== "gone") {
      const ids = lane.decided.processes.live.flatMap(({ id, owner }) => (isMeant(owner) ? [id] : []));
      for (const id of ids) this.#cancel(lane, id, reason);
      const known = ids.flatMap((id) => this.#live.get(id)?.result ?? []);
      const coming = known.length > 0 ? known : this.#asked(lane, isMeant); // @fault begun-in-the-last-moment
      // In the log and nowhere else: the store did not say that it was recorded, so there is nothing to end.
      if (coming.length === 0) return;
      await Promise.allSettled(coming);
    }
  }

  #asked(lane: LiveLane, isMeant: (owner: CallId | SessionId) => boolean): readonly Promise<LiveProcess>[] {
    return [...(this.#beginning.get(lane) ?? [])].flatMap(([asking, owner]) => (isMeant(owner) ? [asking] : []));
  }

  /** A call is given up: what it has left going on is ended at once. */
  abandon(lane: LiveLane, call: CallId): void {
    for (const { id, owner } of lane.decided.processes.live) if (owner === call) this.#live.get(id)?.stop("at once");
  }

  /** Somebody else drives this lane: nothing of it may go on here. */
  fenced(lane: LiveLane): void {
    for (const { id } of [...lane.decided.processes.live, ...lane.durable.processes.live])
      this.#live.get(id)?.stop("at once");
  }

  /** At a shutdown: what goes on in the background ends, and that is recorded. */
  async park(lane: LiveLane): Promise<void> {
    await this.#endAll(lane, () => true, { kind: "shutdown" });
  }

  /** Nothing is started any more, and what is left is ended. */
  async close(): Promise<void> {
    // One that could not be opened has nothing to close.
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
        // What was missing may be there the next time.
        this.#spawner = undefined;
        throw error;
      },
    );
    return this.#spawner;
  }

  list(lane: LiveLane): readonly ProcessInfo[] {
    return lane.durable.processes.live.map(({ id, owner, title, phase, feedback }) => ({
      ...{ id, owner, title, phase, feedback },
      ...this.#seen(id),
    }));
  }

  #seen(id: ProcessId): Partial<ProcessInfo> {
    const child = this.#live.get(id)?.child;
    if (child === undefined) return {};
    const { pid, tier, mechanism, profile, startedAt, output } = child;
    return { pid, tier, mechanism, profile, startedAt, bytes: output.counts.bytes.all };
  }

  /** Whether there is, or was, such a process. */
  async isKnown(id: ProcessId): Promise<boolean> {
    return (await this.#parts.store.process(id)) !== undefined;
  }

  /** How a process ended, as the log has it. Undefined: it has not, or its log was trimmed. */
  async ended(id: ProcessId): Promise<ProcessResult | undefined> {
    const row = await this.#parts.store.process(id);
    if (row?.settledAt === undefined) return undefined;
    const { events } = await this.#parts.store.read(row.session, { after: row.settledAt - 1, limit: 1 });
    const [event] = events;
    if (event?.type === "process.settled" && event.processId === id) return resultOf(event);
    return row.outcome === undefined ? undefined : { processId: id, outcome: row.outcome };
  }

  #desk(lane: LiveLane): ProcessDesk {
    return {
      clock: this.#parts.clock,
      settle: (end, waiter) => this.#settle(lane, end, waiter),
      note: (live, output) => this.#tell(lane, live, output),
    };
  }

  async #settle(lane: LiveLane, end: ProcessEnd, waiter: CallId | undefined): Promise<ProcessResult> {
    const { processId } = end;
    try {
      const told = waiter === undefined ? {} : { waiter };
      // @fault end-told-before-durable
      await this.#parts.commit().submit(lane, { type: "settle-process", end, ...told });
      const recorded = this.#live.get(processId)?.recorded ?? (await this.ended(processId));
      return recorded ?? { processId, outcome: { kind: "lost" } };
    } finally {
      this.#live.delete(processId);
    }
  }

  #tell(lane: LiveLane, live: LiveProcess, output: Output): void {
    const { bytes, tail } = noteOf(output);
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

/** By a cancel of the session: not what carries its work out. */
const isStoppedWith = (lane: LiveLane, { owner, lasting }: Process): boolean => owner === lane.id && lasting !== true;

const UNBEGUN = {
  code: "unavailable",
  message: "It was never begun: the store did not say in time that it was recorded.",
} as const;

const goesOn = ({ phase, decided }: LiveLane, id: ProcessId): boolean =>
  phase !== "gone" && decided.processes.live.some((one) => one.id === id);

const elsewhere = ({ id }: LiveLane): ControlError =>
  new ControlError("unavailable", `Session ${id} is driven by another worker: nothing can be started for it here.`, {
    hint: "Try again: it is taken over when that worker is gone.",
  });

const NO_SPAWNER = (): ControlError =>
  new ControlError("uncontained", "No processes can be started here: Belay was opened without them.", {
    hint: "Open it with `processes: {}`.",
  });

const ignore = (): void => {};
