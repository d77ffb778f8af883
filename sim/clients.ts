// The clients of a simulation: they send requests, in one tick or another, and record the answers.

import { STOP_UNRECORDED, toControlError } from "../src/core/errors.ts";
import type { CancelReason, CancelReceipt } from "../src/core/model/cancel.ts";
import type { QueuePlace } from "../src/core/model/command.ts";
import type { Delta, Gap } from "../src/core/model/delta.ts";
import type { Feedback, Recorded } from "../src/core/model/event.ts";
import {
  type CallId,
  type ProcessId,
  type QuestionId,
  type RunId,
  runOf,
  type Seq,
  type SessionId,
} from "../src/core/model/ids.ts";
import type { Delivery } from "../src/core/model/prompt.ts";
import type { QuestionReply } from "../src/core/model/question.ts";
import type { StartOptions } from "../src/ports/spawner.ts";
import { SessionProcesses } from "../src/sdk/session-processes.ts";
import type { AnswerMoment, LogPosition } from "../test/oracle/caller-history.ts";
import { checkDelta } from "./deltas.ts";
import type { Facts } from "./facts.ts";
import { withdrawNote } from "./history.ts";
import type { Life } from "./life.ts";
import type { LiveStops } from "./live-stops.ts";
import type {
  AnswerRecord,
  AskedRecord,
  CancelRecord,
  ChangeRecord,
  EndRecord,
  Follower,
  PostRecord,
  PromptRecord,
  StartRecord,
  WaitRecord,
} from "./records.ts";
import type { Trace } from "./trace.ts";

interface Parts {
  readonly facts: Facts;
  readonly trace: Trace;
  readonly stops: LiveStops;
  readonly trimmedTo: ReadonlyMap<SessionId, Seq>;
  readonly life: () => Life;
  readonly violate: (rule: string, message: string) => void;
}

export class Clients {
  readonly asked: AskedRecord[] = [];
  readonly followers: Follower[] = [];
  readonly #parts: Parts;
  #ticket = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get prompts(): readonly PromptRecord[] {
    return this.asked.filter((record) => record.kind === "prompt");
  }

  prompt(session: SessionId, asked: { text: string; delivery: Delivery; key: string | undefined }): PromptRecord {
    const { text, delivery, key } = asked;
    const { runId, accepted } = this.#engine.prompt(session, { prompt: { text }, delivery, key });
    const { facts } = this.#parts;
    const record: PromptRecord = {
      kind: "prompt",
      ...this.#stamp(session),
      runId,
      ...asked,
      // A session that waits keeps its place, whichever of its runs comes to be the next one. One with a live run goes
      // behind those that wait when that run ends.
      waitingElsewhere: this.#isLive(session) || this.#quiet(session) ? facts.waitingElsewhere(session) : [],
      startsBefore: facts.starts.length,
      receipt: undefined,
    };
    this.#note(record, `prompt ${runId} ${delivery} ${key ?? ""} "${text}"`, accepted, (receipt) => {
      record.receipt = receipt;
      return `accepted ${receipt.runId} at ${receipt.seq}${receipt.repeated ? " again" : ""}`;
    });
    return record;
  }

  cancelSession(session: SessionId, { keep = false }: { keep?: boolean } = {}): void {
    const background = keep ? { background: "keep" as const } : {};
    const ask = (reason: CancelReason): ReturnType<Life["engine"]["cancel"]["session"]> =>
      this.#engine.cancel.session(session, { reason, ...background });
    this.#cancel("session", session, session, ask, { keep });
  }

  cancelProcess(session: SessionId, id: ProcessId): void {
    this.#cancel("process", session, id, (reason) => this.#engine.cancel.process(id, reason));
  }

  /** Starts a process for the session itself. */
  start(session: SessionId, options: StartOptions & { readonly feedback: Feedback }): void {
    const stamp = this.#stamp(session);
    const command = `command ${stamp.ticket}`;
    const { feedback } = options;
    const record: StartRecord = { kind: "start", ...stamp, command, receipt: undefined };
    const started = new SessionProcesses(this.#engine, session).start(command, options);
    this.#note(record, `start ${feedback} "${command}"`, started, ({ id }) => {
      record.receipt = { processId: id };
      return id;
    });
  }

  waitFor(session: SessionId, processId: ProcessId, limitMs: number | undefined): void {
    const record: EndRecord = { kind: "end", ...this.#stamp(session), processId, receipt: undefined };
    const waited = new SessionProcesses(this.#engine, session)
      .get(processId)
      .then((handle) => handle.wait(limitMs === undefined ? {} : { limitMs }));
    this.#note(record, `wait ${processId} ${limitMs ?? ""}`, waited, (result) => {
      record.receipt = { result };
      return result?.outcome.kind ?? "not yet";
    });
  }

  close(session: SessionId): void {
    this.#cancel("close", session, session, (reason) => this.#engine.ask(session, { type: "close", reason }));
  }

  cancelRun(session: SessionId, runId: RunId): void {
    this.#cancel("run", session, runId, (reason) => this.#engine.cancel.run(runId, reason));
  }

  /** `early`: the prompt may not have arrived. */
  cancelKey(session: SessionId, key: string, early = false): void {
    const named = early ? { prompts: [key] } : {};
    const ask = (reason: CancelReason): Promise<CancelReceipt> =>
      this.#engine.cancel.prompt(session, { key, reason, ...named });
    this.#cancel("key", session, key, ask, { early });
  }

  /** `key`: the same request again is the same request, note and all. */
  cancelCall(session: SessionId, callId: CallId, { remind, key }: { remind: boolean; key?: string }): void {
    const aim = key === undefined ? { remind } : { remind, note: `${key} ${callId}` };
    const ask = (reason: CancelReason): Promise<CancelReceipt> =>
      this.#engine.cancel.call(callId, { reason, remind }, key);
    this.#cancel("call", session, callId, ask, aim);
  }

  cancelQuestion(session: SessionId, questionId: QuestionId): void {
    this.#cancel("question", session, questionId, (reason) =>
      this.#engine.questions.cancel({ type: "cancel-question", questionId, reason }, undefined),
    );
  }

  /** A reply to a question, with its own `by`, so that it can be recognised in the log. */
  answer(session: SessionId, questionId: QuestionId, said: QuestionReply, digest?: string): AnswerRecord {
    const stamp = this.#stamp(session);
    const reply: QuestionReply = { ...said, by: `t${stamp.ticket}` };
    const record: AnswerRecord = { kind: "answer", ...stamp, questionId, reply, digest, receipt: undefined };
    const answered = this.#engine.questions.answer(questionId, reply, digest === undefined ? {} : { digest });
    this.#note(
      record,
      `answer ${questionId} ${reply.kind} ${digest === undefined ? "" : "digest"}`,
      answered,
      (receipt) => {
        record.receipt = receipt;
        return receipt.kind;
      },
    );
    return record;
  }

  post(session: SessionId): void {
    const stamp = this.#stamp(session);
    const text = `item ${stamp.ticket}`;
    const record: PostRecord = { kind: "post", ...stamp, text, receipt: undefined };
    const posted = this.#engine.ask(session, { type: "post", item: { kind: "result", text } });
    this.#note(record, `post ${text}`, posted, (receipt) => {
      record.receipt = receipt;
      return receipt.kind;
    });
  }

  change(session: SessionId, runId: RunId, change: { verb: ChangeRecord["verb"]; to?: QueuePlace }): void {
    const stamp = this.#stamp(session);
    const text = `edit ${stamp.ticket}`;
    const record: ChangeRecord = { kind: "change", ...stamp, verb: change.verb, runId, text, receipt: undefined };
    const reason: CancelReason = { kind: "user", note: withdrawNote(stamp.ticket) };
    const command = {
      edit: { type: "edit", runId, prompt: { text } },
      move: { type: "move", runId, to: change.to ?? "front" },
      withdraw: { type: "withdraw", runId, reason },
      steer: { type: "steer", runId },
    } as const;
    this.#note(record, `${change.verb} ${runId}`, this.#engine.change(session, command[change.verb]), (receipt) => {
      record.receipt = receipt;
      return receipt.kind;
    });
  }

  wait(session: SessionId, runId: RunId): void {
    const record: WaitRecord = { kind: "wait", ...this.#stamp(session), runId, receipt: undefined };
    this.#note(record, `wait ${runId}`, this.#engine.outcome(runId), (outcome) => {
      record.receipt = { outcome };
      return outcome?.kind ?? "no such run";
    });
  }

  follow(session: SessionId, after: Seq, deltas: Follower["deltas"] = "without"): void {
    const stop = new AbortController();
    const stream = this.#engine.follow(session, { after, signal: stop.signal, deltas });
    const life = this.#parts.life().number;
    this.#parts.trace.note(`follow ${session} after ${after}, ${deltas} deltas`);
    this.followers.push({
      ...{ session, life, from: after, deltas, cursor: after, received: [], positions: [], over: new Set() },
      ...{ waiting: false, ended: false, left: false, followed: false, stream, stop },
    });
  }

  /** Whoever has heard enough: it says so while it waits, or does not come again. */
  leave(follower: Follower): void {
    this.#parts.trace.note(`leave ${follower.session} at ${follower.cursor}`);
    follower.left = true;
    if (follower.waiting) {
      follower.stop.abort();
      return;
    }
    follower.ended = true;
    void follower.stream.return();
  }

  /** Whoever has left, or was cut off, and comes back where it was. */
  comeBack(follower: Follower): void {
    follower.followed = true;
    this.follow(follower.session, follower.cursor, follower.deltas);
  }

  /** Followers that disconnected and were not replaced by one from the same position. */
  get gone(): readonly Follower[] {
    const life = this.#parts.life().number;
    return this.followers.filter((one) => !one.followed && (one.left || one.life !== life));
  }

  /** Some of those who were cut off come back, to hear how it ends. */
  bringBack(): void {
    for (const follower of this.gone.slice(-2)) this.comeBack(follower);
  }

  /** Everybody leaves, and must be let go. */
  async leaveAll(drain: () => Promise<void>): Promise<void> {
    const { number } = this.#parts.life();
    const mine = this.followers.filter(({ life }) => life === number);
    for (const follower of mine) if (!follower.left && !follower.ended) this.leave(follower);
    await drain();
    for (const { session, waiting } of mine) {
      if (waiting) this.#parts.violate("G8", `A follower of ${session} has left, and still waits.`);
    }
  }

  /** A follower asks for one more event. */
  pull(follower: Follower): void {
    follower.waiting = true;
    follower.stream.next().then(
      ({ value, done }) => {
        follower.waiting = false;
        if (done === true || value === undefined) follower.ended = true;
        else if (this.#parts.life().number === follower.life) this.#received(follower, value);
      },
      () => {
        follower.waiting = false;
        follower.ended = true;
      },
    );
  }

  #cancel(
    scope: CancelRecord["scope"],
    session: SessionId,
    target: string,
    ask: (reason: CancelReason) => Promise<NonNullable<CancelRecord["receipt"]>>,
    aim: { readonly remind?: boolean; readonly note?: string; readonly keep?: boolean; readonly early?: boolean } = {},
  ): void {
    const stamp = this.#stamp(session);
    const { remind = false, keep = false, early = false, note = `c${stamp.ticket}` } = aim;
    const standing = this.#parts.facts.open(session).map((run) => run.id);
    const named = { kind: "cancel", ...stamp, scope, target, remind, note, standing } as const;
    const stops = this.#stoppedBy(named);
    const run = scope === "run" ? (target as RunId) : scope === "call" ? runOf(target as CallId) : undefined;
    const isFound = run === undefined || this.#engine.lanes.sessionOf(run) !== undefined;
    const record: CancelRecord = { ...named, keep, early, stops, isFound, receipt: undefined };
    this.#note(record, `cancel ${scope} ${target}${keep ? ", keep" : ""}`, ask({ kind: "user", note }), (receipt) => {
      record.receipt = receipt;
      return receipt.kind;
    });
    this.#parts.stops.stopsAtOnce(session);
    if (scope === "run") this.#parts.stops.reaches(session, target);
  }

  #stoppedBy({ scope, target, standing }: Pick<CancelRecord, "scope" | "target" | "standing">): readonly RunId[] {
    const { facts, life } = this.#parts;
    const { turns } = life().actors;
    const isLate = (id: RunId): boolean => turns.findLast(({ runId }) => runId === id)?.end !== undefined;
    // One that was cut off may have been lost by the recovery before.
    const isHere = (id: RunId): boolean => !life().release && turns.some(({ runId }) => runId === id);
    const live = standing.filter(isHere);
    const of = {
      ...{ session: () => live, close: () => live, run: () => [target as RunId] },
      key: () => live.filter((id) => facts.runs.get(id)?.key === target),
      ...{ call: () => [], process: () => [], question: () => [] },
    };
    return of[scope]().filter((id) => !isLate(id));
  }

  #received(follower: Follower, event: Recorded | Delta | Gap): void {
    if (event.type === "delta" || event.type === "progress" || event.type === "output") {
      checkDelta(follower, event, this.#parts.life(), this.#parts.violate);
      return;
    }
    follower.received.push(event);
    follower.positions.push(this.#positionOf(follower.session));
    follower.cursor = event.type === "gap" ? event.to : event.seq;
    if (event.type === "turn.settled") follower.over.add(event.turnId);
  }

  /** Records the request, and later its answer and what was so at that moment. */
  #note<T>(record: AskedRecord, question: string, answered: Promise<T>, told: (answer: T) => string): void {
    const life = this.#parts.life();
    const { trace } = this.#parts;
    trace.note(`${record.ticket}. ${question}`);
    this.asked.push(record);
    answered.then(
      (answer) => {
        if (life.phase === "over") return;
        trace.note(`  > ${record.ticket}. ${told(answer)}`);
        record.answered = { ticket: this.#ticket, moment: this.#momentOf(record, life) };
      },
      (error: unknown) => {
        if (life.phase === "over") return;
        const { code, message, cause, hint } = toControlError(error);
        record.refused = code;
        if (hint === STOP_UNRECORDED) record.carriedOut = true;
        if (code === "internal") record.error = `${message} ${String(cause ?? "")}`;
        trace.note(`  > ${record.ticket}. ${record.refused}`);
        record.answered = { ticket: this.#ticket, moment: this.#momentOf(record, life) };
        if (record.kind === "cancel" && record.scope === "question") this.#parts.stops.refusedForQuestion();
      },
    );
  }

  #momentOf({ kind, session, sentHead }: AskedRecord, life: Life): AnswerMoment {
    // A session that it does not drive cannot start a process.
    const isDriven = kind !== "start" || life.engine.lanes.peek(session)?.epoch !== undefined;
    const server = life.release || !isDriven ? "not-driving" : life.phase === "closing" ? "closing" : "serving";
    return { ...this.#positionOf(session), sentHead, server, storeFailed: life.faults > 0 };
  }

  #positionOf(session: SessionId): LogPosition {
    return { head: this.#parts.facts.head(session), trimmedTo: this.#parts.trimmedTo.get(session) ?? 0 };
  }

  /** Nothing that was asked of this session is without an end. */
  #isLive(session: SessionId): boolean {
    return this.#engine.lanes.peek(session)?.decided.live !== undefined;
  }

  #quiet(session: SessionId): boolean {
    const { facts } = this.#parts;
    // One that a process has woken has its place in the line as well, from when it is decided.
    if (this.#engine.lanes.peek(session)?.decided.queue.length) return false;
    return this.prompts.every(
      (one) => one.session !== session || one.refused !== undefined || facts.runs.get(one.runId)?.outcome !== undefined,
    );
  }

  #stamp(
    session: SessionId,
  ): Pick<AskedRecord, "ticket" | "life" | "session" | "sentHead" | "refused" | "error" | "answered"> {
    this.#ticket += 1;
    const sentHead = this.#parts.facts.head(session);
    const unanswered = { refused: undefined, error: undefined, answered: undefined };
    return { ticket: this.#ticket, life: this.#parts.life().number, session, sentHead, ...unanswered };
  }

  get #engine(): Life["engine"] {
    return this.#parts.life().engine;
  }
}
