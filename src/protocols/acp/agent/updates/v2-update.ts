// Converts updates to version 2 of the protocol, which is a draft.
import type { ContentBlock, SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk/experimental/v2";
import type { Outcome } from "../../../../core/model/cancel.ts";
import type { ProcessId, RunId } from "../../../../core/model/ids.ts";
import type { CallDetails } from "../agent-details.ts";
import { endMeta, failureNotices, formatEnd, LOST, rawOutput } from "../format-end.ts";
import { v2Options } from "../mode-choice.ts";
import type { Origin } from "../peer.ts";
import { shownText } from "./shown-text.ts";
import { toolTitle } from "./tool-title.ts";
import type { Update } from "./update.ts";

/** Empty if this version cannot express the update. State updates are only sent live. */
export function v2Updates(given: Update, { when }: Origin, cwd: string | undefined): readonly SessionUpdate[] {
  switch (given.type) {
    case "began":
      return [...message(given.runId, given.prompt), ...(when === "live" ? [RUNNING] : [])];
    case "taken":
      return message(given.runId, given.prompt);
    case "said": {
      const { runId, messageId, text: words } = given;
      const chunk = { messageId, content: text(words), ...meta(runId) };
      if (given.by === "thought") return [{ sessionUpdate: "agent_thought_chunk", ...chunk }];
      return [{ sessionUpdate: "agent_message_chunk", ...chunk }];
    }
    case "replaced":
      return [{ sessionUpdate: "agent_message", messageId: given.messageId, content: [text(given.text)] }];
    case "asked":
      return [{ sessionUpdate: "state_update", state: "requires_action" }];
    case "answered":
      return when === "live" && given.open === 0 ? [RUNNING] : [];
    case "ended":
      // @fault idle-for-what-never-ran
      if (when === "live" && given.begun) return [idle(given.outcome, given.runId)];
      return when === "live" ? [] : failureNotices(given);
    case "mode":
      // Not in history: the answer to opening the session contains the current mode.
      return when === "live" ? [{ sessionUpdate: "config_option_update", configOptions: v2Options(given) }] : [];
    case "compacted":
      return [
        {
          ...{ sessionUpdate: "compaction_update", compactionId: given.id, status: "completed" },
          summary: [text(given.summary)],
        },
      ];
    case "notice":
      return [{ sessionUpdate: "notice", severity: "info", title: given.title, description: given.text }];
    case "call":
    case "call-phase":
    case "call-progress":
    case "call-ended":
      return [callUpdate(given, cwd)];
    case "process":
    case "process-output":
    case "process-ended":
      return terminalUpdates(given);
  }
}

export const RUNNING: SessionUpdate = { sessionUpdate: "state_update", state: "running" };

const text = (words: string): ContentBlock => ({ type: "text", text: words });

const content = (words: string): ToolCallContent => ({ type: "content", content: text(words) });

const terminals = (processes: readonly ProcessId[]): ToolCallContent[] =>
  processes.map((terminalId) => ({ type: "terminal", terminalId }));

const meta = (runId: RunId, more: object = {}): { readonly _meta: { readonly belay: object } } => ({
  _meta: { belay: { runId, ...more } },
});

const message = (runId: RunId, prompt: string | undefined): readonly SessionUpdate[] =>
  prompt === undefined
    ? []
    : [{ sessionUpdate: "user_message", messageId: runId, content: [text(prompt)], ...meta(runId) }];

function idle(outcome: Outcome, runId: RunId): SessionUpdate {
  const base = { sessionUpdate: "state_update", state: "idle", ...meta(runId, endMeta(outcome)) } as const;
  switch (outcome.kind) {
    case "completed":
      if (outcome.finish === "length") return { ...base, stopReason: "max_tokens" };
      if (outcome.finish === "refusal") return { ...base, stopReason: "refusal" };
      return { ...base, stopReason: "end_turn" };
    case "cancelled":
      return { ...base, stopReason: "cancelled" };
    case "failed": {
      const { code, message: words } = outcome;
      return { ...base, stopReason: "error", error: { code: -32603, message: words, data: { code, runId } } };
    }
    case "lost":
      return { ...base, stopReason: "error", error: { code: -32603, message: LOST, data: { code: "lost", runId } } };
  }
}

type CallChange = Extract<Update, { type: "call" | "call-phase" | "call-progress" | "call-ended" }>;

function callUpdate(given: CallChange, cwd: string | undefined): SessionUpdate {
  const base = { sessionUpdate: "tool_call_update", toolCallId: given.callId } as const;
  switch (given.type) {
    case "call": {
      const { runId, name, input, stoppable, details } = given;
      const { title, kind, locations } = toolTitle(name, input, cwd);
      return {
        ...{ ...base, name, title, kind, status: "in_progress", rawInput: input, locations: [...locations] },
        ...(details === undefined ? {} : { title: name, ...plainDetails(details) }),
        ...(stoppable ? { capabilities: { cancel: {} } } : {}),
        ...meta(runId),
      };
    }
    case "call-phase":
      return { ...base, status: given.phase === "waits" ? "pending" : "in_progress" };
    case "call-progress": {
      const { details = {}, text: words } = given;
      return { ...base, ...plainDetails(details), ...(words === "" ? {} : { content: [content(words)] }) };
    }
    case "call-ended": {
      const { runId, outcome, result, changes, processes } = given;
      const shown = [shownText(result), formatEnd(outcome)].filter((one) => one !== "").join("\n");
      return {
        ...{ ...base, status: outcome.kind === "lost" ? "failed" : outcome.kind, capabilities: null },
        content: [...terminals(processes), ...(shown === "" ? [] : [content(shown)])],
        ...rawOutput(result),
        ...meta(runId, { ...endMeta(outcome), ...(changes.length === 0 ? {} : { changes }) }),
      };
    }
  }
}

/** Content has another form in this version, so only text is sent. */
const plainDetails = ({ content: _, ...details }: CallDetails): Omit<CallDetails, "content"> => details;

type TerminalChange = Extract<Update, { type: "process" | "process-output" | "process-ended" }>;

function terminalUpdates(given: TerminalChange): readonly SessionUpdate[] {
  const base = { sessionUpdate: "terminal_update", terminalId: given.processId } as const;
  switch (given.type) {
    case "process": {
      const { command, cwd, call } = given;
      const where = cwd?.startsWith("/") ? { cwd } : {};
      const started: SessionUpdate = { ...base, command, ...where, capabilities: { cancel: {} } };
      if (call === undefined) return [started];
      const { callId: toolCallId, processes } = call;
      return [started, { sessionUpdate: "tool_call_update", toolCallId, content: terminals(processes) }];
    }
    case "process-output":
      return [{ ...base, output: { data: base64(given.tail) } }];
    case "process-ended": {
      const { exit, tail } = given;
      const exitStatus = { exitCode: exit?.code ?? null, signal: exit?.signal ?? null };
      const output = tail === undefined ? {} : { output: { data: base64(tail) } };
      return [{ ...base, ...output, exitStatus, capabilities: null }];
    }
  }
}

const base64 = (words: string): string => Buffer.from(words, "utf8").toString("base64");
