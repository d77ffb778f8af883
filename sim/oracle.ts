// Holds every answer against the logs, the moment it is given. A small model of its own: it shares no rule with
// `decide`.
import type { CancelReceipt, SessionReceipt } from "../src/core/cancel.ts";
import { toControlError } from "../src/core/control-error.ts";
import type { Delta, Gap } from "../src/core/delta.ts";
import type { Recorded } from "../src/core/event.ts";
import type { CallId, RunId, SessionId } from "../src/core/ids.ts";
import { hears } from "./actors.ts";
import type { Facts, RunFacts } from "./facts.ts";
import type { Life } from "./life.ts";
import { ModelTurn } from "./model-turn.ts";
import type { ProcessOracle } from "./process-oracle.ts";
import { checkAnswer, checkPost, checkWithdrawal } from "./question-oracle.ts";
import {
  type AskedRecord,
  type CancelRecord,
  type ChangeRecord,
  type Follower,
  noteOf,
  type PromptRecord,
  type WaitRecord,
  what,
} from "./records.ts";

export interface Violation {
  /** The guarantee it breaks. */
  readonly rule: string;
  readonly message: string;
}

interface Parts {
  readonly facts: Facts;
  readonly processes: ProcessOracle;
  readonly trimmedTo: ReadonlyMap<SessionId, number>;
  readonly life: () => Life;
  readonly violate: (rule: string, message: string) => void;
  /** When a run was asked for, by the clients' clock. */
  readonly ticketOf: (run: RunId) => number | undefined;
}

export class Oracle {
  readonly #facts: Facts;
  readonly #parts: Parts;
  /** Runs of this life whose stop has been decided: nothing of them begins any more. */
  readonly stopped = new Set<RunId>();
  readonly stoppedCalls = new Set<CallId>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#facts = parts.facts;
  }

  answered(record: AskedRecord, life: Life): void {
    switch (record.kind) {
      case "prompt":
        this.#accepted(record);
        return;
      case "cancel":
        this.#cancelled(record);
        return;
      case "change":
        this.#changed(record);
        return;
      case "wait":
        this.#waited(record, life);
        return;
      case "answer":
        checkAnswer(record, this.#facts, this.#parts.violate);
        return;
      case "post":
        checkPost(record, this.#facts, this.#parts.violate);
        return;
      case "start":
      case "end":
        this.#parts.processes.answered(record);
        return;
    }
  }

  /** A life is over, and what was decided in it and not recorded was never decided. */
  forget(): void {
    this.stopped.clear();
    this.stoppedCalls.clear();
    this.#parts.processes.stopped.clear();
  }

  /** An error is an answer too, and must be one that this situation can give. */
  refused(record: AskedRecord, life: Life, error: unknown): void {
    const { code, message, cause } = toControlError(error);
    if (code === "internal") {
      this.#parts.violate("G28", `${what(record)} was answered "internal": ${message} ${String(cause ?? "")}`);
      return;
    }
    const driven = life.engine.lanes.peek(record.session)?.epoch !== undefined;
    const trouble = life.faults > 0 || life.phase === "closing" || (record.kind === "start" && !driven);
    if ((code === "unavailable" || code.startsWith("store_")) && !trouble) {
      this.#parts.violate("G28", `${what(record)} was answered "${code}", but the store was well.`);
    }
    if (record.kind === "prompt") this.#promptRefused(record, code);
    // Taking an approval back can be refused, and then its call was never stopped.
    if (record.kind === "cancel" && record.scope === "question") this.stoppedCalls.clear();
  }

  /** A cancel that was decided has reached the live work in the same tick, before any disk was asked. */
  stopsAtOnce(session: SessionId): void {
    const life = this.#parts.life();
    const lane = life.engine.lanes.peek(session);
    if (lane?.phase !== "ready") return;
    const run = lane.decided.live;
    this.#parts.processes.stopAtOnce(lane);
    if (run === undefined) return;
    for (const call of run.live) if (call.phase === "stopping") this.#callStops(call.id);
    if (run.phase !== "stopping") return;
    // An interrupt can still be refused by the store, and then nothing may have happened: it stops once it is durable.
    if (run.reason.kind === "superseded") return;
    this.stopped.add(run.id);
    for (const actor of life.actors.going) {
      if (actor.runId === run.id && !actor.aborted && hears(actor))
        this.#parts.violate("G28", `${actor.id} was not told to stop at once.`);
      if (actor.runId === run.id && actor instanceof ModelTurn && actor.request !== undefined) {
        this.#parts.violate("G13", `The model of ${actor.id} was not told to stop at once.`);
      }
    }
  }

  /** A cancel by id of a run that goes on here waits for no disk. */
  reaches(session: SessionId, target: string): void {
    const lane = this.#parts.life().engine.lanes.peek(session);
    const live = lane?.phase === "ready" && lane.epoch !== undefined ? lane.durable.live : undefined;
    if (lane === undefined || live?.id !== target || live.phase !== "running") return;
    for (const { id, phase, scope } of lane.works) {
      if (phase === "live" && scope.reason === undefined) {
        this.#parts.violate("G28", `${id} goes on, and its run was cancelled in this very tick.`);
      }
    }
  }

  #callStops(id: CallId): void {
    this.stoppedCalls.add(id);
    const actor = this.#parts.life().actors.calls.find((one) => one.id === id && one.end === undefined);
    if (actor !== undefined && !actor.aborted && actor.hears) {
      this.#parts.violate("G28", `${id} was not told to stop at once.`);
    }
  }

  followed(follower: Follower, event: Recorded | Delta | Gap): void {
    if (event.type === "delta" || event.type === "progress" || event.type === "output") {
      this.#overheard(follower, event);
      return;
    }
    if (event.type === "gap") {
      const trimmed = this.#parts.trimmedTo.get(follower.session) ?? 0;
      const honest = event.from === follower.cursor + 1 && event.to <= trimmed && event.to >= event.from;
      if (!honest) this.#parts.violate("G30", `A gap from ${event.from} to ${event.to} was announced that is none.`);
      follower.cursor = event.to;
      return;
    }
    if (event.seq !== follower.cursor + 1) {
      this.#parts.violate("G29", `A follower at ${follower.cursor} was given ${event.seq}.`);
    }
    const durable = this.#facts.at(follower.session, event.seq);
    if (durable === undefined) this.#parts.violate("G16", `A follower was given ${event.seq} before it was durable.`);
    else if (durable.type !== event.type) {
      this.#parts.violate("G29", `A follower was given ${event.type} at ${event.seq}; the log has ${durable.type}.`);
    }
    if (event.type === "turn.settled") follower.over.add(event.turnId);
    follower.cursor = event.seq;
  }

  /** A piece of an answer is the piece that the turn has said there, and comes before its end. */
  #overheard(follower: Follower, delta: Delta): void {
    if (follower.deltas === "without") this.#parts.violate("G29", "Somebody hears more than was asked for.");
    if (delta.type !== "delta" || delta.kind === "reasoning") return;
    if (follower.over.has(delta.turnId)) {
      this.#parts.violate("G16", `A follower was told what ${delta.turnId} says after its end.`);
    }
    const turn = this.#parts.life().actors.turns.findLast(({ id }) => id === delta.turnId);
    if (turn !== undefined && !turn.hasSaid(delta.text, delta.from)) {
      this.#parts.violate("G29", `A follower was told something that ${delta.turnId} has not said there.`);
    }
  }

  #accepted(record: PromptRecord): void {
    const { receipt } = record;
    if (receipt === undefined) return;
    const event = this.#facts.at(record.session, receipt.seq);
    if (event?.type !== "run.accepted" || event.runId !== receipt.runId) {
      this.#parts.violate("G1", `${what(record)} was told "accepted", but the log does not have it.`);
      return;
    }
    if (receipt.repeated) {
      if (record.key === undefined || event.key !== record.key) {
        this.#parts.violate("G2", `${what(record)} was given the run of somebody else, ${receipt.runId}.`);
      } else if (event.prompt.text !== record.text || event.delivery !== record.delivery) {
        this.#parts.violate("G2", `${what(record)} has other content than ${receipt.runId}, and was not refused.`);
      }
      return;
    }
    if (event.runId !== record.runId || event.prompt.text !== record.text) {
      this.#parts.violate("G1", `${what(record)} was recorded as something else.`);
    }
    if (record.delivery === "reject" && receipt.ahead > 0) {
      this.#parts.violate("G5", `${what(record)} was to be refused by a busy session.`);
    }
  }

  #promptRefused(record: PromptRecord, code: string): void {
    if (code === "conflict") {
      const first = record.key === undefined ? undefined : this.#facts.underKey(record.session, record.key);
      if (first === undefined || (first.asked === record.text && first.delivery === record.delivery)) {
        this.#parts.violate("G2", `${what(record)} was told "conflict", but there is none.`);
      }
    }
    if (code === "closed" && this.#facts.closed.get(record.session) === undefined) {
      this.#parts.violate("G3", `${what(record)} was told "closed", but the session is open.`);
    }
  }

  #cancelled(record: CancelRecord): void {
    const { receipt } = record;
    if (receipt === undefined) return;
    if ("runs" in receipt) this.#sessionCancelled(record, receipt);
    else if (record.scope === "process") this.#parts.processes.cancelled(record, receipt);
    else if (record.scope === "call") this.#callCancelled(record, receipt);
    else if (record.scope === "question") checkWithdrawal(record, receipt, this.#facts, this.#parts.violate);
    else this.#runCancelled(record, receipt);
  }

  #sessionCancelled(record: CancelRecord, receipt: SessionReceipt): void {
    if (receipt.kind === "unknown") {
      this.#parts.violate("G10", `${what(record)} was told that there is no such session.`);
      return;
    }
    const told = new Map(receipt.runs.map(({ runId, receipt: one }) => [runId, one]));
    for (const id of record.standing) {
      const run = this.#facts.runs.get(id);
      if (run !== undefined && run.outcome === undefined && !told.has(id)) {
        this.#parts.violate("G7", `${what(record)} does not cover ${id}, which it found.`);
      }
    }
    for (const [runId, one] of told) this.#runReceipt(record, this.#facts.runs.get(runId), one);
    this.#parts.processes.covered(record, receipt);
  }

  #runCancelled(record: CancelRecord, receipt: CancelReceipt & { readonly runId?: RunId }): void {
    const run =
      record.scope === "key"
        ? this.#facts.underKey(record.session, record.target)
        : this.#facts.runs.get(record.target as RunId);
    if (receipt.kind === "unknown") {
      // A key may be used for the first time after somebody has asked to cancel it.
      const earlier = run !== undefined && (this.#parts.ticketOf(run.id) ?? 0) < record.ticket;
      // Its acceptance may have been on its way when its lane was let go of.
      if (earlier && !this.#parts.life().letGo) {
        this.#parts.violate("G10", `${what(record)} was told that there is no such run.`);
      }
      return;
    }
    if (record.scope === "key" && receipt.runId !== run?.id) {
      this.#parts.violate("G10", `${what(record)} hit ${receipt.runId}.`);
    }
    this.#runReceipt(record, run, receipt);
  }

  /** Is this what became of the run, as far as the log goes by now? */
  #runReceipt(record: CancelRecord, run: RunFacts | undefined, receipt: CancelReceipt): void {
    if (run === undefined) {
      this.#parts.violate("G10", `${what(record)} was told about a run the log does not have.`);
      return;
    }
    const lie = (why: string): void =>
      this.#parts.violate("G10", `${what(record)} was told "${receipt.kind}" of ${run.id}: ${why}.`);
    switch (receipt.kind) {
      case "withdrawn":
        if (run.startedAt !== undefined) lie("it has begun");
        if (!isCancelledBy(run, record.note)) lie("that is not how it ended");
        return;
      case "stopping":
        if (run.cancel?.at !== receipt.since) lie("it has not been stopping since then");
        else if ((noteOf(run.cancel.reason) === record.note) !== receipt.first) lie("it was not the first, or it was");
        return;
      case "settled":
        if (JSON.stringify(run.outcome) !== JSON.stringify(receipt.outcome)) lie("that is not how it ended");
        return;
      case "unknown":
        lie("it is in the log");
    }
  }

  #callCancelled(record: CancelRecord, receipt: CancelReceipt): void {
    const call = this.#facts.works.get(record.target as `call_${string}`);
    const lie = (why: string): void =>
      this.#parts.violate("G10", `${what(record)} was told "${receipt.kind}": ${why}.`);
    switch (receipt.kind) {
      case "withdrawn":
        lie("calls do not wait in a queue");
        return;
      case "stopping": {
        const since =
          call === undefined ? undefined : (call.cancel?.at ?? this.#facts.runs.get(call.runId)?.cancel?.at);
        if (since !== receipt.since) lie("it has not been stopping since then");
        return;
      }
      case "settled":
        if (JSON.stringify(call?.settled?.outcome) !== JSON.stringify(receipt.outcome)) lie("it did not end like this");
        return;
      case "unknown":
        if (call !== undefined) lie("it is in the log");
    }
  }

  #changed(record: ChangeRecord): void {
    const { receipt, runId } = record;
    const run = this.#facts.runs.get(runId);
    const lie = (why: string): void =>
      this.#parts.violate("G6", `${what(record)} was told "${receipt?.kind}": ${why}.`);
    switch (receipt?.kind) {
      case "changed": {
        const event = this.#facts.at(record.session, receipt.seq);
        const expected = {
          edit: "run.edited",
          move: "run.moved",
          withdraw: "run.settled",
          steer: "run.steered",
        } as const;
        if (event?.type !== expected[record.verb] || event.runId !== runId) lie("the log does not have it");
        else if (event.type === "run.edited" && event.prompt.text !== record.text) lie("the log has something else");
        return;
      }
      case "started":
        if (run?.startedAt === undefined) lie("it has not begun");
        return;
      case "unknown":
        // A move may also name a neighbour that is not there.
        if (run !== undefined && run.outcome === undefined && run.startedAt === undefined && !this.#steers(run)) {
          if (record.verb !== "move") lie("it is in the queue");
        }
        return;
      default:
        return;
    }
  }

  /** Whether a waiting run is, or may just have been, a steer: not in the queue that edits and moves speak of. */
  #steers(run: RunFacts): boolean {
    return (
      this.#facts.log(run.session).some((event) => event.type === "run.steered" && event.runId === run.id) ||
      run.delivery === "steer"
    );
  }

  #waited(record: WaitRecord, life: Life): void {
    const run = this.#facts.runs.get(record.runId);
    const outcome = record.receipt?.outcome;
    if (outcome === undefined) {
      if (run !== undefined && life.phase !== "closing" && !life.letGo) {
        this.#parts.violate("G16", `${what(record)} was told that there is no such run.`);
      }
      return;
    }
    if (JSON.stringify(run?.outcome) !== JSON.stringify(outcome)) {
      this.#parts.violate(
        "G16",
        `${what(record)} was told "${outcome.kind}" before that was durable, or of another run.`,
      );
    }
  }
}

function isCancelledBy(run: RunFacts, note: string): boolean {
  return run.outcome?.kind === "cancelled" && noteOf(run.outcome.reason) === note;
}
