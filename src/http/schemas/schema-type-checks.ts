// Checks that every schema matches its type. Nothing here exists at run time: a schema that deviates does not compile.

import type * as cancel from "../../core/model/cancel.ts";
import type * as command from "../../core/model/command.ts";
import type * as delta from "../../core/model/delta.ts";
import type * as core from "../../core/model/event.ts";
import type * as inbox from "../../core/model/inbox.ts";
import type * as prompts from "../../core/model/prompt.ts";
import type * as questions from "../../core/model/question.ts";
import type * as rows from "../../core/model/rows.ts";
import type * as calls from "../../core/read/call-view.ts";
import type * as runs from "../../core/read/run-view.ts";
import type * as transcript from "../../core/read/transcript.ts";
import type * as control from "../../ports/control.ts";
import type { Explanation, Status } from "../../ports/explanation.ts";
import type * as spawner from "../../ports/spawner.ts";
import type { SessionRow } from "../../ports/store.ts";
import type * as event from "./event.ts";
import type * as outcome from "./outcome.ts";
import type * as processes from "./process.ts";
import type * as question from "./question.ts";
import type { SchemaTypeCheck } from "./schema-type-check.ts";
import type * as value from "./value.ts";
import type * as view from "./view.ts";

type Checked<T extends true> = T;
type QueueAnswer = Exclude<command.QueueReceipt, command.Refused>;

/** A session's receipt with the outcomes that `waitMs` adds, which are not in the type of a receipt. */
type Ended<T> = T extends cancel.CancelReceipt ? T & control.AwaitedOutcome : { readonly [K in keyof T]: Ended<T[K]> };

export type SchemaTypeChecks = readonly [
  Checked<SchemaTypeCheck<typeof value.prompt, prompts.Prompt>>,
  Checked<SchemaTypeCheck<typeof value.promptGiven, string | prompts.Prompt>>,
  Checked<SchemaTypeCheck<typeof value.delivery, prompts.Delivery>>,
  Checked<SchemaTypeCheck<typeof value.item, inbox.InboxItem>>,
  Checked<SchemaTypeCheck<typeof outcome.cancelReason, cancel.CancelReason>>,
  Checked<SchemaTypeCheck<typeof outcome.outcome, cancel.Outcome>>,
  Checked<SchemaTypeCheck<typeof outcome.cancelReceipt, cancel.CancelReceipt & control.AwaitedOutcome>>,
  Checked<SchemaTypeCheck<typeof outcome.sessionReceipt, Ended<cancel.SessionReceipt>>>,
  Checked<SchemaTypeCheck<typeof question.question, questions.Question>>,
  Checked<SchemaTypeCheck<typeof question.ending, questions.QuestionOutcome>>,
  Checked<SchemaTypeCheck<typeof question.answerReceipt, questions.AnswerReceipt>>,
  Checked<SchemaTypeCheck<typeof processes.processInfo, spawner.ProcessInfo>>,
  Checked<SchemaTypeCheck<typeof processes.processRow, rows.ProcessRow>>,
  Checked<SchemaTypeCheck<typeof processes.processResult, spawner.ProcessResult>>,
  Checked<SchemaTypeCheck<typeof processes.outputPage, spawner.OutputPage>>,
  Checked<SchemaTypeCheck<typeof event.recorded, core.Recorded>>,
  Checked<SchemaTypeCheck<typeof event.delta, delta.Delta>>,
  Checked<SchemaTypeCheck<typeof event.gap, delta.Gap>>,
  Checked<SchemaTypeCheck<typeof view.sessionRow, SessionRow>>,
  Checked<SchemaTypeCheck<typeof view.idsFound, rows.IdsFound>>,
  Checked<SchemaTypeCheck<typeof view.runRow, rows.RunRow>>,
  Checked<SchemaTypeCheck<typeof view.callView, calls.CallView>>,
  Checked<SchemaTypeCheck<typeof view.runView, runs.RunView>>,
  Checked<SchemaTypeCheck<typeof view.queuedRun, control.QueuedRun>>,
  Checked<SchemaTypeCheck<typeof view.queueReceipt, QueueAnswer>>,
  Checked<SchemaTypeCheck<typeof view.modeReceipt, command.ModeReceipt>>,
  Checked<SchemaTypeCheck<typeof view.posted, command.InboxReceipt>>,
  Checked<SchemaTypeCheck<typeof view.accepted, command.Accepted & Pick<control.RunControl, "sessionId">>>,
  Checked<SchemaTypeCheck<typeof view.message, transcript.Message>>,
  Checked<SchemaTypeCheck<typeof view.explanation, Explanation>>,
  Checked<SchemaTypeCheck<typeof view.status, Status>>,
];
