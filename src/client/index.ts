// The public surface of `agent-belay/client`: a client of a Belay server for browsers and Node.

export { type ControlCode, ControlError } from "../core/errors.ts";
export type { CancelReason, CancelReceipt, Outcome, SessionReceipt } from "../core/model/cancel.ts";
export type { Accepted, QueuePlace, QueueReceipt } from "../core/model/command.ts";
export type { Delta, Gap } from "../core/model/delta.ts";
export type { Event, Recorded } from "../core/model/event.ts";
export type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "../core/model/ids.ts";
export type { Delivery, Json, Prompt } from "../core/model/prompt.ts";
export type { AnswerReceipt, Question } from "../core/model/question.ts";
export type { CallView } from "../core/read/call-view.ts";
export { RunError, type RunResult } from "../core/read/run-result.ts";
export type { ModelUsage, Moment, RunCall, RunView } from "../core/read/run-view.ts";
export type { Message } from "../core/read/transcript.ts";
export type {
  AllEventsOptions,
  AllSessionsEvent,
  AnswersControl,
  AwaitedOutcome,
  BelayControl,
  CancelOptions,
  CoveredSession,
  EventsOptions,
  ProcessControl,
  ProcessesControl,
  PromptOptions,
  QueueClearOptions,
  QueueControl,
  QueuedRun,
  RunControl,
  SessionCancelOptions,
  SessionControl,
} from "../ports/control.ts";
export type { Explanation, Status } from "../ports/explanation.ts";
export { BelayClient, type ConnectOptions, connectBelay } from "./belay-client.ts";
export type { Fetch, FetchInit, FetchResponse } from "./transport/reply.ts";
