// Whether a turn was given the right conversation: compared with the one that the log makes, and with what a provider
// accepts.
import type { Recorded } from "../src/core/model/event.ts";
import { type CallId, runOf } from "../src/core/model/ids.ts";
import type { Message } from "../src/core/read/transcript.ts";
import { Book } from "../src/core/read/transcript-builder.ts";
import { pairingError } from "../test/oracle/check-transcript.ts";
import type { TurnActor } from "./actors.ts";
import type { Facts, Settled } from "./facts.ts";

type Violate = (rule: string, message: string) => void;

export interface Reading {
  readonly actor: TurnActor;
  readonly messages: readonly Message[];
  /** Where the log stood: as far as the engine knew when it was asked for, and really when it was given. */
  readonly from: number;
  readonly to: number;
}

export function checkTranscript(reading: Reading, facts: Facts, violate: Violate): void {
  const { actor, messages, from, to } = withoutRemoval(reading);
  const notes = reading.messages.length - messages.length;
  if (notes > 1 || (notes === 1 && !facts.trims.has(actor.turn.sessionId))) {
    violate("G17", `${actor.id} was told ${notes} times that something was removed.`);
  }
  const log = facts.log(actor.turn.sessionId);
  const head = headOf({ actor, messages, from, to }, log, facts.trims.get(actor.turn.sessionId) ?? []);
  if (head === undefined) {
    violate("G17", `${actor.id} was given a conversation that the log does not have between ${from} and ${to}.`);
    return;
  }
  const pairing = pairingError(messages);
  if (pairing !== undefined) violate("G17", `${actor.id} was given a conversation in which ${pairing}.`);
  checkWithdrawn(actor, messages, facts, violate);
  const known = log.slice(head.trimmed, head.at);
  checkResults(reading, known, facts, violate);
  checkSaid(actor, messages, known, violate);
}

/** What a turn is told of events that retention has removed is in no log. */
const withoutRemoval = (reading: Reading): Reading => ({
  ...reading,
  messages: reading.messages.filter((one) => one.role !== "note" || !one.item.text.startsWith("Earlier messages of")),
});

/** The position whose conversation this is, and what had been removed before it by then. */
function headOf(
  { actor, messages, from, to }: Reading,
  log: readonly Recorded[],
  trims: readonly number[],
): { readonly at: number; readonly trimmed: number } | undefined {
  const given = JSON.stringify(messages);
  for (let at = to; at >= from; at -= 1) {
    for (const trimmed of [0, ...trims]) {
      const made = forTurn(actor, toldBy(log.slice(trimmed, at)));
      if (JSON.stringify(made) === given) return { at, trimmed };
    }
  }
  return undefined;
}

/** The conversation as a live run is told it, made anew. */
function toldBy(events: readonly Recorded[]): readonly Message[] {
  const book = new Book("model");
  for (const event of events) book.note(event);
  return book.messages();
}

/** The turn that reads is not part of what it reads, unless it has made calls. */
function forTurn(actor: TurnActor, messages: readonly Message[]): readonly Message[] {
  const own = messages.filter((message) => message.role === "assistant" && message.turnId === actor.id);
  const hasCalls = own.some((message) => message.role === "assistant" && message.calls.length > 0);
  return hasCalls ? messages : messages.filter((message) => !own.includes(message));
}

/** A prompt that was withdrawn before it began is not among what an agent is given (G6). */
function checkWithdrawn(actor: TurnActor, messages: readonly Message[], facts: Facts, violate: Violate): void {
  for (const { runId } of messages) {
    const run = facts.runs.get(runId);
    if (run?.outcome?.kind === "cancelled" && run.startedAt === undefined) {
      violate("G6", `${actor.id} was given the prompt of ${runId}, which was withdrawn before it began.`);
    }
  }
}

/** What a result says is what was recorded; a call is running if no end of it was recorded by then. */
function checkResults({ actor, messages }: Reading, log: readonly Recorded[], facts: Facts, violate: Violate): void {
  const ended = new Set(log.map((event) => (event.type === "call.settled" ? event.callId : undefined)));
  const seen = new Set<CallId>();
  for (const message of messages) {
    if (message.role !== "tool") continue;
    for (const { callId, outcome, result, changes } of message.results) {
      if (seen.has(callId)) violate("G17", `${actor.id} was given the result of ${callId} twice.`);
      seen.add(callId);
      const settled = facts.works.get(callId)?.settled;
      const same = settled !== undefined && told(settled) === JSON.stringify([outcome, result, changes]);
      const runs = outcome.kind === "running" && !ended.has(callId);
      if (!same && !runs) {
        violate("G17", `${actor.id} was given another end of ${callId} than the log has.`);
      }
    }
  }
}

const told = ({ outcome, result, changes }: Settled): string => JSON.stringify([outcome, result, changes]);

/** Where that begins what an agent is given: with the run that made the last summary. */
function sinceSummary(log: readonly Recorded[]): readonly Recorded[] {
  const last = log.findLast((event) => event.type === "session.compacted");
  if (last?.type !== "session.compacted") return log;
  const runId = runOf(last.turnId);
  const start = log.findIndex((event) => event.type === "run.started" && event.runId === runId);
  return log.slice(Math.max(start, 0));
}

/** All that was said to this run by people and by the inbox since the last summary is there, once. */
function checkSaid(actor: TurnActor, messages: readonly Message[], log: readonly Recorded[], violate: Violate): void {
  const times = (fits: (message: Message) => boolean): number => messages.filter(fits).length;
  const once = (what: string, count: number): void => {
    if (count !== 1) violate("G17", `${actor.id} was given ${what} ${count} times.`);
  };
  for (const event of sinceSummary(log)) {
    if (event.type === "run.taken" || event.type === "run.started") {
      const { runId } = event;
      // What was asked is not there any more, if retention has removed it.
      if (!log.some((one) => one.type === "run.accepted" && one.runId === runId)) continue;
      once(
        runId,
        times((message) => message.role === "user" && message.runId === runId),
      );
    }
    if (event.type !== "inbox.taken") continue;
    for (const item of event.items) {
      const text = JSON.stringify(item);
      once(
        `"${item.text}"`,
        times((message) => message.role === "note" && JSON.stringify(message.item) === text),
      );
    }
  }
}
