// `belay run`: one prompt from a shell, from its acceptance to its outcome.
//
// Invariants
// 1. Exit code 0 means that the run has completed and that this is recorded. (Or, with --detach, that it is accepted.)
// 2. It ends: with the outcome, or, when nobody can be asked for it any more, with `disconnected`.
// 3. Ctrl-C is a cancel, once. Leaving in any other way cancels nothing on a server.
import type { BelayControl, RunControl } from "../control.ts";
import type { Outcome } from "../core/cancel.ts";
import type { Accepted } from "../core/command.ts";
import { ControlError, messageOf } from "../core/control-error.ts";
import type { Seq } from "../core/ids.ts";
import type { Delivery, Prompt } from "../core/prompt.ts";
import type { Clock } from "../ports.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "./exit-code.ts";
import { EXIT_OUTCOME, EXIT_UNREAD } from "./run-exit.ts";
import { RunQuestions } from "./run-questions.ts";
import { atTerminal, hasTypist } from "./run-typist.ts";
import { RunView } from "./run-view.ts";
import { onStopSignals } from "./stop-signals.ts";
import { print } from "./terminal.ts";
import { count, sayOutcome, sayReceipt } from "./words.ts";

/** Where the run goes on. */
export interface RunPlace {
  readonly control: BelayControl;
  readonly kind: "server" | "here";
  /** For people. */
  readonly where: string;
  close(): Promise<unknown>;
}

export interface RunWish {
  readonly key: string | undefined;
  readonly title: string | undefined;
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

/** After the outcome is known, what was said last is usually on its way. */
const LINGER_MS = 500;

/** If it is not, it is asked for. Nobody waits longer for it. */
const CATCH_UP_MS = 10_000;

/** Reads the prompt, finds the place and stays until the outcome. Ctrl-C is heard from the first moment on. */
export async function runPrompt(prepare: () => Promise<Prepared>, wish: RunWish): Promise<number> {
  let live: LiveRun | undefined;
  const takeBack = onStopSignals((signal) => live?.hear(signal) ?? process.exit(EXIT_SIGNAL[signal]));
  // Heard before whoever else listens: leaving with 0 would say that the run has completed.
  process.stdout.prependListener("error", leaveUnread);
  try {
    const { place, ...asked } = await prepare();
    try {
      live = new LiveRun(begin(place.control, asked, wish), place, wish);
      return await live.watch();
    } finally {
      await place.close();
    }
  } finally {
    takeBack();
    process.stdout.removeListener("error", leaveUnread);
  }
}

/** Nobody reads any more (`belay run … | head`). The run goes on, as after any other way to leave. */
function leaveUnread(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(EXIT_UNREAD);
}

function begin(control: BelayControl, { prompt, session }: Omit<Prepared, "place">, wish: RunWish): RunControl {
  const { key, title, delivery } = wish;
  const keyed = key === undefined ? {} : { key };
  if (session === undefined) return control.prompt(prompt, { ...keyed, ...(title === undefined ? {} : { title }) });
  return control.session(session).prompt(prompt, { ...keyed, ...(delivery === undefined ? {} : { delivery }) });
}

class LiveRun {
  readonly #run: RunControl;
  readonly #place: RunPlace;
  readonly #wish: RunWish;
  readonly #view: RunView;
  readonly #questions: RunQuestions;
  readonly #following = new AbortController();
  #accepted: Accepted | undefined;
  #interrupted = false;
  /** The last position in the log that was shown. */
  #seen: Seq = 0;

  constructor(run: RunControl, place: RunPlace, wish: RunWish) {
    this.#run = run;
    this.#place = place;
    this.#wish = wish;
    this.#view = new RunView({ out: process.stdout, err: process.stderr, form: wish.form });
    const typist = wish.form === "text" && hasTypist() ? atTerminal : undefined;
    this.#questions = new RunQuestions({ control: place.control, view: this.#view, typist, place: place.kind });
  }

  /** Until it has ended, or was accepted if that is all that is wanted. */
  async watch(): Promise<number> {
    const takeBack = this.#limit();
    try {
      const accepted = await this.#run.accepted;
      this.#accepted = accepted;
      if (this.#wish.after === "acceptance") return this.#detached(accepted);
      const { where } = this.#place;
      this.#view.note(`${accepted.runId} in ${this.#run.sessionId}, ${where}${place(accepted)}`);
      return this.#end(await this.#outcome(accepted));
    } finally {
      takeBack();
      this.#questions.close();
      this.#following.abort();
    }
  }

  hear(signal: StopSignal): "leaving" | "staying" {
    if (signal === "SIGINT" && !this.#interrupted) {
      this.#interrupted = true;
      this.#view.note("Stopping it. Ctrl-C again leaves at once.");
      this.#cancel({ reason: { kind: "user", note: "Ctrl-C" } });
      return "staying";
    }
    this.#view.endLine();
    process.stderr.write(`${this.#parting()}\n`);
    const leave = (): never => process.exit(EXIT_SIGNAL[signal]);
    // Asked to go by the system: a run of this very program is set down in order, one of a server goes on by itself.
    if (this.#place.kind === "here" && !this.#interrupted) void this.#place.close().then(leave, leave);
    else leave();
    return "leaving";
  }

  /** What becomes of a run that is left alone. */
  #parting(): string {
    const name = this.#accepted?.runId ?? "The prompt";
    if (this.#place.kind === "here") {
      return this.#interrupted
        ? `Left at once. ${name} is recorded as being stopped; whoever opens the store next ends it.`
        : `Left. ${name} is taken up again when the store is next opened.`;
    }
    return this.#interrupted
      ? `Left at once. ${name} goes on being stopped by the server: belay runs ${this.#run.sessionId}`
      : `Left. ${name} goes on: belay follow ${this.#run.sessionId}, or belay cancel ${this.#run.sessionId}`;
  }

  #cancel(options: Parameters<RunControl["cancel"]>[0]): void {
    this.#run.cancel(options).then(
      (receipt) => this.#view.note(`cancel: ${sayReceipt(receipt)}`),
      (error: unknown) => this.#view.note(`The cancel was not answered: ${messageOf(error)}`),
    );
  }

  #limit(): () => void {
    const { limitMs, clock } = this.#wish;
    if (limitMs === undefined) return () => {};
    const note = `belay run --timeout ${limitMs}`;
    return clock.after(limitMs, () => this.#cancel({ reason: { kind: "policy", note } }));
  }

  /**
   * The outcome as the log has it, whichever way it is heard of first: by following, or by asking for it. Following
   * alone could wait for ever on a server that is gone; asking alone would show nothing.
   */
  async #outcome(accepted: Accepted): Promise<Outcome> {
    const heard = this.#follow(accepted, this.#following.signal).catch((error: unknown) => {
      this.#view.note(`What it does cannot be followed: ${messageOf(error)}`);
      return undefined;
    });
    const outcome = await Promise.race([heard.then((found) => found ?? this.#run.outcome), this.#run.outcome]);
    if ((await this.#within(LINGER_MS, heard)) === undefined) await this.#catchUp(accepted, heard);
    return outcome;
  }

  /** After the server was gone for a while, the stream takes its time to come back. A new one need not wait. */
  async #catchUp(accepted: Accepted, heard: Promise<unknown>): Promise<void> {
    this.#following.abort();
    await heard;
    const again = new AbortController();
    const following = this.#follow(accepted, again.signal).catch(() => undefined);
    const found = await this.#within(CATCH_UP_MS, following);
    again.abort();
    if (found !== undefined) return;
    this.#view.note(`The end of what it said could not be shown. It is kept: belay logs ${accepted.runId}`);
  }

  /** What it resolves with, if it does in time. */
  async #within<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const takeBack = this.#wish.clock.after(limitMs, () => resolve(undefined));
    const found = await Promise.race([work, late]);
    takeBack();
    return found;
  }

  /** From where it was left. */
  async #follow({ runId, seq }: Accepted, signal: AbortSignal): Promise<Outcome | undefined> {
    const session = this.#place.control.session(this.#run.sessionId);
    const after = Math.max(this.#seen, seq - 1);
    for await (const event of session.events({ after, deltas: "with", signal })) {
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
    if (this.#wish.form === "lines") print(JSON.stringify({ outcome, runId, sessionId: this.#run.sessionId }));
    else this.#view.note(`${runId} ${sayOutcome(outcome)}`);
    return EXIT_OUTCOME[outcome.kind];
  }

  #detached(accepted: Accepted): number {
    const { sessionId } = this.#run;
    if (this.#wish.form === "lines") print(JSON.stringify({ accepted, runId: accepted.runId, sessionId }));
    else {
      print(accepted.runId);
      this.#view.note(`It goes on in ${sessionId}${place(accepted)}. belay follow ${accepted.runId}`);
    }
    return EXIT_OK;
  }
}

const place = ({ ahead, repeated, joined }: Accepted): string => {
  if (repeated) return "; this key was used before: it is the same run";
  if (joined === "steer") return "; it waits to be taken into the live run";
  return ahead === 0 ? "" : `; ${count(ahead, "run")} before it`;
};

/** Without a server a run lives as long as this program. */
export const cannotDetach = (): ControlError =>
  new ControlError("invalid", "No server is running, so nobody would carry on with a detached run.", {
    hint: "Start one with: belay serve. Then: belay run --detach …",
  });
