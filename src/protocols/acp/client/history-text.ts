// Renders the conversation so far as text, for an agent that does not remember it. Pure.
import { failedWhileStopping, who } from "../../../core/model/cancel.ts";
import type { RunId } from "../../../core/model/ids.ts";
import type { Finish, Message, TranscriptResult } from "../../../core/read/transcript.ts";
import { TRANSCRIPT_CHARS_MAX } from "./limits.ts";
import { SESSION_CALL } from "./session-call.ts";

/** Empty if there is nothing before this prompt. */
export function historyText(messages: readonly Message[], now: RunId): string {
  const lines = messages.filter((one) => !(one.role === "user" && one.runId === now)).flatMap(linesOf);
  const text = lines.join("\n\n");
  if (text.length <= TRANSCRIPT_CHARS_MAX) return text;
  const kept = text.slice(-TRANSCRIPT_CHARS_MAX).toWellFormed();
  return `[${text.length - kept.length} characters before this are left out.]\n${kept}`;
}

function linesOf(message: Message): readonly string[] {
  switch (message.role) {
    case "user":
      return message.withdrawn === true ? [] : [`USER: ${message.text}`];
    case "note":
      return [`NOTE: ${message.item.text}`];
    case "summary":
      return [`SUMMARY OF THE CONVERSATION BEFORE: ${message.text}`];
    case "assistant": {
      const text = `${message.text}${cutOff(message.finish)}`;
      return text === "" ? [] : [`YOU: ${text}`];
    }
    case "tool":
      return message.results
        .filter(({ name }) => name !== SESSION_CALL)
        .map((result) => `YOU DID: ${result.name}: ${endOf(result)}`);
  }
}

function cutOff(finish: Finish): string {
  switch (finish.kind) {
    case "cancelled":
      return ` [stopped by ${who(finish.reason)}]${finish.error ? ` [${failedWhileStopping(finish.error)}]` : ""}`;
    case "failed":
      return ` [failed: ${finish.message}]`;
    case "lost":
      return " [cut off; how far it got is not known]";
    default:
      return "";
  }
}

function endOf({ outcome, result, changes }: TranscriptResult): string {
  const how = outcome.kind === "failed" ? `failed: ${outcome.message}` : outcome.kind;
  const shown = result === undefined ? "" : ` ${JSON.stringify(result).slice(0, RESULT_CHARS_MAX)}`;
  return `${how}${shown}${changes === undefined ? "" : ` (changed: ${changes.join(", ")})`}`;
}

/** Characters of one result. The agent can look again itself. */
const RESULT_CHARS_MAX = 2_000;
