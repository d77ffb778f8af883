// How the session that a foreign agent has made is found again: it is the result of a call, and the log keeps it.
import type { Message } from "../../../core/read/transcript.ts";
import { isObject } from "./kept-json.ts";
import { SESSION_ID_CHARS_MAX } from "./limits.ts";

/** The call that is recorded when an agent makes a session. */
export const SESSION_CALL = "session/new";

/** The session an agent of this name had last. Undefined: none, or the last one was another agent's. */
export function earlierSession(messages: readonly Message[], agent: string): string | undefined {
  const results = messages.flatMap((message) => (message.role === "tool" ? message.results : []));
  const last = results.findLast(({ name, outcome }) => name === SESSION_CALL && outcome.kind === "completed")?.result;
  return isObject(last) && last.agent === agent && isSessionName(last.sessionId) ? last.sessionId : undefined;
}

export const isSessionName = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= SESSION_ID_CHARS_MAX;
