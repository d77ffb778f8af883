// `belay run`: one prompt from a shell, from its acceptance to its outcome.
//
// Invariants
// 1. Exit code 0 means that the run has completed and that this is recorded. (Or, with --detach, that it is accepted.)
// 2. It ends: with the outcome, or, when nobody can be asked for it any more, with `disconnected`.
// 3. Ctrl-C is a cancel, once. Leaving in any other way cancels nothing on a server. A run in this very program is
//    stopped too when its output is not read any more.

import { ControlError, messageOf } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/model/cancel.ts";
import type { Accepted } from "../../../core/model/command.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import type { Delivery, Prompt } from "../../../core/model/prompt.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl } from "../../../ports/control.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { count, sayOutcome } from "../../shared/format/format-outcome.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { atTerminal, isInteractive, type TerminalPrompt } from "../../shared/terminal/terminal-prompt.ts";
import { type CancelSent, formatExitMessage } from "./exit-message.ts";
import { onLostStdout } from "./lost-stdout.ts";
import { isUnanswered, RunCancels } from "./run-cancel.ts";
import { EXIT_OUTCOME, EXIT_UNREAD } from "./run-exit.ts";
import { RunQuestions } from "./run-questions.ts";
import { RunView } from "./run-view.ts";
import { within } from "./within.ts";

/** Where the run is. */
export interface RunPlace {
  readonly control: BelayControl;
  readonly kind: "server" | "here";
  /** For people. */
  readonly where: string;
  /** What other commands need to find it, for lines that are pasted. Empty, or with a space before it. */
  readonly options: string;
  /** Whether the server is there, busy or not. Undefined: the run is in this very program. */
  isThere?(): Promise<boolean>;
  /** Resolves when what others have begun in this program has ended, or `leave` has resolved. */
  rest?(leave: Promise<unknown>): Promise<void>;
  close(): Promise<unknown>;
}

export interface RunRequest {
  readonly key: string | undefined;
  readonly title: string | undefined;
  /** The directory of the new session, absolute. */
  readonly cwd: string | undefined;
  readonly delivery: Delivery | undefined;
  readonly form: "text" | "lines";
  readonly after: "outcome" | "acceptance";
  /** Then it is cancelled. */
  readonly limitMs: number | undefined;
  readonly clock: Clock;
}

/** What is asked, and where. */
export interface Prepared {
  readonly prompt: Prompt;
  /** Undefined: in a session of its own. */
  readonly session: string | undefined;
  readonly place: RunPlace;
}

/** A cancel is answered within milliseconds. Whoever wants to leave before that is kept no longer than this. */
const CANCEL_MS = 1_000;

/** As good as any: what counts is that a timer is there. */
const STAY_MS = 60_000;

/** After the outcome is known, what was said last is usually on its way. */
const LINGER_MS = 500;

/** If it is not, it is asked for. Nobody waits longer for it. */
const CATCH_UP_MS = 10_000;

/** Reads the prompt, finds the place and stays until the outcome. Ctrl-C is heard from the first moment on. */
export async function runPrompt(prepare: () => Promise<Prepared>, options: RunRequest): Promise<number> {
  let live: LiveRun | undefined;
  const leave = Promise.withResolvers<"leaving">();
  let hear = (signal: StopSignal): "leaving" | "staying" => live?.hear(signal) ?? process.exit(EXIT_SIGNAL[signal]);
  const dispose = onStopSignals((signal) => hear(signal));
  const listening = onLostStdout({
    unread: () => (live === undefined ? process.exit(EXIT_UNREAD) : live.unread()),
    hangup: () => void hear("SIGHUP"),
  });
  try {
    const { place, ...asked } = await prepare();
    try {
      live = new LiveRun(begin(place.control, asked, options), place, options);
      const code = await live.watch();
      hear = () => {
        leave.resolve("leaving");
        return "leaving";
      };
      await place.rest?.(leave.promise);
      return live.isUnread ? EXIT_UNREAD : code;
    } finally {
      await place.close();
    }
  } finally {
    dispose();
    listening();
  }
}

function begin(control: BelayControl, { prompt, session }: Omit<Prepared, "place">, options: RunRequest): RunControl {
  const { key, title, cwd, delivery } = options;
  const keyed = key === undefined ? {} : { key };
  if (session === undefined) {
    const named = { ...(title === undefined ? {} : { title }), ...(cwd === undefined ? {} : { cwd }) };
    return control.prompt(prompt, { ...keyed, ...named });
  }
  return control.session(session).prompt(prompt, { ...keyed, ...(delivery === undefined ? {} : { delivery }) });
}

class LiveRun {
  readonly #run: RunControl;
  readonly #place: RunPlace;
  readonly #options: RunRequest;
  readonly #view: RunView;
  readonly #terminalPrompt: TerminalPrompt | undefined;
  readonly #questions: RunQuestions;
  #following = new AbortController();
  #accepted: Accepted | undefined;
  /** Ours, for Ctrl-C. */
  #cancel: CancelSent = "none";
  #cancelled: Promise<void> = Promise.resolve();
  readonly #cancels: RunCancels;
  #leaving = false;
  #isUnread = false;
  /** Why its answer could not be shown. */
  #unreadable: ControlError | undefined;
  /** The last position in the log that was shown. */
  #seen: Seq = 0;

  constructor(run: RunControl, place: RunPlace, wish: RunRequest) {
    this.#run = run;
    this.#place = place;
    this.#options = wish;
    this.#view = new RunView({
      ...{ out: process.stdout, err: process.stderr, form: wish.form, options: place.options, clock: wish.clock },
    });
    const follows = wish.form === "text" && wish.after === "outcome";
    this.#terminalPrompt = follows && isInteractive() ? atTerminal(wish.clock) : undefined;
    this.#cancels = new RunCancels({
      clock: wish.clock,
      cancel: (reason) => run.cancel(reason),
      isThere: async () => (await place.isThere?.()) === true,
      note: (text) => this.#view.note(text),
      noteNow: (text) => this.#sayNow(text),
    });
    const { control } = place;
    const at = { place: place.kind, options: place.options };
    this.#questions = new RunQuestions({ control, view: this.#view, terminalPrompt: this.#terminalPrompt, ...at });
  }

  /** Until it has ended, or was accepted if that is all that is wanted. */
  async watch(): Promise<number> {
    const dispose = this.#limit();
    const leave = this.#stay();
    try {
      const accepted = await this.#run.accepted.catch((error: unknown) => this.#unaccepted(error));
      this.#accepted = accepted;
      if (this.#options.after === "acceptance") return this.#detached(accepted);
      const { where } = this.#place;
      this.#view.note(`${accepted.runId} in ${this.#run.sessionId}, ${where}${place(accepted)}`);
      const outcome = await this.#outcome(accepted).catch((error: unknown) => this.#outOfTouch(accepted, error));
      // The outcome may be heard of before the receipt, and whoever pressed Ctrl-C is owed both.
      await this.#within(CANCEL_MS, this.#cancelled);
      return this.#end(outcome);
    } finally {
      this.#cancels.close();
      dispose();
      leave();
      this.#questions.close();
      this.#following.abort();
      this.#terminalPrompt?.release();
    }
  }

  /** A cancel that is on its way is not given up because the prompt had no answer: it withdraws the prompt. */
  async #unaccepted(error: unknown): Promise<never> {
    if (isUnanswered(error)) await this.#cancels.areAnswered();
    throw error;
  }

  /**
   * The server cannot be asked any more. A cancel that is on its way is still sent, and once it is answered the outcome
   * is asked for again. Else says of which run, and how to find it later.
   */
  async #outOfTouch({ runId, ...accepted }: Accepted, error: unknown): Promise<Outcome> {
    if (!(error instanceof ControlError) || error.code !== "disconnected") throw error;
    if (!this.#cancels.isEmpty) this.#view.note(`${runId} cannot be asked for its outcome: ${error.message}`);
    if (await this.#cancels.areAnswered()) {
      return this.#outcome({ runId, ...accepted }, await this.#place.control.run(runId));
    }
    throw new ControlError("disconnected", `How ${runId} ends is not known: ${error.message}`, {
      hint: `It goes on where it was once the server is back. Then: belay follow ${runId}${this.#place.options}`,
      cause: error,
    });
  }

  /**
   * Nobody reads what it says any more. One that runs in this program is stopped, as a pipe stops other programs. One
   * of a server goes on, and stderr says how to find it.
   */
  unread(): void {
    if (this.#isUnread) return;
    this.#isUnread = true;
    if (this.#place.kind === "server") this.#part(EXIT_UNREAD);
    else if (this.#cancel === "none") {
      this.#sayNow("Its output is not read any more. Stopping it.");
      this.#cancelOnce("its output was not read any more");
    }
  }

  get isUnread(): boolean {
    return this.#isUnread;
  }

  #cancelOnce(note: string): void {
    this.#cancel = "sent";
    this.#cancelled = this.#cancels.send({ kind: "user", note }).then((sent) => {
      this.#cancel = sent;
    });
  }

  hear(signal: StopSignal): "leaving" | "staying" {
    if (signal === "SIGINT" && this.#cancel === "none") {
      this.#sayNow("Stopping it. Ctrl-C again leaves at once.");
      this.#cancelOnce("Ctrl-C");
      return "staying";
    }
    // Left now, a cancel that is still on its way would be taken along, however often somebody asks for both.
    if (this.#cancel === "sent") {
      if (!this.#leaving) void this.#within(CANCEL_MS, this.#cancelled).then(() => this.#leave(signal));
      this.#leaving = true;
      return "staying";
    }
    this.#leave(signal);
    return "leaving";
  }

  /** Also while a question is on the screen. */
  #sayNow(text: string): void {
    if (this.#terminalPrompt === undefined) this.#view.note(text);
    else this.#terminalPrompt.interject(this.#view.noted(text));
  }

  #leave(signal: StopSignal): void {
    this.#part(EXIT_SIGNAL[signal]);
  }

  #part(code: number): void {
    const { kind, options } = this.#place;
    const sessionId = this.#sessionId();
    const name = this.#accepted?.runId ?? "The prompt";
    this.#terminalPrompt?.release();
    this.#view.endLine();
    process.stderr.write(`${formatExitMessage({ name, sessionId, place: kind, cancel: this.#cancel, options })}\n`);
    const exit = (): never => process.exit(code);
    // Asked to go by the system: a run of this very program is set down in order, one of a server goes on by itself.
    if (kind === "here" && this.#cancel === "none") void this.#place.close().then(exit, exit);
    else exit();
  }

  /** Over the network it is not known before the acceptance, if the session is the prompt's own. */
  #sessionId(): SessionId | undefined {
    try {
      return this.#run.sessionId;
    } catch {
      return undefined;
    }
  }

  #limit(): () => void {
    const { limitMs, clock } = this.#options;
    if (limitMs === undefined) return () => {};
    const note = `belay run --timeout ${limitMs}`;
    return clock.after(limitMs, () => void this.#cancels.send({ kind: "policy", note }));
  }

  /** An agent of this very program may wait for what holds no timer and no socket: then Node would leave, with 0. */
  #stay(): () => void {
    const { clock } = this.#options;
    let dispose = (): void => {};
    const stay = (): void => {
      dispose = clock.after(STAY_MS, stay);
    };
    stay();
    return () => dispose();
  }

  /**
   * The outcome as the log has it, whichever way it is heard of first: by following, or by asking for it. Following
   * alone could wait for ever on a server that is gone; asking alone would show nothing.
   */
  async #outcome(accepted: Accepted, run: Pick<RunControl, "outcome"> = this.#run): Promise<Outcome> {
    this.#following = new AbortController();
    const heard = this.#follow(accepted, this.#following.signal).catch((error: unknown) => {
      this.#view.note(`What it does cannot be followed: ${messageOf(error)}`);
      return undefined;
    });
    try {
      const outcome = await Promise.race([heard.then((found) => found ?? run.outcome), run.outcome]);
      if ((await this.#view.shownWithin(LINGER_MS, heard)) === undefined) await this.#catchUp(accepted, heard);
      return outcome;
    } catch (error) {
      // Two that follow would show everything twice.
      this.#following.abort();
      const found = await heard;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** After the server was gone for a while, the stream takes its time to come back. A new one need not wait. */
  async #catchUp(accepted: Accepted, heard: Promise<unknown>): Promise<void> {
    this.#following.abort();
    await heard;
    const again = new AbortController();
    const following = this.#follow(accepted, again.signal).catch(() => undefined);
    const found = await this.#view.shownWithin(CATCH_UP_MS, following);
    again.abort();
    if (found !== undefined) return;
    await this.#answer(accepted);
  }

  /** Shows the answer as the run has it, because no stream has brought it. Exit code 0 never means a missing answer. */
  async #answer({ runId }: Accepted): Promise<void> {
    try {
      const { turnId, text, truncated } = await this.#run.view();
      if (this.#options.form === "lines" || turnId === undefined || text === undefined) return;
      this.#view.answer(turnId, text);
      if (truncated === true) this.#view.note(`The answer is longer: ${this.#kept(runId)}`);
    } catch (error) {
      this.#unreadable = new ControlError("disconnected", `${runId} has ended, and its answer could not be read.`, {
        hint: `It is kept: ${this.#kept(runId)}`,
        cause: error,
      });
    }
  }

  #kept(runId: string): string {
    return `belay show ${runId}${this.#place.options}`;
  }

  #within<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
    return within(this.#options.clock, limitMs, work);
  }

  /** From where it was left. */
  async #follow({ runId, seq }: Accepted, signal: AbortSignal): Promise<Outcome | undefined> {
    const session = this.#place.control.session(this.#run.sessionId);
    const after = Math.max(this.#seen, seq - 1);
    for await (const event of session.events({ after, deltas: "with", signal })) {
      // What a slow reader has not read yet is not fetched either.
      await this.#view.room(signal);
      this.#view.show(event, runId);
      if (!("seq" in event)) continue;
      this.#seen = event.seq;
      if (!("runId" in event) || event.runId !== runId) continue;
      this.#questions.hear(event);
      if (event.type === "run.settled") return event.outcome;
    }
    return undefined;
  }

  #end(outcome: Outcome): number {
    const runId = this.#accepted?.runId;
    this.#view.endLine();
    if (this.#unreadable !== undefined) throw this.#unreadable;
    if (this.#options.form === "lines") print(JSON.stringify({ outcome, runId, sessionId: this.#run.sessionId }));
    else this.#view.note(`${runId} ${sayOutcome(outcome)}`);
    return EXIT_OUTCOME[outcome.kind];
  }

  #detached(accepted: Accepted): number {
    const { sessionId } = this.#run;
    if (this.#options.form === "lines") print(JSON.stringify({ accepted, runId: accepted.runId, sessionId }));
    else {
      print(accepted.runId);
      this.#view.note(
        `It goes on in ${sessionId}${place(accepted)}. belay follow ${accepted.runId}${this.#place.options}`,
      );
    }
    return EXIT_OK;
  }
}

const place = ({ ahead, repeated, joined }: Accepted): string => {
  if (repeated) return "; this key was used before: it is the same run";
  if (joined === "steer") return "; it waits to be taken into the live run";
  return ahead === 0 ? "" : `; ${count(ahead, "run")} before it`;
};
