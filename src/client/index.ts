// The public surface of `agent-belay/client`, name by name: Belay over a network, in browsers and in Node.

export type { CallView } from "../core/call-view.ts";
export type { CancelReason, CancelReceipt, Outcome, SessionReceipt } from "../core/cancel.ts";
export type { Accepted, Place, QueueReceipt } from "../core/command.ts";
export { type ControlCode, ControlError } from "../core/control-error.ts";
export type { Delta, Gap } from "../core/delta.ts";
export type { Event, Recorded } from "../core/event.ts";
export type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "../core/ids.ts";
export type { Delivery, Json, Prompt } from "../core/prompt.ts";
export type { AnswerReceipt, Question } from "../core/question.ts";
export { RunError, type RunResult } from "../core/run-result.ts";
export type { ModelUsage, Moment, RunCall, RunView } from "../core/run-view.ts";
export type { Message } from "../core/transcript.ts";
export type {
  AllEventsOptions,
  AnswersControl,
  BelayControl,
  CancelOptions,
  CoveredSession,
  EventsOptions,
  ProcessControl,
  ProcessesControl,
  PromptOptions,
  QueueControl,
  QueuedRun,
  RunControl,
  SessionCancelOptions,
  SessionControl,
  Told,
  Waited,
} from "../ports/control.ts";
export type { Explanation, Status } from "../ports/explanation.ts";
export { BelayClient, type ConnectOptions, connectBelay } from "./belay-client.ts";
export type { Fetch, FetchInit, Reply } from "./reply.ts";
