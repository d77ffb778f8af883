// Converts the result of a call into tool output for the model. Stopped calls must not look like failed ones.
import type { LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";
import { failedWhileStopping, type Outcome, who } from "../../core/model/cancel.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { TranscriptResult } from "../../core/read/transcript.ts";
import { isJsonObject } from "../plain-json.ts";

export function resultOutput({ outcome, begun, result, changes }: Omit<TranscriptResult, "callId" | "name">): Output {
  switch (outcome.kind) {
    case "completed":
      return completed(result); // @fault unknown-told-as-done:completed
    case "failed":
      // Providers pass on only the reason, so it starts with the status.
      if (outcome.code === "denied") return { type: "execution-denied", reason: `DENIED. ${outcome.message}` };
      return errorText(outcome.message || "It failed.", known(changes), partial(result));
    case "cancelled":
      if (begun === false) return errorText(`STOPPED by ${who(outcome.reason)}.`, NOT_BEGUN);
      // @fault stop-told-as-a-failure
      return errorText(stopped(outcome), known(changes) ?? UNKNOWN_CHANGES, partial(result));
    case "running":
      return { type: "text", value: RUNNING };
    case "lost":
      if (begun === false) return errorText("LOST: the server was cut off.", NOT_BEGUN);
      return errorText(LOST, known(changes), partial(result)); // @fault unknown-told-as-done
  }
}

type Output = LanguageModelV4ToolResultOutput;

const LOST =
  "LOST: the server was cut off during this call. It is not known whether it did its work. Look before you repeat it.";

const RUNNING = "RUNNING: this call has not ended yet, and there is no result of it.";

const NOT_BEGUN = "It had not begun. Nothing was done.";
const UNKNOWN_CHANGES = "It is not known whether it had changed anything.";

function completed(result: Json | undefined): Output {
  if (result === undefined) return { type: "text", value: "(no output)" };
  if (isContent(result)) return result;
  if (typeof result !== "string") return { type: "json", value: result };
  // Some providers reject an empty text.
  return { type: "text", value: result.trim() === "" ? "(no output)" : result };
}

/** Whether a tool of the AI SDK returned content parts for the model: texts and files. */
function isContent(result: Json): result is Extract<Output, { type: "content" }> & Json {
  if (!isJsonObject(result) || result.type !== "content" || !Array.isArray(result.value)) return false;
  const { value } = result;
  return value.length > 0 && value.every((part) => isJsonObject(part) && (isText(part) || isFile(part)));
}

type Fields = { readonly [key: string]: Json };
const isText = ({ type, text }: Fields): boolean => type === "text" && typeof text === "string" && text.trim() !== "";
const isFile = ({ type, data, mediaType }: Fields): boolean =>
  type === "file" && isJsonObject(data) && typeof mediaType === "string";

function stopped({ reason, abandoned, dying, error }: Extract<Outcome, { kind: "cancelled" }>): string {
  const going = abandoned === undefined ? "" : " It did not stop when it was asked to, and may still be going on.";
  const killed = dying === undefined ? "" : ` Still being killed: ${dying.join(", ")}.`;
  const failed = error === undefined ? "It did not fail, and it was not completed." : failedWhileStopping(error);
  return `STOPPED by ${who(reason)}. ${failed}${going}${killed}`;
}

function known(changes: readonly string[] | undefined): string | undefined {
  if (changes === undefined || changes.length === 0) return undefined;
  return `It is known to have changed:\n${changes.map((change) => `- ${change}`).join("\n")}`;
}

function partial(result: Json | undefined): string | undefined {
  if (result === undefined || result === "") return undefined;
  return `What there was of its output:\n${typeof result === "string" ? result : JSON.stringify(result)}`;
}

const errorText = (...sentences: readonly (string | undefined)[]): Output => ({
  type: "error-text",
  value: sentences.filter((sentence) => sentence !== undefined).join("\n"),
});
