// Converts updates to version 1 of the protocol.
import type { ContentBlock, SessionUpdate, ToolCallContent, ToolCallStatus } from "@agentclientprotocol/sdk";
import type { RunId } from "../../../../core/model/ids.ts";
import type { Json } from "../../../../core/model/prompt.ts";
import { type CallDetails, resultContent } from "../agent-details.ts";
import { endMeta, formatEnd, rawOutput, troubles } from "../format-end.ts";
import { v1Options } from "../mode-choice.ts";
import type { Origin } from "../peer.ts";
import { pieces, shownText } from "./shown-text.ts";
import { toolTitle } from "./tool-title.ts";
import type { Update } from "./update.ts";

/** Empty if this version cannot express the update. */
export function v1Updates(telling: Update, { when, whose }: Origin, cwd: string | undefined): readonly SessionUpdate[] {
  switch (telling.type) {
    case "began":
    case "taken":
      // The client that sent the prompt shows it already.
      if (telling.prompt === undefined || (when === "live" && whose === "own")) return []; // @fault own-prompt-told
      return pieces(telling.prompt).map((piece) => ({
        ...{ sessionUpdate: "user_message_chunk", messageId: telling.runId, content: text(piece) },
        ...meta(telling.runId),
      }));
    case "said":
      return [
        {
          sessionUpdate: telling.by === "thought" ? "agent_thought_chunk" : "agent_message_chunk",
          messageId: telling.messageId,
          content: text(telling.text),
          ...meta(telling.runId),
        },
      ];
    case "replaced":
      // This version cannot replace a message, so the text is sent as another one.
      return [
        {
          sessionUpdate: "agent_message_chunk",
          messageId: `${telling.messageId}.whole`,
          content: text(telling.text),
          ...meta(telling.runId),
        },
      ];
    case "call":
      return [called(telling, cwd)];
    case "call-phase":
      return [update(telling, { status: telling.phase === "waits" ? "pending" : "in_progress" })];
    case "call-progress":
      return progressed(telling);
    case "process-output":
      return telling.callId === undefined ? [] : [output(telling.callId, telling.tail)];
    case "call-ended":
      return [ended(telling)];
    case "mode":
      // Not in history: the answer to opening the session contains the current mode.
      if (when === "history") return [];
      return [
        { sessionUpdate: "current_mode_update", currentModeId: telling.current },
        { sessionUpdate: "config_option_update", configOptions: v1Options(telling) },
      ];
    case "compacted":
      return [
        {
          sessionUpdate: "compaction_update",
          compactionId: telling.id,
          status: "completed",
          summary: [text(telling.summary)],
        },
      ];
    case "notice":
      return [{ sessionUpdate: "notice", severity: "info", title: telling.title, description: telling.text }];
    case "ended":
      // The client that sent the prompt gets the outcome in the answer.
      return when === "live" && whose === "own" ? [] : troubles(telling);
    case "asked":
    case "answered":
    case "process":
    case "process-ended":
      return [];
  }
}

function called(telling: Extract<Update, { type: "call" }>, cwd: string | undefined): SessionUpdate {
  const { runId, callId, name, input, stoppable, details } = telling;
  const { title, kind, locations } = toolTitle(name, input, cwd);
  return {
    ...{ sessionUpdate: "tool_call", toolCallId: callId, title, name, kind, status: "in_progress" },
    ...{ rawInput: input, locations: [...locations] },
    ...(details === undefined ? {} : { title: name, ...details }),
    ...meta(runId, { stoppable }),
  };
}

function progressed(telling: Extract<Update, { type: "call-progress" }>): readonly SessionUpdate[] {
  const { details = {}, text: words } = telling;
  const shown = details.content ?? (words === "" ? undefined : [content(words)]);
  const change = { ...details, ...(shown === undefined ? {} : { content: shown }) };
  return Object.keys(change).length === 0 ? [] : [update(telling, change)];
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
function ended(telling: Extract<Update, { type: "call-ended" }>): SessionUpdate {
  const { outcome, result, changes } = telling;
  const shown = [shownText(result), formatEnd(outcome)].filter((one) => one !== "").join("\n");
  const rich = resultContent(result);
  const end = formatEnd(outcome);
  const plain = shown === "" ? [] : [content(shown)];
  return update(
    telling,
    {
      status: outcome.kind === "completed" ? "completed" : "failed", // @fault new-status-to-old-clients
      content: rich === undefined ? plain : [...rich, ...(end === "" ? [] : [content(end)])],
      ...(rich === undefined ? rawOutput(result) : {}),
    },
    { ...endMeta(outcome), ...(changes.length === 0 ? {} : { changes }) },
  );
}
