// What must hold once the trouble is over, whatever the trouble was. Looks at a history and knows nothing of how it
// came about, so that it can be shown made-up ones.
import { isDeepStrictEqual } from "node:util";
import type { CancelReceipt } from "../../src/core/cancel.ts";
import type { Recorded } from "../../src/core/event.ts";
import type { RunId, SessionId } from "../../src/core/ids.ts";
import { verifyAtRest } from "../../src/core/verify.ts";
import {
  acceptedOf,
  type Cancelled,
  type Changed,
  type Followed,
  type Held,
  type History,
  type Prompted,
} from "./history.ts";

/** What is broken, each in one sentence that begins with the promise. An empty list is the good answer. */
export function broken(history: History): readonly string[] {
  return [
    ...history.held.flatMap((held) => unanswered(held, history)),
    ...history.prompts.flatMap((prompt) => promptBroken(prompt, history)),
    ...history.cancels.flatMap((cancel) => cancelBroken(cancel, history)),
    ...history.changes.flatMap((change) => changeBroken(change, history)),
    ...history.followed.flatMap((followed) => followBroken(followed, history)),
    ...keysBroken(history),
    ...worksBroken(history),
    ...[...history.logs].flatMap(([session, log]) => logBroken(session, log)),
  ];
}

function unanswered({ what, told, life }: Held, { crashed, saidInternal }: History): readonly string[] {
  if (told.kind === "waiting" && !crashed.has(life)) return [`G8: ${what} was never answered.`];
  if (told.kind === "raw") return [`G28: ${what} was rejected without a code: ${told.error}`];
  if (told.kind === "refused" && told.code === "internal" && !saidInternal) {
    return [`G28: ${what} was told of a fault in Belay: ${told.message}`];
  }
  return [];
}

function promptBroken(prompt: Prompted, history: History): readonly string[] {
  const { runId, accepted, outcome } = prompt;
  const found: string[] = [];
  const receipt = acceptedOf(prompt);
  const own = history.logs.get(prompt.session)?.some((event) => event.type === "run.accepted" && event.runId === runId);
  if (receipt !== undefined && eventsOf(history, "run.accepted", receipt.runId).length !== 1) {
    found.push(`G1: ${receipt.runId} was told to be accepted and is not once in the log.`);
  }
  if (receipt !== undefined && receipt.runId !== runId && own === true) {
    found.push(`G2: ${runId} was told that it is ${receipt.runId}, and runs as well.`);
  }
  const unsure = accepted.told.kind === "refused" && accepted.told.code === "unavailable" && history.answersLost;
  if (accepted.told.kind === "refused" && own === true && !unsure) {
    found.push(`G3: ${runId} was refused (${accepted.told.code}) and is in the log.`);
  }
  const [settled] = eventsOf(history, "run.settled", receipt?.runId ?? runId);
  if (outcome.told.kind === "value" && !isDeepStrictEqual(plain(outcome.told.value), plain(settled?.outcome))) {
    found.push(`G15: ${runId} was told ${JSON.stringify(outcome.told.value)}; the log has another outcome.`);
  }
  return found;
}

function cancelBroken({ runId, open, receipt: { told, life } }: Cancelled, history: History): readonly string[] {
  const [accepted] = eventsOf(history, "run.accepted", runId);
  const [settled] = eventsOf(history, "run.settled", runId);
  const kind = settled?.outcome.kind;
  // Carried out here, and to be recorded: then it is, unless nobody was left to do so.
  const cutOff = history.crashed.has(life) || history.closedUnanswered.has(life);
  const promised = told.kind === "refused" && told.message.includes("carried out") && !cutOff;
  if (promised && open && accepted !== undefined) {
    return kind === "cancelled" ? [] : [`G28: the stop of ${runId} was carried out, and it ended as ${kind}.`];
  }
  if (told.kind !== "value") return [];
  const receipt = told.value as CancelReceipt;
  const started = eventsOf(history, "run.started", runId).length > 0;
  if (receipt.kind === "withdrawn" && (started || kind !== "cancelled")) {
    return [`G10: ${runId} was told to be withdrawn, and ${started ? "has started" : `ended as ${kind}`}.`];
  }
  if (receipt.kind === "stopping" && kind !== "cancelled") {
    return [`G10: ${runId} was told to be stopping, and ended as ${kind}.`];
  }
  if (receipt.kind === "settled" && !isDeepStrictEqual(plain(receipt.outcome), plain(settled?.outcome))) {
    return [`G10: ${runId} was told to have ended otherwise than the log says.`];
  }
  return [];
}

function changeBroken(change: Changed, history: History): readonly string[] {
  const { event, like, receipt, session } = change;
  const { told } = receipt;
  const times = (history.logs.get(session) ?? []).filter((one) => one.type === event && contains(one, like)).length;
  const kind = told.kind === "value" ? (told.value as { readonly kind?: string }).kind : undefined;
  if (kind !== undefined && RECORDED.has(kind) && times !== 1) {
    return [`G6: ${receipt.what} was told as ${kind} and is ${times} times in the log.`];
  }
  if (kind !== undefined && UNRECORDED.has(kind) && times > 0) {
    return [`G3: ${receipt.what} was told as ${kind} and is in the log.`];
  }
  const unsure = told.kind === "refused" && told.code === "unavailable" && history.answersLost;
  if (told.kind === "refused" && times > 0 && !unsure && !askedAgain(change, history)) {
    return [`G3: ${receipt.what} was refused (${told.code}) and is in the log.`];
  }
  return [];
}

/** Refused at first, and recorded when it was asked for once more. */
const askedAgain = (change: Changed, { changes }: History): boolean =>
  changes.some((other) => other !== change && other.receipt.what === change.receipt.what);

const RECORDED: ReadonlySet<string> = new Set(["changed", "posted", "recorded"]);
const UNRECORDED: ReadonlySet<string> = new Set(["refused", "started", "unknown"]);

/** A contiguous slice: each position after the one before, and what is left out is said. */
function followBroken({ session, heard, after, ended }: Followed, { logs }: History): readonly string[] {
  if (ended.told.kind === "raw") return [`G28: a follower was told ${ended.told.error} without a code.`];
  let cursor = after;
  for (const one of heard) {
    const from = typeof one === "number" ? one : one.from;
    if (from !== cursor + 1) return [`G30: whoever followed ${session} was given ${from} after ${cursor}.`];
    cursor = typeof one === "number" ? one : one.to;
  }
  const head = logs.get(session)?.length ?? 0;
  if (heard.length > 0 && cursor > head)
    return [`G29: whoever followed ${session} was given ${cursor}; the log has ${head}.`];
  // One that was told of trouble, or let go, knows that it has not heard everything.
  const quiet = ended.told.kind === "waiting" || (ended.told.kind === "value" && ended.told.value === "left");
  return quiet && cursor < head ? [`G30: whoever follows ${session} stands at ${cursor}; the log has ${head}.`] : [];
}

function keysBroken({ logs }: History): readonly string[] {
  return [...logs].flatMap(([session, log]) => {
    const keys = log.flatMap((event) => (event.type === "run.accepted" && event.key !== undefined ? [event.key] : []));
    return keys.filter((key, at) => keys.indexOf(key) !== at).map((key) => `G2: ${session} has two runs with ${key}.`);
  });
}

/** Nothing is carried out that the log has not asked for first, and nothing twice in one life. */
function worksBroken({ carriedOut, logs }: History): readonly string[] {
  const asked = new Set<string>();
  for (const log of logs.values()) {
    for (const event of log) {
      if (event.type === "turn.requested") asked.add(event.turnId);
      if (event.type === "call.requested") asked.add(event.callId);
      if (event.type === "process.requested") asked.add(event.processId);
    }
  }
  const seen = new Set<string>();
  return carriedOut.flatMap(({ id, life }) => {
    const again = seen.has(`${id} in ${life}`);
    seen.add(`${id} in ${life}`);
    if (again) return [`G25: ${id} was carried out twice.`];
    return asked.has(id) ? [] : [`G1: ${id} was carried out, and the log has never asked for it.`];
  });
}

function logBroken(session: SessionId, log: readonly Recorded[]): readonly string[] {
  return verifyAtRest(log).map(({ guarantee, seq, message }) => `${guarantee}: ${session} at ${seq}: ${message}`);
}

function eventsOf<T extends "run.accepted" | "run.started" | "run.settled">(
  { logs }: History,
  type: T,
  runId: RunId,
): readonly Extract<Recorded, { readonly type: T }>[] {
  const is = (event: Recorded): event is Extract<Recorded, { readonly type: T }> =>
    event.type === type && "runId" in event && event.runId === runId;
  return [...logs.values()].flatMap((log) => log.filter(is));
}

const contains = (event: Recorded, like: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(like).every(([name, value]) => isDeepStrictEqual(plain(Reflect.get(event, name)), value));

/** As it is written down: without what is undefined. */
const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
