// The public surface of `agent-belay`. What is not exported here is not public.

export { type ControlCode, ControlError } from "./core/errors.ts";
export type {
  Blocked,
  BlockedWork,
  CancelReason,
  CancelReceipt,
  Covered,
  CoveredProcess,
  Outcome,
  SessionReceipt,
  Target,
} from "./core/model/cancel.ts";
export type { Accepted, InboxReceipt, ModeReceipt, QueuePlace, QueueReceipt } from "./core/model/command.ts";
export type { Delta, Gap } from "./core/model/delta.ts";
export type {
  Event,
  Exit,
  Feedback,
  ModelName,
  OutputNote,
  ProviderCall,
  Recorded,
  TurnFinish,
  TurnPart,
  Usage,
} from "./core/model/event.ts";
export type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "./core/model/ids.ts";
export type { InboxItem } from "./core/model/inbox.ts";
export type { Delivery, Json, JsonInput, Prompt } from "./core/model/prompt.ts";
export type { AnswerReceipt, Question, QuestionOutcome, QuestionReply, Subject } from "./core/model/question.ts";
export type { CallRow, ProcessRow, RunRow } from "./core/model/rows.ts";
export type { CallView } from "./core/read/call-view.ts";
export type { BlockedExplained, CallExplained, LiveExplained } from "./core/read/explained.ts";
export { RunError, type RunResult } from "./core/read/run-result.ts";
export type { TextOptions } from "./core/read/run-text.ts";
export type { ModelUsage, Moment, RunCall, RunView } from "./core/read/run-view.ts";
export type { CallState, Finish, Message, TranscriptCall, TranscriptResult } from "./core/read/transcript.ts";
export type { ShutdownMode, ShutdownReport } from "./engine/shutdown.ts";
export type {
  Agent,
  AgentMode,
  Approval,
  CallCancelOptions,
  CallDetails,
  CallOptions,
  CallRequest,
  CallResult,
  Execute,
  LiveCall,
  QuestionRequest,
  QuestionResult,
  RunUsage,
  Slots,
  Turn,
  TurnResult,
} from "./ports/agent.ts";
export type { Clock, Ids } from "./ports/clock.ts";
export type {
  AllEventsOptions,
  AllSessionsEvent,
  AnswerOptions,
  AnswersControl,
  ApprovalOptions,
  AwaitedOutcome,
  BeginOptions,
  BelayControl,
  CancelAllOptions,
  CancelOptions,
  CoveredSession,
  CreateOptions,
  EventsOptions,
  ModeOptions,
  ProcessControl,
  ProcessesControl,
  PromptOptions,
  QueueClearOptions,
  QueueControl,
  QueuedRun,
  RunControl,
  SessionCancelOptions,
  SessionControl,
  SessionsPage,
  TenantScope,
} from "./ports/control.ts";
export type { Explanation, Load, Status } from "./ports/explanation.ts";
export type { HookedCall, Hooks, Notice, Notify, Verdict } from "./ports/hooks.ts";
export type {
  CallProcesses,
  Child,
  ChildEnd,
  CommandLine,
  CommandResult,
  Excerpt,
  Mechanism,
  Output,
  OutputCounts,
  OutputFile,
  OutputPage,
  OutputPageOptions,
  ProcessHandle,
  ProcessInfo,
  ProcessLimits,
  ProcessOptions,
  ProcessResult,
  Profile,
  RunOptions,
  Spawner,
  SpawnRequest,
  StartOptions,
  Stream,
  Tier,
} from "./ports/spawner.ts";
export type { SessionRow, Store } from "./ports/store.ts";
export type { Answers } from "./sdk/answers.ts";
export { type Belay, openBelay } from "./sdk/belay.ts";
export type { BelayOptions } from "./sdk/belay-options.ts";
export type { Directories } from "./sdk/directories.ts";
export type { ProcessesOptions } from "./sdk/open-spawner.ts";
export type { RunHandle } from "./sdk/run.ts";
export type { Queue, Session } from "./sdk/session.ts";
export type { SessionProcesses } from "./sdk/session-processes.ts";
export { closeOnSignals } from "./sdk/signals.ts";
