// The model agent and its tools: `agent-belay/agent`. Exports are listed name by name, as in the main entry.

export { type Attachment, attachment, attachmentsOf, userWithAttachments } from "./attachment.ts";
export { modelAgent } from "./loop/agent.ts";
export type { Budget, Compaction, LoopGuard, ModelAgentOptions, ModelSettings } from "./loop/agent-options.ts";
export type { RunProgress } from "./loop/run-progress.ts";
export { slots } from "./loop/slots.ts";
export { ModelError } from "./model/model-error.ts";
export { type PromptOptions, providerPrompt, type UserContent, type UserPart } from "./model/provider-prompt.ts";
export {
  modalTools,
  type Permission,
  type PermissionMode,
  permissionsOf,
  WORK_MODES,
  type WorkToolName,
  type WorkToolsOptions,
  workTools,
} from "./permission.ts";
export { fileTools } from "./tools/files/file-tools.ts";
export type { FileToolName, FileToolsOptions } from "./tools/files/file-tools-options.ts";
export { processTools } from "./tools/processes/process-tools.ts";
export type { AskFirst, ProcessToolName, ProcessToolsOptions } from "./tools/processes/process-tools-options.ts";
export { type Tool, type ToolDefinition, tool } from "./tools/tool.ts";
export { type AnyTool, type ToolSet, toolSet } from "./tools/tool-set.ts";
export type { Untrusted } from "./tools/untrusted.ts";
