// A session that a client has open: follows its log, sends updates to the client, and answers prompts in order.
//
// Invariants
// 1. Updates are sent in the order of the log. A prompt is answered after all updates of its run, and before any of the
//    next run.
// 2. A prompt is registered in the tick in which it arrives.
// 3. For a client that does not read, at most UPDATES_HELD_MAX updates and one page of events are held. The rest stays
//    in the log.
// 4. Releasing a session stops nothing in it.

import { ControlError, messageOf, toControlError } from "../../../core/errors.ts";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { CallId, RunId, Seq } from "../../../core/model/ids.ts";
import type { Delivery, Prompt } from "../../../core/model/prompt.ts";
import type { Question } from "../../../core/model/question.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl, SessionControl } from "../../../ports/control.ts";
import type { AgentBehind } from "./agent-behind.ts";
import { FOLLOW_REST_MS, UPDATES_HELD_MAX } from "./limits.ts";
import { loopTurn } from "./loop-turn.ts";
import type { Modal, ModeChoice } from "./mode-choice.ts";
import { OpenQuestions } from "./open-questions.ts";
import { OwnPrompt } from "./own-prompt.ts";
import type { Peer, SessionLocation } from "./peer.ts";
import { Narrator } from "./updates/narrator.ts";
import type { Update } from "./updates/update.ts";

export interface AttachedOptions {
  readonly control: BelayControl;
  readonly session: SessionControl;
  /** Its working directory. */
  readonly cwd: string;
  readonly peer: Peer;
  readonly clock: Clock;
  /** The client's name, and whether it may answer questions. */
  readonly by: string;
  readonly answers: "may" | "may not";
  readonly notice: (text: string) => void;
  readonly behind: AgentBehind | undefined;
}

/** Where updates start: at a new session, at the beginning of the log, or now. */
export type From = "new" | "start" | "now";

/** A constant reason, because an error with a stack would be created for no one. */
const OVER = { name: "Over", message: "The session was released." } as const;

export class AttachedSession {
  readonly session: SessionControl;
  readonly #options: AttachedOptions;
  readonly #place: SessionLocation;
  readonly #questions: OpenQuestions;
  readonly #prompts = new Set<OwnPrompt>();
  readonly #over = new AbortController();
  #reading = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #caughtUp = Promise.withResolvers<void>();
  #waiting: { readonly seq: Seq; readonly reached: () => void }[] = [];
  #narrator = new Narrator();
  #cursor: Seq = 0;
  /** Events up to here are history. Questions that are still open at its end are asked then. */
  #history: Seq = 0;
  #openInHistory = new Map<string, Question>();
  #underWay: Promise<void>[] = [];
  #following = true;
  /** Whether following has begun. Its end also closes what is open here. */
  #isAttached = false;
  #phase: "here" | "leaving" = "here";
  /** Runs that are not reported, because they began after the client closed the session. */
  readonly #unreported = new Set<RunId>();

  constructor(options: AttachedOptions) {
    this.#options = options;
    this.session = options.session;
    this.#caughtUp.promise.catch(() => {});
    const { control, session, cwd, peer, by, notice } = options;
    this.#place = { sessionId: session.id, cwd };
    this.#questions = new OpenQuestions({ control, peer, place: this.#place, by, notice });
  }

  /** The session's state as last sent to the client. */
  get state(): "idle" | "running" | "waiting" {
    return this.#narrator.state;
  }

  /** The session's mode as last sent to the client; undefined if its agent has no modes. */
  get choice(): ModeChoice | undefined {
    return this.#narrator.choice;
  }

  isUnstoppable(callId: CallId): boolean {
    return this.#narrator.isUnstoppable(callId);
  }

  get prompts(): readonly OwnPrompt[] {
    return [...this.#prompts];
  }

  /** Starts or restarts sending updates. Resolves when the existing history has been sent. */
  async attach(from: From, head: Seq, modal: Modal): Promise<void> {
    // Already following. Jumping ahead would skip the updates of prompts sent here.
    if (from === "now" && this.#isAttached && this.#following) return this.reached(head);
    this.#reading.abort(OVER);
    await this.#loop;
    this.#reading = new AbortController();
    this.#caughtUp = Promise.withResolvers<void>();
    this.#caughtUp.promise.catch(() => {});
    this.#questions.close();
    this.#openInHistory.clear();
    this.#narrator = new Narrator(modal);
    this.#cursor = 0;
    this.#history = from === "new" ? 0 : head;
    if (from === "now") await this.#joinInside(head, modal);
    if (!this.#isAttached) this.#followAgent();
    this.#isAttached = true;
    this.#loop = this.#follow(AbortSignal.any([this.#reading.signal, this.#over.signal]));
    if (!this.#isHistory) await this.#catchUp();
    await this.#caughtUp.promise;
  }

  /** Resolves when everything up to a position was sent, or when following has ended. */
  reached(seq: Seq): Promise<void> {
    if (this.#cursor >= seq || !this.#following) return this.#flush().catch(() => {});
    return new Promise((reached) => this.#waiting.push({ seq, reached }));
  }

  /** Registers a prompt synchronously. */
  prompt(prompt: Prompt, delivery: Delivery): OwnPrompt {
    const own = new OwnPrompt(this.session.prompt(prompt, { delivery }));
    this.#prompts.add(own);
    void own.ended.catch(() => {}).finally(() => this.#prompts.delete(own));
    if (!this.#following) void own.endByOutcome(); // @fault answered-before-the-last-update
    return own;
  }

  owns(runId: RunId): boolean {
    return [...this.#prompts].some((own) => own.runId === runId);
  }

  run(runId: string): RunControl | undefined {
    return [...this.#prompts].find((own) => own.runId === runId)?.run;
  }

  /** From now on reports only runs that have begun, and prompts of this client. */
  leave(): void {
    this.#phase = "leaving";
  }

  /** Stops sending updates. Runs continue; pending prompts are answered by their runs' outcomes. */
  release(): void {
    this.#over.abort(OVER);
    if (!this.#isAttached) this.#end(); // @fault never-answered-after-letting-go
  }

  /** Passes on updates that Belay does not record. For a client that does not read they wait in its connection. */
  #followAgent(): void {
    const { behind, peer } = this.#options;
    const unfollow = behind?.follow(this.session.id, (update) => {
      peer.passOn?.(this.#place, update).catch(() => {});
    });
    if (unfollow !== undefined) this.#over.signal.addEventListener("abort", unfollow, { once: true });
  }

  /** Starts in the middle of the log with the running work. */
  async #joinInside(head: Seq, { modes }: Modal): Promise<void> {
    // A single read: a run that began between two reads would be reported without its prompt.
    const { live, asOf, mode, queue, steers } = await this.session.explain();
    this.#cursor = Math.max(head, asOf);
    this.#history = this.#cursor;
    const questions = live?.questions ?? [];
    this.#openInHistory = new Map(questions.map((question) => [question.id, question]));
    const calls = live?.calls ?? [];
    const known = {
      live: live?.runId,
      calls,
      waiting: [...queue, ...steers],
      questions: [...this.#openInHistory.keys()],
    };
    this.#narrator = new Narrator({ modes, mode }, known);
    for (const { callId, name } of calls) {
      if (live === undefined) break;
      await this.#send({ type: "call", runId: live.runId, callId, name, input: null, stoppable: true });
    }
    for (const own of this.#prompts) await this.#passed(own, live?.runId);
  }

  /**
   * Handles a prompt that arrived right after the request to open the session, and began or ended before it was open.
   */
  async #passed(own: OwnPrompt, live: RunId | undefined): Promise<void> {
    try {
      const { runId } = await own.run.accepted;
      const { settledAt, outcome } = await own.run.row();
      const hasEnded = settledAt !== undefined && settledAt <= this.#cursor;
      if (runId === live || (hasEnded && outcome?.kind !== "cancelled")) own.begin(runId);
      if (hasEnded) await own.endByOutcome();
    } catch {
      // It was refused, and its answer reports that; or the store failed, and following reports that.
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const options = { after: this.#cursor, deltas: "with", signal } as const;
        for await (const page of this.session.pages(options)) {
          for (const event of page) await this.#handle(event);
          await this.#flush();
        }
        break;
      } catch (error) {
        if (signal.aborted || !(await this.#mayRetry(error, signal))) break;
      }
    }
    // A restart takes over from here.
    if (!this.#reading.signal.aborted) this.#end();
  }

  /** Decides whether to retry following. Prompts do not wait for that. */
  async #mayRetry(error: unknown, signal: AbortSignal): Promise<boolean> {
    const { code } = toControlError(error);
    this.#options.notice(`Following ${this.session.id} failed: ${messageOf(error)}`);
    this.#caughtUp.reject(error);
    for (const own of this.#prompts) void own.endByOutcome();
    if (code === "not_found" || code === "shutting_down") return false;
    await new Promise<void>((resolve) => {
      const dispose = this.#options.clock.after(FOLLOW_REST_MS, resolve, "idle");
      signal.addEventListener("abort", () => resolve(dispose()), { once: true });
    });
    return !signal.aborted;
  }

  #end(): void {
    this.#following = false;
    this.#questions.close();
    this.#caughtUp.reject(new ControlError("closed", "The session was released."));
    for (const own of this.#prompts) void own.endByOutcome();
    for (const { reached } of this.#waiting.splice(0)) reached();
  }

  async #handle(event: Recorded | Delta | Gap): Promise<void> {
    // Waits until the owner of every prompt is known, which must be settled before its run is reported.
    if (event.type === "run.started" || event.type === "run.taken" || event.type === "run.settled") await this.#known();
    for (const update of this.#narrator.updatesFor(event)) await this.#pass(update);
    const at = "seq" in event ? event.seq : event.type === "gap" ? event.to : undefined;
    if (at === undefined) return;
    const wasHistory = this.#cursor < this.#history;
    this.#cursor = at;
    if (wasHistory && at >= this.#history) await this.#catchUp();
    if (this.#waiting.length > 0) await this.#resolveReached(at);
  }

  async #resolveReached(seq: Seq): Promise<void> {
    await this.#flush();
    for (const { reached } of this.#waiting.filter((one) => one.seq <= seq)) reached();
    this.#waiting = this.#waiting.filter((one) => one.seq > seq);
  }

  async #known(): Promise<void> {
    const unknown = [...this.#prompts].filter((own) => own.runId === undefined);
    if (unknown.length > 0) await Promise.allSettled(unknown.map((own) => own.run.accepted));
  }

  async #pass(update: Update): Promise<void> {
    if (this.#isElsewhere(update)) return;
    if (update.type === "asked") return this.#asked(update);
    if (update.type === "answered") {
      this.#questions.settled(update.questionId);
      this.#openInHistory.delete(update.questionId);
    }
    await this.#send(update);
    if (update.type === "began" || update.type === "taken") await this.#begun(update.runId);
    if (update.type === "ended") await this.#answer(update);
  }

  #isElsewhere(update: Update): boolean {
    if (!("runId" in update)) return false;
    const { type, runId } = update;
    if (this.#phase === "leaving" && type === "began" && !this.owns(runId)) this.#unreported.add(runId);
    return this.#unreported.has(runId);
  }

  get #isHistory(): boolean {
    return this.#cursor < this.#history;
  }

  async #asked(update: Extract<Update, { type: "asked" }>): Promise<void> {
    if (this.#isHistory) {
      this.#openInHistory.set(update.question.id, update.question);
      return;
    }
    await this.#send(update);
    await this.#ask(update.question);
  }

  /** Asks after all earlier updates: the client must already know the call. */
  async #ask(question: Question): Promise<void> {
    if (this.#options.answers !== "may") return;
    await this.#flush();
    this.#questions.ask(question);
  }

  /** After the history: asks the questions that are still open. */
  async #catchUp(): Promise<void> {
    await this.#flush();
    for (const question of this.#openInHistory.values()) await this.#ask(question);
    this.#openInHistory.clear();
    this.#caughtUp.resolve();
  }

  async #begun(runId: RunId): Promise<void> {
    const own = [...this.#prompts].find((one) => one.runId === runId);
    if (own === undefined) return;
    await this.#flush();
    own.begin(runId);
    // Lets the answer, if there is one, be sent before anything else.
    await loopTurn();
  }

  async #answer({ runId, outcome, usage }: Extract<Update, { type: "ended" }>): Promise<void> {
    const own = [...this.#prompts].find((one) => one.runId === runId);
    if (own === undefined) return;
    await this.#flush();
    own.end({ runId, outcome, usage }); // @fault next-run-before-the-answer:end
    await loopTurn(); // @fault next-run-before-the-answer:turn
  }

  async #send(update: Update): Promise<void> {
    const whose = "runId" in update && this.owns(update.runId) ? "own" : "other";
    const origin = { whose, when: this.#isHistory ? "history" : "live" } as const;
    const written = this.#options.peer.send(this.#place, update, origin);
    // Awaited with the others in `#flush`; until then its rejection must not be unhandled.
    written.catch(() => {});
    this.#underWay.push(written);
    if (this.#underWay.length >= UPDATES_HELD_MAX) await this.#flush();
  }

  async #flush(): Promise<void> {
    const underWay = this.#underWay;
    this.#underWay = [];
    await Promise.all(underWay);
  }
}
