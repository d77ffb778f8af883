// Whether a turn was given the right conversation: compared with the one that the log makes, and with what a provider
// accepts.
import type { Recorded } from "../src/core/event.ts";
import type { CallId } from "../src/core/ids.ts";
import { Book, type Message } from "../src/core/transcript.ts";
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
  const { actor, messages, from, to } = reading;
  const log = facts.log(actor.turn.sessionId);
  const head = headOf(reading, log, facts.trims.get(actor.turn.sessionId) ?? []);
  if (head === undefined) {
    violate("G17", `${actor.id} was given a conversation that the log does not have between ${from} and ${to}.`);
    return;
  }
  const pairing = pairingError(messages);
  if (pairing !== undefined) violate("G17", `${actor.id} was given a conversation in which ${pairing}.`);
  checkResults(actor, messages, facts, violate);
  checkSaid(actor, messages, log.slice(head.trimmed, head.at), violate);
}

/** The position whose conversation this is, and what had been removed before it by then. */
function headOf(
  { actor, messages, from, to }: Reading,
  log: readonly Recorded[],
  trims: readonly number[],
): { readonly at: number; readonly trimmed: number } | undefined {
  const given = JSON.stringify(messages);
  for (let at = to; at >= from; at -= 1) {
    for (const trimmed of [0, ...trims]) {
      const made = toldBy(log.slice(trimmed, at)).filter((message) => isFor(actor, message));
      if (JSON.stringify(made) === given) return { at, trimmed };
    }
  }
  return undefined;
}

/** The conversation as a live run is told it, made anew. */
function toldBy(events: readonly Recorded[]): readonly Message[] {
  const book = new Book();
  for (const event of events) book.note(event);
  return book.told();
}

/** The turn that reads is not part of what it reads, unless it has made calls. */
const isFor = (actor: TurnActor, message: Message): boolean =>
  message.role !== "assistant" || message.turnId !== actor.id || message.calls.length > 0;

/** What a result says is what was recorded; and what came before this turn has one that is real. */
function checkResults(actor: TurnActor, messages: readonly Message[], facts: Facts, violate: Violate): void {
  const seen = new Set<CallId>();
  for (const message of messages) {
    if (message.role !== "tool") continue;
    for (const { callId, outcome, result, changes } of message.results) {
      if (seen.has(callId)) violate("G17", `${actor.id} was given the result of ${callId} twice.`);
      seen.add(callId);
      const settled = facts.works.get(callId)?.settled;
      const same = settled !== undefined && told(settled) === JSON.stringify([outcome, result, changes]);
      const goesOn = settled === undefined && actor.waitsFor > 0;
      // A call of this very turn may have ended since.
      if (!same && !goesOn && outcome.kind !== "lost") {
        violate("G17", `${actor.id} was given another end of ${callId} than the log has.`);
      }
    }
  }
}

const told = ({ outcome, result, changes }: Settled): string => JSON.stringify([outcome, result, changes]);

/** All that was said to this run by people and by the inbox is there, once. */
function checkSaid(actor: TurnActor, messages: readonly Message[], log: readonly Recorded[], violate: Violate): void {
  const times = (fits: (message: Message) => boolean): number => messages.filter(fits).length;
  const once = (what: string, count: number): void => {
    if (count !== 1) violate("G17", `${actor.id} was given ${what} ${count} times.`);
  };
  for (const event of log) {
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
