// The agent over a model, and its tools: `agent-belay/agent`. Name by name, like the main surface.
export { modelAgent } from "./agent.ts";
export type { Budget, Compaction, LoopGuard, ModelAgentOptions, ModelSettings } from "./agent-options.ts";
export { type Attachment, attachment, attachmentsOf, userWithAttachments } from "./attachment.ts";
export { fileTools } from "./file-tools.ts";
export type { FileToolName, FileToolsOptions } from "./file-tools-options.ts";
export { ModelError } from "./model-error.ts";
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
export { processTools } from "./process-tools.ts";
export type { AskFirst, ProcessToolName, ProcessToolsOptions } from "./process-tools-options.ts";
export { type PromptOptions, providerPrompt, type ToUser, type UserPart } from "./provider-prompt.ts";
export { slots } from "./slots.ts";
export type { SoFar } from "./so-far.ts";
export { type Tool, type ToolDefinition, tool } from "./tool.ts";
export { type AnyTool, type ToolSet, toolSet } from "./tool-set.ts";
export type { Untrusted } from "./untrusted.ts";
