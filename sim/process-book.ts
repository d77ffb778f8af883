// What the logs say about processes: what became of each, and how often its result was told. Apart from the engine.
import type { CancelReason, Outcome } from "../src/core/model/cancel.ts";
import type { Event, Feedback } from "../src/core/model/event.ts";
import type { CallId, ProcessId, Seq, SessionId } from "../src/core/model/ids.ts";
import type { InboxItem } from "../src/core/model/inbox.ts";

export interface ProcessFacts {
  readonly id: ProcessId;
  readonly session: SessionId;
  readonly requestedAt: Seq;
  owner: CallId | SessionId;
  /** The owner that ended while this process was still dying. */
  dyingOf?: CallId | SessionId;
  feedback: Feedback;
  cancel: { readonly at: Seq; readonly reason: CancelReason } | undefined;
  settled: { readonly at: Seq; readonly outcome: Outcome; readonly dropped: boolean } | undefined;
  /** Whether its session was open when it ended. */
  open: boolean;
  /** Where its result was put into the inbox, and taken out of it by a turn. */
  readonly added: Seq[];
  readonly taken: Seq[];
  /**
   * Where calls have ended well that had been told its result: they tell it in theirs. `early`: it had waited for it.
   */
  readonly heard: { readonly at: Seq; readonly early: boolean }[];
}

export class ProcessBook {
  readonly all = new Map<ProcessId, ProcessFacts>();
  /** Results that want a run to be begun for them, by session. */
  readonly waking = new Map<SessionId, Set<ProcessId>>();
  readonly #closed = new Set<SessionId>();
  readonly #waiting = new Map<SessionId, number>();

  /** Those of a session, oldest first. */
  of(session: SessionId): readonly ProcessFacts[] {
    return [...this.all.values()].filter((one) => one.session === session);
  }

  /** What waits in the inbox, and what may still be put there. */
  room(session: SessionId): { readonly waiting: number; readonly going: number } {
    const going = this.of(session).filter((one) => one.settled === undefined && reports(one)).length;
    return { waiting: this.#waiting.get(session) ?? 0, going };
  }

  note(session: SessionId, event: Event, seq: Seq): void {
    if (event.type === "inbox.added") this.#count(session, 1);
    else if (event.type === "inbox.taken") this.#count(session, -event.items.length);
    switch (event.type) {
      case "session.closed":
        this.#closed.add(session);
        return;
      case "session.cancel_requested":
        this.waking.delete(session);
        return;
      case "run.accepted":
        if (event.wake === true) this.waking.delete(session);
        return;
      case "process.requested":
        this.#requested(session, event, seq);
        return;
      case "inbox.taken":
        for (const item of event.items) this.#taken(session, item, seq);
        return;
      case "inbox.added":
        this.#added(session, event, seq);
        return;
      default:
        if ("processId" in event && event.processId !== undefined) this.#noteOne(event, seq);
    }
  }

  /** A call has ended well, and had been told these. */
  heard(session: SessionId, told: ReadonlyMap<ProcessId, boolean>, seq: Seq): void {
    for (const [id, early] of told) {
      const one = this.all.get(id);
      if (one !== undefined && one.added.length > 0 && one.taken.length + one.heard.length === 0)
        this.#count(session, -1);
      one?.heard.push({ at: seq, early });
      this.waking.get(session)?.delete(id);
    }
  }

  #count(session: SessionId, change: number): void {
    this.#waiting.set(session, (this.#waiting.get(session) ?? 0) + change);
  }

  #requested(session: SessionId, event: Extract<Event, { type: "process.requested" }>, seq: Seq): void {
    const { processId: id, owner, feedback } = event;
    this.all.set(id, {
      ...{ id, session, requestedAt: seq, owner, feedback, cancel: undefined, settled: undefined, open: true },
      ...{ added: [], taken: [], heard: [] },
    });
  }

  #added(session: SessionId, event: Extract<Event, { type: "inbox.added" }>, seq: Seq): void {
    const id = processIn(event.item);
    const one = id === undefined ? undefined : this.all.get(id);
    if (one === undefined || id === undefined) return;
    one.added.push(seq);
    // By what was asked for, not by what the event says.
    if (one.feedback !== "wake") return;
    const waking = this.waking.get(session) ?? new Set<ProcessId>();
    waking.add(id);
    this.waking.set(session, waking);
  }

  #taken(session: SessionId, item: InboxItem, seq: Seq): void {
    const id = processIn(item);
    if (id === undefined) return;
    this.all.get(id)?.taken.push(seq);
    this.waking.get(session)?.delete(id);
  }

  #noteOne(event: Extract<Event, { processId?: ProcessId }>, seq: Seq): void {
    const one = event.processId === undefined ? undefined : this.all.get(event.processId);
    if (one === undefined) return;
    switch (event.type) {
      case "process.detached":
        if (event.dying !== undefined) one.dyingOf = one.owner;
        one.owner = event.owner;
        one.feedback = event.feedback;
        if (event.dying !== undefined) one.cancel ??= { at: seq, reason: event.dying };
        return;
      case "process.cancel_requested":
        one.cancel ??= { at: seq, reason: event.reason };
        return;
      case "process.settled":
        one.open = !this.#closed.has(one.session);
        one.settled ??= { at: seq, outcome: event.outcome, dropped: event.dropped === true };
        return;
      default:
        return;
    }
  }
}

/** The process whose result an item is, by what the model reads of it. */
export function processIn({ kind, data }: InboxItem): ProcessId | undefined {
  if (kind !== "result" || typeof data !== "object" || data === null || !("processId" in data)) return undefined;
  return data.processId as ProcessId;
}

/** Whether its result is put into the inbox when it ends. */
export const reports = (one: Pick<ProcessFacts, "owner" | "feedback">): boolean =>
  one.owner.startsWith("ses_") && one.feedback !== "silent";

export const isBackground = ({ owner }: ProcessFacts): boolean => owner.startsWith("ses_");
