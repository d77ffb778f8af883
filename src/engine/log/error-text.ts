// Error texts, before they are recorded. Providers quote in their errors what they were sent, and that may be a key.
import type { Outcome } from "../../core/model/cancel.ts";
import type { Command } from "../../core/model/command.ts";
import { withoutTokens } from "../../core/token-patterns.ts";

/** A text without the secrets in it. */
export type Redact = (text: string) => string;

interface Failed {
  readonly message: string;
}

/** The same command, with its error texts redacted. What was said, asked and returned stays as it is. */
export function redacted<C extends Command>(command: C, redact: Redact = withoutTokens): C {
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
      // Why it could not be told whether this needs an approval stands in the note.
      return ask.about.kind === "question" || ask.about.note === undefined
        ? command
        : { ...command, about: { ...ask.about, note: redact(ask.about.note) } };
    default:
      return command;
  }
}
