// Whether a transcript is valid (G17): for people, and for a provider that is strict.
import type { Event } from "../../src/core/model/event.ts";
import type { RunId } from "../../src/core/model/ids.ts";
import type { Message } from "../../src/core/read/transcript.ts";
import { transcript } from "../../src/core/read/transcript-builder.ts";

/** Why a strict provider would reject these messages: each call has one result right behind it, and vice versa. */
export function pairingError(messages: readonly Message[]): string | undefined {
  for (const [index, message] of messages.entries()) {
    const next = messages[index + 1];
    if (message.role === "assistant" && message.calls.length > 0) {
      const calls = message.calls.map(({ callId }) => callId);
      const results = next?.role === "tool" ? next.results.map(({ callId }) => callId) : [];
      if (calls.join() !== results.join()) return `the calls ${calls.join()} have the results ${results.join()}`;
      if (new Set(calls).size !== calls.length) return `a call is there twice among ${calls.join()}`;
    }
    const before = messages[index - 1];
    if (message.role === "tool" && !(before?.role === "assistant" && before.calls.length > 0)) {
      return `results of ${message.runId} without their calls`;
    }
  }
  return undefined;
}

/** Everything that is wrong with the transcript of a log, complete or not. */
export function transcriptErrors(events: readonly Event[]): readonly string[] {
  const messages = transcript(events);
  const pairing = pairingError(messages);
  const taken = new Set(events.flatMap((event) => (event.type === "run.taken" ? [event.runId] : [])));
  const settled = events.flatMap((event) => (event.type === "run.settled" ? [event.runId] : []));
  const notes = messages.flatMap((message) => (message.role === "note" ? [message.item] : []));
  const items = events.flatMap((event) => (event.type === "inbox.taken" ? event.items : []));
  return [
    ...(pairing === undefined ? [] : [pairing]),
    ...settled.flatMap((runId) => runErrors(runId, messages, taken.has(runId))),
    ...(JSON.stringify(notes) === JSON.stringify(items) ? [] : ["the notes are not what was taken from the inbox"]),
  ];
}

/** Each settled run has one user message, first; and a finished answer, unless another run took it in. */
function runErrors(runId: RunId, messages: readonly Message[], wasTaken: boolean): readonly string[] {
  const own = messages.filter((message) => message.runId === runId);
  const answers = own.filter((message) => message.role === "assistant");
  const errors: string[] = [];
  if (own.filter(({ role }) => role === "user").length !== 1) errors.push(`${runId} has not one user message`);
  if (own[0]?.role !== "user") errors.push(`${runId} does not begin with its user message`);
  if (wasTaken !== (answers.length === 0)) errors.push(`${runId} has ${answers.length} assistant messages`);
  if (answers.some(({ finish }) => finish.kind === "live")) errors.push(`${runId} has no finish`);
  return errors;
}
