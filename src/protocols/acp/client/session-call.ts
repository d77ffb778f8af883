// The record of an external agent's session: the result of a call in the log, through which it is found again.
import type { Message } from "../../../core/read/transcript.ts";
import { isObject } from "./kept-json.ts";
import { SESSION_ID_CHARS_MAX } from "./limits.ts";

/** The name of the call that is recorded when an agent creates a session. */
export const SESSION_CALL = "session/new";

/** The last session of an agent with this name. Undefined if there is none, or if a later one is another agent's. */
export function earlierSession(messages: readonly Message[], agent: string): string | undefined {
  const results = messages.flatMap((message) => (message.role === "tool" ? message.results : []));
  const last = results.findLast(({ name, outcome }) => name === SESSION_CALL && outcome.kind === "completed")?.result;
  return isObject(last) && last.agent === agent && isSessionName(last.sessionId) ? last.sessionId : undefined;
}

export const isSessionName = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= SESSION_ID_CHARS_MAX;
