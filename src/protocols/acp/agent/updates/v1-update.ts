// Converts updates to version 1 of the protocol.
import type { ContentBlock, SessionUpdate, ToolCallContent, ToolCallStatus } from "@agentclientprotocol/sdk";
import type { RunId } from "../../../../core/model/ids.ts";
import type { Json } from "../../../../core/model/prompt.ts";
import { type CallDetails, resultContent } from "../agent-details.ts";
import { endMeta, failureNotices, formatEnd, rawOutput } from "../format-end.ts";
import { v1Options } from "../mode-choice.ts";
import type { Origin } from "../peer.ts";
import { pieces, shownText } from "./shown-text.ts";
import { toolTitle } from "./tool-title.ts";
import type { Update } from "./update.ts";

/** Empty if this version cannot express the update. */
export function v1Updates(given: Update, { when, whose }: Origin, cwd: string | undefined): readonly SessionUpdate[] {
  switch (given.type) {
    case "began":
    case "taken":
      // The client that sent the prompt shows it already.
      if (given.prompt === undefined || (when === "live" && whose === "own")) return []; // @fault own-prompt-told
      return pieces(given.prompt).map((piece) => ({
        ...{ sessionUpdate: "user_message_chunk", messageId: given.runId, content: text(piece) },
        ...meta(given.runId),
      }));
    case "said":
      return [
        {
          sessionUpdate: given.by === "thought" ? "agent_thought_chunk" : "agent_message_chunk",
          messageId: given.messageId,
          content: text(given.text),
          ...meta(given.runId),
        },
      ];
    case "replaced":
      // This version cannot replace a message, so the text is sent as another one.
      return [
        {
          sessionUpdate: "agent_message_chunk",
          messageId: `${given.messageId}.whole`,
          content: text(given.text),
          ...meta(given.runId),
        },
      ];
    case "call":
      return [called(given, cwd)];
    case "call-phase":
      return [update(given, { status: given.phase === "waits" ? "pending" : "in_progress" })];
    case "call-progress":
      return progressed(given);
    case "process-output":
      return given.callId === undefined ? [] : [output(given.callId, given.tail)];
    case "call-ended":
      return [ended(given)];
    case "mode":
      // Not in history: the answer to opening the session contains the current mode.
      if (when === "history") return [];
      return [
        { sessionUpdate: "current_mode_update", currentModeId: given.current },
        { sessionUpdate: "config_option_update", configOptions: v1Options(given) },
      ];
    case "compacted":
      return [
        {
          sessionUpdate: "compaction_update",
          compactionId: given.id,
          status: "completed",
          summary: [text(given.summary)],
        },
      ];
    case "notice":
      return [{ sessionUpdate: "notice", severity: "info", title: given.title, description: given.text }];
    case "ended":
      // The client that sent the prompt gets the outcome in the answer.
      return when === "live" && whose === "own" ? [] : failureNotices(given);
    case "asked":
    case "answered":
    case "process":
    case "process-ended":
      return [];
  }
}

function called(given: Extract<Update, { type: "call" }>, cwd: string | undefined): SessionUpdate {
  const { runId, callId, name, input, stoppable, details } = given;
  const { title, kind, locations } = toolTitle(name, input, cwd);
  return {
    ...{ sessionUpdate: "tool_call", toolCallId: callId, title, name, kind, status: "in_progress" },
    ...{ rawInput: input, locations: [...locations] },
    ...(details === undefined ? {} : { title: name, ...details }),
    ...meta(runId, { stoppable }),
  };
}

function progressed(given: Extract<Update, { type: "call-progress" }>): readonly SessionUpdate[] {
  const { details = {}, text: words } = given;
  const shown = details.content ?? (words === "" ? undefined : [content(words)]);
  const change = { ...details, ...(shown === undefined ? {} : { content: shown }) };
  return Object.keys(change).length === 0 ? [] : [update(given, change)];
}

const text = (words: string): ContentBlock => ({ type: "text", text: words });

const content = (words: string): ToolCallContent => ({ type: "content", content: text(words) });

const meta = (runId: RunId, more: object = {}): { readonly _meta: { readonly belay: object } } => ({
  _meta: { belay: { runId, ...more } },
});

interface Change extends Omit<CallDetails, "status"> {
  readonly status?: ToolCallStatus;
  readonly rawOutput?: Json;
}

function update(
  { runId, callId }: { readonly runId: RunId; readonly callId: string },
  change: Change,
  more: object = {},
): SessionUpdate {
  return { sessionUpdate: "tool_call_update", toolCallId: callId, ...change, ...meta(runId, more) };
}

const output = (callId: string, tail: string): SessionUpdate => ({
  sessionUpdate: "tool_call_update",
  toolCallId: callId,
  content: [content(tail)],
});

/** This version has no status for a stopped call: it is `failed`, with the real status in the metadata. */
function ended(given: Extract<Update, { type: "call-ended" }>): SessionUpdate {
  const { outcome, result, changes } = given;
  const shown = [shownText(result), formatEnd(outcome)].filter((one) => one !== "").join("\n");
  const rich = resultContent(result);
  const end = formatEnd(outcome);
  const plain = shown === "" ? [] : [content(shown)];
  return update(
    given,
    {
      status: outcome.kind === "completed" ? "completed" : "failed", // @fault new-status-to-old-clients
      content: rich === undefined ? plain : [...rich, ...(end === "" ? [] : [content(end)])],
      ...(rich === undefined ? rawOutput(result) : {}),
    },
    { ...endMeta(outcome), ...(changes.length === 0 ? {} : { changes }) },
  );
}
