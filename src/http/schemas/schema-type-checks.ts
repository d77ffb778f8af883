// Every schema says what its type says. Nothing here exists at run time: a schema that drifts does not compile.

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
import type { Tie } from "./schema-type-check.ts";
import type * as value from "./value.ts";
import type * as view from "./view.ts";

type Held<T extends true> = T;
type QueueAnswer = Exclude<command.QueueReceipt, command.Refused>;

/** A receipt of a session whose runs say how they ended: what `waitMs` adds is not in the type of a receipt. */
type Ended<T> = T extends cancel.CancelReceipt ? T & control.AwaitedOutcome : { readonly [K in keyof T]: Ended<T[K]> };

export type Ties = readonly [
  Held<Tie<typeof value.prompt, prompts.Prompt>>,
  Held<Tie<typeof value.promptGiven, string | prompts.Prompt>>,
  Held<Tie<typeof value.delivery, prompts.Delivery>>,
  Held<Tie<typeof value.item, inbox.InboxItem>>,
  Held<Tie<typeof outcome.cancelReason, cancel.CancelReason>>,
  Held<Tie<typeof outcome.outcome, cancel.Outcome>>,
  Held<Tie<typeof outcome.cancelReceipt, cancel.CancelReceipt & control.AwaitedOutcome>>,
  Held<Tie<typeof outcome.sessionReceipt, Ended<cancel.SessionReceipt>>>,
  Held<Tie<typeof question.question, questions.Question>>,
  Held<Tie<typeof question.ending, questions.QuestionOutcome>>,
  Held<Tie<typeof question.answerReceipt, questions.AnswerReceipt>>,
  Held<Tie<typeof processes.processInfo, spawner.ProcessInfo>>,
  Held<Tie<typeof processes.processRow, rows.ProcessRow>>,
  Held<Tie<typeof processes.processResult, spawner.ProcessResult>>,
  Held<Tie<typeof processes.outputPage, spawner.OutputPage>>,
  Held<Tie<typeof event.recorded, core.Recorded>>,
  Held<Tie<typeof event.delta, delta.Delta>>,
  Held<Tie<typeof event.gap, delta.Gap>>,
  Held<Tie<typeof view.sessionRow, SessionRow>>,
  Held<Tie<typeof view.idsFound, rows.IdsFound>>,
  Held<Tie<typeof view.runRow, rows.RunRow>>,
  Held<Tie<typeof view.callView, calls.CallView>>,
  Held<Tie<typeof view.runView, runs.RunView>>,
  Held<Tie<typeof view.queuedRun, control.QueuedRun>>,
  Held<Tie<typeof view.queueReceipt, QueueAnswer>>,
  Held<Tie<typeof view.modeReceipt, command.ModeReceipt>>,
  Held<Tie<typeof view.posted, command.InboxReceipt>>,
  Held<Tie<typeof view.accepted, command.Accepted & Pick<control.RunControl, "sessionId">>>,
  Held<Tie<typeof view.message, transcript.Message>>,
  Held<Tie<typeof view.explanation, Explanation>>,
  Held<Tie<typeof view.status, Status>>,
];
