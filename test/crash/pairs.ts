// Whether a provider that is strict would take a transcript: every call has its one result right behind it, and every
// result its call.
import type { Message } from "../../src/core/transcript.ts";

/** What is wrong with it; undefined if nothing is. */
export function mispaired(messages: readonly Message[]): string | undefined {
  for (const [index, message] of messages.entries()) {
    const next = messages[index + 1];
    if (message.role === "assistant" && message.calls.length > 0) {
      const asked = message.calls.map(({ callId }) => callId);
      const results = next?.role === "tool" ? next.results.map(({ callId }) => callId) : [];
      if (asked.join() !== results.join()) return `the calls ${asked.join()} have the results ${results.join()}`;
      if (new Set(asked).size !== asked.length) return `a call is there twice among ${asked.join()}`;
    }
    const before = messages[index - 1];
    if (message.role === "tool" && !(before?.role === "assistant" && before.calls.length > 0)) {
      return `results of ${message.runId} without their calls`;
    }
  }
  return undefined;
}
