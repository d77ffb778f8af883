// Formats an event of a log as one line for people: sequence number, time, type, and its most telling details.
import type { CancelReason } from "../../../core/model/cancel.ts";
import type { Recorded } from "../../../core/model/event.ts";
import { titleOf } from "../../../core/model/process.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { timeOfDay } from "./age.ts";
import { formatExit, formatOutcome, formatReason } from "./format-outcome.ts";
import { formatEnding } from "./format-receipt.ts";
import { plainLine } from "./plain-text.ts";

/** Inputs, results and texts are cut to this length. */
const DETAIL_CHARS_MAX = 160;
const SEQ_WIDTH = 5;
const TYPE_WIDTH = 24;

export function eventLine(event: Recorded): string {
  const { seq, at, type } = event;
  const head = `${String(seq).padStart(SEQ_WIDTH)}  ${timeOfDay(at)}  ${type.padEnd(TYPE_WIDTH)}`;
  return `${head}  ${plainLine(detail(event), DETAIL_CHARS_MAX)}`.trimEnd();
}

function detail(event: Recorded): string {
  switch (event.type) {
    case "session.created":
      return event.title ?? "";
    case "session.cancel_requested":
      return `${event.covers.join(" ")} (${formatReason(event.reason)})`;
    case "session.closed":
      return formatReason(event.reason);
    case "session.mode_set":
      return event.by === undefined ? event.mode : `${event.mode} (by ${event.by})`;
    case "session.compacted":
      return event.summary;
    case "request.answered":
      return event.key;
    case "inbox.added":
    case "inbox.taken":
      return brief(event.type === "inbox.added" ? { ...event.item } : event.items.map((item) => ({ ...item })));
    default:
      return "runId" in event ? ofRun(event) : ofProcess(event);
  }
}

function ofRun(event: Extract<Recorded, { readonly runId: string }>): string {
  switch (event.type) {
    case "run.accepted":
    case "run.edited":
      return `${event.runId} ${event.prompt.text}`;
    case "run.taken":
      return `${event.runId} into ${event.into}`;
    case "run.settled":
      return `${event.runId} ${formatOutcome(event.outcome)}`;
    case "turn.requested":
      return event.turnId;
    case "turn.extended":
      return event.text;
    case "turn.settled":
      return `${event.turnId} ${formatOutcome(event.outcome)}`;
    case "call.requested":
      return `${event.callId} ${event.name} ${brief(event.input)}`;
    case "call.settled":
      return [
        event.callId,
        formatOutcome(event.outcome),
        ...(event.result === undefined ? [] : [brief(event.result)]),
      ].join(" ");
    case "question.asked":
      return `${event.questionId} ${event.about.kind === "approval" ? event.about.name : event.about.text}`;
    case "question.settled":
      return `${event.questionId} ${formatEnding(event.ending)}`;
    case "run.cancel_requested":
      return stopped(event.runId, event.reason);
    case "call.cancel_requested":
      return stopped(event.callId, event.reason);
    default:
      return event.runId;
  }
}

function ofProcess(event: Extract<Recorded, { readonly type: `process.${string}` }>): string {
  switch (event.type) {
    case "process.requested":
      return `${event.processId} ${titleOf(event.command)}`;
    case "process.started":
      return `${event.processId} pid ${event.pid}, tier ${event.tier}`;
    case "process.cancel_requested":
      return stopped(event.processId, event.reason);
    case "process.settled":
      return `${event.processId} ${formatOutcome(event.outcome)}${formatExit(event.exit)}`;
    default:
      return event.processId;
  }
}

const stopped = (id: string, reason: CancelReason): string => `${id} (${formatReason(reason)})`;
const brief = (data: Json): string => (typeof data === "string" ? data : JSON.stringify(data));
