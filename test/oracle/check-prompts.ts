// Compares the answers of prompts with the logs: what was acknowledged is there once, with its content and in the order
// in which it was sent; what was refused left no trace.
import { type CallerHistory, headOf, type RequestOf, requestsOf } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { type AcceptedEvent, isBy, type LogIndex } from "./log-index.ts";

type PromptRequest = RequestOf<"prompt">;

export function checkPrompts(history: CallerHistory, index: LogIndex, report: Report): void {
  const prompts = requestsOf(history, "prompt");
  for (const [label, tries] of Map.groupBy(prompts, ({ params }) => params.label)) {
    checkLabel(label, tries, index, report);
    for (const one of tries) {
      checkOwnRun(one, index, report);
      if (one.answer.kind === "returned") checkReceipt(one, one.answer.value, index, report);
      if (one.answer.kind === "refused") checkRefusal(one, one.answer.code, index, report);
    }
  }
  checkOrder(prompts, report);
}

/** How many prompts were acknowledged. */
export function acknowledged(history: CallerHistory): number {
  const returned = requestsOf(history, "prompt").filter(({ answer }) => answer.kind === "returned");
  return new Set(returned.map(({ params }) => params.label)).size;
}

function checkLabel(label: string, tries: readonly PromptRequest[], index: LogIndex, report: Report): void {
  const logged = index.labels.get(label) ?? [];
  const receipts = tries.flatMap(({ answer }) => (answer.kind === "returned" ? [answer.value.runId] : []));
  if (new Set(receipts).size > 1 || logged.length > 1) {
    report("doublePrompts", `${label} is ${logged.map(({ runId }) => runId).join(" and ")}.`);
  }
  if (tries.every(({ answer }) => answer.kind === "refused") && logged.length > 0) {
    report("refusedTraces", `${label} was refused, and is ${logged[0]?.runId} in the log.`);
  }
}

function checkReceipt(
  request: PromptRequest,
  { runId, seq, repeated, ahead }: Extract<PromptRequest["answer"], { readonly kind: "returned" }>["value"],
  index: LogIndex,
  report: Report,
): void {
  const { params } = request;
  const run = index.labels.get(params.label)?.find((one) => one.runId === runId);
  if (run === undefined) {
    report("lost", `${params.label} was accepted as ${runId}, and the log has no such run of it.`);
    return;
  }
  if (run.seq !== seq) report("falseReceipts", `${runId} was accepted at ${run.seq}, and its receipt has ${seq}.`);
  if (!isBy(run.seq, headOf(request))) {
    report("lost", `${params.label} was accepted as ${runId} before that was recorded.`);
  }
  if (!isContentOf(params, run.accepted)) {
    report(
      "doublePrompts",
      `${params.label} was accepted as ${runId}, which has other content.`,
      repeated ? "G2" : "G1",
    );
  }
  if (!repeated && params.runId !== undefined && params.runId !== runId) {
    report("lost", `${params.runId} was accepted as ${runId}, which is another run.`);
  }
  if (!repeated && params.delivery === "reject" && ahead > 0) {
    report("falseReceipts", `${runId} was to be refused by a busy session.`, "G5");
  }
}

const isContentOf = ({ text, delivery }: PromptRequest["params"], { prompt, ...event }: AcceptedEvent): boolean =>
  (text === undefined || text === prompt.text) && (delivery === undefined || delivery === event.delivery);

/** If the caller knew its run's id: that run is not in the log unless its own receipt says so. */
function checkOwnRun({ params: { runId }, answer }: PromptRequest, index: LogIndex, report: Report): void {
  if (runId === undefined || !index.runs.has(runId)) return;
  if (answer.kind === "returned" && answer.value.runId !== runId) {
    report("doublePrompts", `${runId} was answered with ${answer.value.runId}, and is in the log as well.`);
  }
  if (answer.kind === "refused") report("refusedTraces", `${runId} was refused (${answer.code}) and is in the log.`);
}

/** A refusal names what was so when it was given. */
function checkRefusal(request: PromptRequest, code: string, index: LogIndex, report: Report): void {
  const { sessionId, params, moment } = request;
  if (moment === undefined) return;
  const name = params.runId ?? params.label;
  if (code === "closed" && !isBy(index.closed.get(sessionId), moment.head)) {
    report("falseReceipts", `${name} was refused as closed, and the session was open.`, "G3");
  }
  if (code !== "conflict" || params.text === undefined) return;
  const first = index.labels.get(params.label)?.find(({ seq }) => isBy(seq, moment.head));
  if (first !== undefined && !isContentOf(params, first.accepted)) return;
  report("falseReceipts", `${name} was refused as a conflict, and there was none.`, "G2");
}

/** A prompt that was acknowledged before another was sent comes before it. */
function checkOrder(requests: readonly PromptRequest[], report: Report): void {
  const prompts = requests.flatMap((one) =>
    one.answer.kind === "returned" ? [{ ...one, receipt: one.answer.value }] : [],
  );
  for (const later of prompts) {
    // A repeated request is answered with the position of the first one.
    if (later.receipt.repeated) continue;
    for (const earlier of prompts) {
      if (earlier.sessionId !== later.sessionId || earlier.answeredAt >= later.sentAt) continue;
      if (earlier.receipt.seq < later.receipt.seq) continue;
      const [first, second] = [earlier.params.label, later.params.label];
      report("outOfOrder", `${first} was accepted before ${second} was sent, and comes after it.`);
    }
  }
}
