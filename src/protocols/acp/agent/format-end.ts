// Formats how calls and runs ended, for both versions of the protocol.
import { failedWhileStopping, type Outcome, who } from "../../../core/model/cancel.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { isShownWhole } from "./updates/shown-text.ts";
import type { Update } from "./updates/update.ts";

export const LOST = "The run was cut off by a crash, and what it did is not known. Nothing was repeated.";

/** The raw result, unless it is a text or too long to be shown completely. */
export const rawOutput = (result: Json | undefined): { readonly rawOutput?: Json } =>
  result === undefined || typeof result === "string" || !isShownWhole(result) ? {} : { rawOutput: result };

export function endMeta(outcome: Outcome): object {
  switch (outcome.kind) {
    case "completed":
      return { status: "completed" };
    case "failed":
      return { status: "failed", code: outcome.code };
    case "lost":
      return { status: "lost" };
    case "cancelled": {
      const { reason, abandoned, dying, error } = outcome;
      const by = "by" in reason && reason.by !== undefined ? { by: reason.by } : {};
      const note = "note" in reason && reason.note !== undefined ? { note: reason.note } : {};
      return {
        status: "cancelled",
        reason: reason.kind,
        ...by,
        ...note,
        ...(abandoned === undefined ? {} : { abandoned }),
        ...(dying === undefined ? {} : { dying }),
        ...(error === undefined ? {} : { error }),
      };
    }
  }
}

/**
 * A notice about a failed or lost run, for clients that get no answer about it. The protocol has no other update for
 * it.
 */
export function failureNotices({ runId, outcome }: Extract<Update, { type: "ended" }>): readonly FailureNotice[] {
  if (outcome.kind !== "failed" && outcome.kind !== "lost") return [];
  const [title, description] =
    outcome.kind === "lost" ? ["The run was lost", LOST] : ["The run has failed", outcome.message];
  return [
    {
      sessionUpdate: "notice",
      severity: "error",
      title,
      description,
      _meta: { belay: { runId, ...endMeta(outcome) } },
    },
  ];
}

interface FailureNotice {
  readonly sessionUpdate: "notice";
  readonly severity: "error";
  readonly title: string;
  readonly description: string;
  readonly _meta: { readonly belay: object };
}

/** How it ended, as text, where the result alone does not show it. */
export function formatEnd(outcome: Outcome): string {
  switch (outcome.kind) {
    case "completed":
      return "";
    case "failed":
      return outcome.message;
    case "cancelled": {
      // A note written by a user may end with a full stop, and ours follows it.
      const by = who(outcome.reason).replace(/\.$/, "");
      const killed = outcome.dying === undefined ? "" : ` Still being killed: ${outcome.dying.join(", ")}.`;
      const failed = outcome.error === undefined ? "" : ` ${failedWhileStopping(outcome.error)}`;
      return outcome.abandoned === undefined
        ? `Stopped by ${by}.${failed}${killed}`
        : `Stopped by ${by}; it did not end when it was asked to, and may still be running.${killed}`;
    }
    case "lost":
      return "It was cut off by a crash. Whether it did its work is not known.";
  }
}
