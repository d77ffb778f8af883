// `belay run`: follows one prompt from its acceptance to its outcome.
//
// Invariants
// 1. Exit code 0 means that the run is recorded as completed. (Or, with --detach, that it is accepted.)
// 2. It always ends: with the outcome, or with `disconnected` when the server is gone for too long.
// 3. The first Ctrl-C cancels. Exiting in any other way cancels nothing on a server. A run in this program is also
//    stopped when the reader of its output closes the pipe.

import { ControlError, messageOf } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/model/cancel.ts";
import type { Accepted } from "../../../core/model/command.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import type { Delivery, Prompt } from "../../../core/model/prompt.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl } from "../../../ports/control.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { count, formatOutcome } from "../../shared/format/format-outcome.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { atTerminal, isInteractive, type TerminalPrompt } from "../../shared/terminal/terminal-prompt.ts";
import { onLostStdout } from "./lost-stdout.ts";
import { isUnanswered, RunCancels } from "./run-cancel.ts";
import { type CancelSent, EXIT_OUTCOME, EXIT_UNREAD, formatExitMessage } from "./run-exit.ts";
import { RunQuestions } from "./run-questions.ts";
import { RunView } from "./run-view.ts";
import { within } from "./within.ts";

/** Where the run is carried out. */
export interface RunPlace {
  readonly control: BelayControl;
  readonly kind: "server" | "here";
  /** A description for messages. */
  readonly where: string;
  /** The options with which other commands find the run. Empty, or with a space before them. */
  readonly options: string;
  /** Whether the server runs, busy or not. Undefined: the run is in this program. */
  isThere?(): Promise<boolean>;
  /** Resolves when the runs of other programs in this one have ended, or `leave` has resolved. */
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
  /** The run is cancelled after this time. */
  readonly limitMs: number | undefined;
  readonly clock: Clock;
}

/** The prompt, and where it is carried out. */
export interface Prepared {
  readonly prompt: Prompt;
  /** Undefined: a new session. */
  readonly session: string | undefined;
  readonly place: RunPlace;
}

/** A cancel is answered within milliseconds. A second Ctrl-C waits at most this long for the answer. */
const CANCEL_MS = 1_000;

/** The period of the keep-alive timer; its value does not matter. */
const KEEP_ALIVE_MS = 60_000;

/** How long to wait for the last events after the outcome is known. */
const LINGER_MS = 500;

/** How long to wait for them on a new stream. */
const CATCH_UP_MS = 10_000;

/** Reads the prompt, finds the place and follows the run until its outcome. Handles Ctrl-C from the start. */
export async function runPrompt(prepare: () => Promise<Prepared>, options: RunRequest): Promise<number> {
  let live: LiveRun | undefined;
  const leave = Promise.withResolvers<"leaving">();
  let onSignal = (signal: StopSignal): "leaving" | "staying" =>
    live?.onSignal(signal) ?? process.exit(EXIT_SIGNAL[signal]);
  const unsubscribe = onStopSignals((signal) => onSignal(signal));
  const restoreListeners = onLostStdout({
    unread: () => (live === undefined ? process.exit(EXIT_UNREAD) : live.unread()),
    hangup: () => void onSignal("SIGHUP"),
  });
  try {
    const { place, ...prepared } = await prepare();
    try {
      live = new LiveRun(begin(place.control, prepared, options), place, options);
      const code = await live.watch();
      onSignal = () => {
        leave.resolve("leaving");
        return "leaving";
      };
      await place.rest?.(leave.promise);
      return live.isUnread ? EXIT_UNREAD : code;
    } finally {
      await place.close();
    }
  } finally {
    unsubscribe();
    restoreListeners();
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
  /** The state of the cancel by Ctrl-C. */
  #cancel: CancelSent = "none";
  #cancelled: Promise<void> = Promise.resolve();
  readonly #cancels: RunCancels;
  #leaving = false;
  #isUnread = false;
  /** Why the answer could not be read. */
  #unreadable: ControlError | undefined;
  /** The last position in the log that was shown. */
  #seen: Seq = 0;

  constructor(run: RunControl, place: RunPlace, options: RunRequest) {
    this.#run = run;
    this.#place = place;
    this.#options = options;
    this.#view = new RunView({
      ...{ out: process.stdout, err: process.stderr, form: options.form, options: place.options, clock: options.clock },
    });
    const follows = options.form === "text" && options.after === "outcome";
    this.#terminalPrompt = follows && isInteractive() ? atTerminal(options.clock) : undefined;
    this.#cancels = new RunCancels({
      clock: options.clock,
      cancel: (reason) => run.cancel(reason),
      isThere: async () => (await place.isThere?.()) === true,
      note: (text) => this.#view.note(text),
      noteNow: (text) => this.#noteNow(text),
    });
    const { control } = place;
    const at = { place: place.kind, options: place.options };
    this.#questions = new RunQuestions({ control, view: this.#view, terminalPrompt: this.#terminalPrompt, ...at });
  }

  /** Follows the run until its outcome, or until its acceptance with --detach. Resolves with the exit code. */
  async watch(): Promise<number> {
    const cancelLimit = this.#limit();
    const cancelKeepAlive = this.#keepAlive();
    try {
      const accepted = await this.#run.accepted.catch((error: unknown) => this.#unaccepted(error));
      this.#accepted = accepted;
      if (this.#options.after === "acceptance") return this.#detached(accepted);
      const { where } = this.#place;
      this.#view.note(`${accepted.runId} in ${this.#run.sessionId}, ${where}${formatPosition(accepted)}`);
      const outcome = await this.#outcome(accepted).catch((error: unknown) => this.#onDisconnect(accepted, error));
      // After Ctrl-C both are printed: the receipt of the cancel, which may arrive later, and the outcome.
      await this.#within(CANCEL_MS, this.#cancelled);
      return this.#end(outcome);
    } finally {
      this.#cancels.close();
      cancelLimit();
      cancelKeepAlive();
      this.#questions.close();
      this.#following.abort();
      this.#terminalPrompt?.release();
    }
  }

  /** If the prompt had no answer, waits for a cancel that was sent: it withdraws the prompt. */
  async #unaccepted(error: unknown): Promise<never> {
    if (isUnanswered(error)) await this.#cancels.areAnswered();
    throw error;
  }

  /**
   * Handles the loss of the server. Waits for a cancel that was sent, and once it is answered requests the outcome
   * again. Without one, throws an error that names the run and how to find it later.
   */
  async #onDisconnect({ runId, ...accepted }: Accepted, error: unknown): Promise<Outcome> {
    if (!(error instanceof ControlError) || error.code !== "disconnected") throw error;
    if (!this.#cancels.isEmpty) this.#view.note(`The outcome of ${runId} cannot be read: ${error.message}`);
    if (await this.#cancels.areAnswered()) {
      return this.#outcome({ runId, ...accepted }, await this.#place.control.run(runId));
    }
    throw new ControlError("disconnected", `The outcome of ${runId} is unknown: ${error.message}`, {
      hint: `It continues once the server is back. Then: belay follow ${runId}${this.#place.options}`,
      cause: error,
    });
  }

  /**
   * Handles a closed stdout pipe. A run in this program is stopped, as SIGPIPE stops other programs. A run on a server
   * continues, and stderr says how to find it.
   */
  unread(): void {
    if (this.#isUnread) return;
    this.#isUnread = true;
    if (this.#place.kind === "server") this.#exit(EXIT_UNREAD);
    else if (this.#cancel === "none") {
      this.#noteNow("Its output is not read any more. Stopping it.");
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

  onSignal(signal: StopSignal): "leaving" | "staying" {
    if (signal === "SIGINT" && this.#cancel === "none") {
      this.#noteNow("Stopping it. Ctrl-C again exits at once.");
      this.#cancelOnce("Ctrl-C");
      return "staying";
    }
    // Exiting now could lose a cancel that was sent but not answered, so any further signal waits for it.
    if (this.#cancel === "sent") {
      if (!this.#leaving) void this.#within(CANCEL_MS, this.#cancelled).then(() => this.#exit(EXIT_SIGNAL[signal]));
      this.#leaving = true;
      return "staying";
    }
    this.#exit(EXIT_SIGNAL[signal]);
    return "leaving";
  }

  /** Prints a note even while a question is on the screen. */
  #noteNow(text: string): void {
    if (this.#terminalPrompt === undefined) this.#view.note(text);
    else this.#terminalPrompt.interject(this.#view.noted(text));
  }

  /** Prints what happens to the run, and exits. */
  #exit(code: number): void {
    const { kind, options } = this.#place;
    const sessionId = this.#sessionId();
    const name = this.#accepted?.runId ?? "The prompt";
    this.#terminalPrompt?.release();
    this.#view.endLine();
    process.stderr.write(`${formatExitMessage({ name, sessionId, place: kind, cancel: this.#cancel, options })}\n`);
    const exit = (): never => process.exit(code);
    // Without a cancel, a run in this program is parked before the exit. A run on a server continues by itself.
    if (kind === "here" && this.#cancel === "none") void this.#place.close().then(exit, exit);
    else exit();
  }

  /** Undefined: a new session on a server has no known id before the prompt is accepted. */
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

  /** Keeps Node running: an agent in this program may wait without a timer or a socket, and Node would exit with 0. */
  #keepAlive(): () => void {
    const { clock } = this.#options;
    let cancelTimer = (): void => {};
    const schedule = (): void => {
      cancelTimer = clock.after(KEEP_ALIVE_MS, schedule);
    };
    schedule();
    return () => cancelTimer();
  }

  /**
   * The recorded outcome, from the event stream or from a request for it, whichever is first. The stream alone could
   * wait forever for a lost server; the request alone would show no output.
   */
  async #outcome(accepted: Accepted, run: Pick<RunControl, "outcome"> = this.#run): Promise<Outcome> {
    this.#following = new AbortController();
    const followed = this.#follow(accepted, this.#following.signal).catch((error: unknown) => {
      this.#view.note(`Its events cannot be followed: ${messageOf(error)}`);
      return undefined;
    });
    try {
      const outcome = await Promise.race([followed.then((found) => found ?? run.outcome), run.outcome]);
      if ((await this.#view.shownWithin(LINGER_MS, followed)) === undefined) await this.#catchUp(accepted, followed);
      return outcome;
    } catch (error) {
      // A second stream would print everything twice.
      this.#following.abort();
      const found = await followed;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** Opens a new stream: the old one may be in a long retry pause after a loss of the server. */
  async #catchUp(accepted: Accepted, followed: Promise<unknown>): Promise<void> {
    this.#following.abort();
    await followed;
    const again = new AbortController();
    const following = this.#follow(accepted, again.signal).catch(() => undefined);
    const found = await this.#view.shownWithin(CATCH_UP_MS, following);
    again.abort();
    if (found !== undefined) return;
    await this.#answer(accepted);
  }

  /** Reads the answer from the run if no stream has delivered it. Exit code 0 never means a missing answer. */
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

  /** Follows the events after the last one shown. Resolves with the outcome, if the stream has it. */
  async #follow({ runId, seq }: Accepted, signal: AbortSignal): Promise<Outcome | undefined> {
    const session = this.#place.control.session(this.#run.sessionId);
    const after = Math.max(this.#seen, seq - 1);
    for await (const event of session.events({ after, deltas: "with", signal })) {
      // Backpressure: events are fetched as fast as stdout is read.
      await this.#view.room(signal);
      this.#view.show(event, runId);
      if (!("seq" in event)) continue;
      this.#seen = event.seq;
      if (!("runId" in event) || event.runId !== runId) continue;
      this.#questions.handle(event);
      if (event.type === "run.settled") return event.outcome;
    }
    return undefined;
  }

  #end(outcome: Outcome): number {
    const runId = this.#accepted?.runId;
    this.#view.endLine();
    if (this.#unreadable !== undefined) throw this.#unreadable;
    if (this.#options.form === "lines") print(JSON.stringify({ outcome, runId, sessionId: this.#run.sessionId }));
    else this.#view.note(`${runId} ${formatOutcome(outcome)}`);
    return EXIT_OUTCOME[outcome.kind];
  }

  #detached(accepted: Accepted): number {
    const { sessionId } = this.#run;
    if (this.#options.form === "lines") print(JSON.stringify({ accepted, runId: accepted.runId, sessionId }));
    else {
      print(accepted.runId);
      this.#view.note(
        `It runs in ${sessionId}${formatPosition(accepted)}. belay follow ${accepted.runId}${this.#place.options}`,
      );
    }
    return EXIT_OK;
  }
}

const formatPosition = ({ ahead, repeated, joined }: Accepted): string => {
  if (repeated) return "; this key was used before: it is the same run";
  if (joined === "steer") return "; it waits to be taken into the live run";
  return ahead === 0 ? "" : `; ${count(ahead, "run")} before it`;
};
