// Compares the answers of changes of the queue, the mode and the inbox with the logs: what was changed is recorded
// where the receipt says, and what was not changed left no trace.
import { INBOX_ITEMS_MAX } from "../../src/core/limits.ts";
import { type CallerHistory, describeRequest, headOf, type RequestOf, requestsOf } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { isBy, isExpected, type LogIndex, print, same } from "./log-index.ts";

type ChangeRequest = RequestOf<"change">;
type Receipt = Extract<ChangeRequest["answer"], { readonly kind: "returned" }>["value"];

export function checkChanges(history: CallerHistory, index: LogIndex, report: Report): void {
  const changes = requestsOf(history, "change");
  for (const request of changes) {
    checkNoTrace(request, changes, index, report);
    if (request.answer.kind === "returned") checkReceipt(request, request.answer.value, index, report);
  }
}

/** Answers that say that nothing was recorded. */
const UNRECORDED: ReadonlySet<string> = new Set(["refused", "started", "unchanged", "unknown"]);

export function checkNoTrace(
  request: RequestOf<"change" | "answer">,
  all: readonly RequestOf<"change" | "answer">[],
  index: LogIndex,
  report: Report,
): void {
  const { sessionId, params, answer } = request;
  const kind = answer.kind === "returned" ? answer.value.kind : answer.kind;
  // An answer that is not known is not one that says so.
  if (answer.kind === "unknown" || !UNRECORDED.has(kind) || !params.event.unique) return;
  if (index.count(sessionId, params.event) === 0) return;
  // Refused at first, and recorded when it was requested again.
  const isAgain = (other: (typeof all)[number]): boolean =>
    other !== request && other.answer.kind !== "refused" && same(other.params, params);
  if (answer.kind === "refused" && all.some(isAgain)) return;
  report("refusedTraces", `${params.event.type} ${print(params.event.like)} was answered as ${kind}, and is recorded.`);
}

function checkReceipt(request: ChangeRequest, receipt: Receipt, index: LogIndex, report: Report): void {
  // It was about the run that its prompt repeats, and says so of that one.
  if (request.params.runId !== undefined && index.aliases.has(request.params.runId)) return;
  const lie = (message: string, guarantee = "G6"): void => report("falseReceipts", message, guarantee);
  switch (receipt.kind) {
    case "changed":
    case "posted":
      checkRecorded(request, receipt.seq, index, lie);
      return;
    case "started":
      checkStarted(request, index, lie);
      return;
    case "unknown":
      checkUnknown(request, index, lie);
      return;
    case "refused":
      checkRefused(request, receipt.code, index, lie);
      return;
    case "unchanged":
      return;
  }
}

type Lie = (message: string, guarantee?: string) => void;

function checkRecorded(request: ChangeRequest, seq: number, index: LogIndex, lie: Lie): void {
  const { sessionId, params } = request;
  const { event } = params;
  const name = `${event.type} ${print(event.like)}`;
  const there = index.at(sessionId, seq);
  if (there === undefined || !isExpected(there, event)) {
    lie(`${name} was recorded at ${seq}, and the log has ${there?.type} there.`);
  } else if (!isBy(seq, headOf(request))) lie(`${name} was reported as recorded before it was.`);
  else if (event.unique && index.count(sessionId, event) > 1) lie(`${name} was recorded more than once.`);
}

function checkStarted(request: ChangeRequest, index: LogIndex, lie: Lie): void {
  const { runId } = request.params;
  if (runId === undefined) return;
  const head = headOf(request);
  const run = index.runs.get(runId);
  if (isBy(run?.startedAt, head) || (request.moment === undefined && run?.outcome !== undefined)) return;
  lie(`${runId} was reported as started, and it had not started.`);
}

/** A run that waits, in the queue or to be taken in, is known. A move may name an unknown neighbour. */
function checkUnknown({ params, moment }: ChangeRequest, index: LogIndex, lie: Lie): void {
  const run = params.runId === undefined ? undefined : index.runs.get(params.runId);
  if (run === undefined || moment === undefined || params.event.type === "run.moved") return;
  const { head } = moment;
  const waits = isBy(run.seq, head) && !isBy(run.startedAt, head) && !isBy(run.settledAt, head);
  if (!waits) return;
  lie(`${run.runId} was reported as unknown, and it was waiting.`);
}

function checkRefused(request: ChangeRequest, code: string, index: LogIndex, lie: Lie): void {
  const { sessionId, params, moment } = request;
  if (moment === undefined || params.event.type !== "inbox.added") return;
  if (code === "closed" && isBy(index.closed.get(sessionId), moment.head)) return;
  if (code === "queue_full" && everInInbox(index, sessionId, moment.head) >= INBOX_ITEMS_MAX) return;
  lie(`${describeRequest(request)} was refused as ${code} without a reason.`, "G3");
}

/** What was ever put into an inbox, or has a place reserved there, including requests that the log does not have. */
function everInInbox({ logs }: LogIndex, sessionId: ChangeRequest["sessionId"], head: number): number {
  const log = (logs.get(sessionId) ?? []).slice(0, head);
  return log.filter(({ type }) => type === "inbox.added" || type === "process.requested").length + UNRECORDED_MAX;
}

/** As many as can have been refused by the store, or have been on their way to it. */
const UNRECORDED_MAX = 3;
