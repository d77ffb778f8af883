// Redacts error texts before they are recorded. Providers quote the request in their errors, which may contain a key.
import type { Outcome } from "../../core/model/cancel.ts";
import type { Command } from "../../core/model/command.ts";
import type { SessionId } from "../../core/model/ids.ts";
import { withoutTokens } from "../../core/token-patterns.ts";
import type { Notify } from "../../ports/hooks.ts";

/** Returns the text without its secrets. */
export type Redact = (text: string) => string;

/**
 * Redacts with a function of the host that may fail. If it does, the whole text is replaced: recording it unchanged
 * would record the secret, and throwing would lose the end of a run.
 */
export class ErrorTexts {
  readonly #redact: Redact | undefined;
  readonly #notify: Notify;
  /** Reported once, because it would fail on every error of every run. */
  #hasFailed = false;

  constructor(redact: Redact | undefined, notify: Notify) {
    this.#redact = redact;
    this.#notify = notify;
  }

  redacted<C extends Command>(session: SessionId, command: C): C {
    const redact = this.#redact;
    return redact === undefined ? redacted(command) : redacted(command, (text) => this.#clean(session, redact, text));
  }

  #clean(session: SessionId, redact: Redact, text: string): string {
    try {
      const clean: unknown = redact(text);
      if (typeof clean === "string") return clean;
      // Its type does not allow a promise, but an async function may be passed anyway.
      if (clean instanceof Promise) clean.catch(() => {});
      this.#failed(session, new TypeError("`redact` returned no text."));
    } catch (error) {
      this.#failed(session, error);
    }
    return "[redacted]";
  }

  #failed(session: SessionId, error: unknown): void {
    if (!this.#hasFailed) this.#notify({ type: "bug", session, error });
    this.#hasFailed = true;
  }
}

interface Failed {
  readonly message: string;
}

/** The command with its error texts redacted. Prompts, questions and results are unchanged. */
function redacted<C extends Command>(command: C, redact: Redact = withoutTokens): C {
  const clean = <F extends Failed>(failed: F): F => ({ ...failed, message: redact(failed.message) });
  const cleanOutcome = (outcome: Outcome): Outcome => {
    if (outcome.kind === "failed") return clean(outcome);
    if (outcome.kind !== "cancelled" || outcome.error === undefined) return outcome;
    return { ...outcome, error: clean(outcome.error) };
  };
  const ask: Command = command;
  switch (ask.type) {
    case "settle-turn":
      return { ...command, end: { ...ask.end, outcome: cleanOutcome(ask.end.outcome) } };
    case "settle-call":
      return { ...command, end: { ...ask.end, outcome: cleanOutcome(ask.end.outcome) } };
    case "settle-process":
      return ask.end.failed === undefined
        ? command
        : { ...command, end: { ...ask.end, failed: clean(ask.end.failed) } };
    case "ask":
      // The note may contain the error of an approval callback that threw.
      return ask.about.kind === "question" || ask.about.note === undefined
        ? command
        : { ...command, about: { ...ask.about, note: redact(ask.about.note) } };
    default:
      return command;
  }
}
