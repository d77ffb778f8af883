// Requests with an idempotency key: what counts as the same request, and whether it was refused.
import type { NamedPrompts } from "../core/model/cancel.ts";
import type { Command, Refused } from "../core/model/command.ts";

export function isRefused(answer: unknown): answer is Refused {
  return (answer as Partial<Refused> | undefined)?.kind === "refused";
}

/** What is asked. Which prompts of the caller had not been answered by then is not part of it. */
export const requestOf = (command: Command): object => {
  const { prompts: _, actor: __, ...request } = command as Command & NamedPrompts;
  return request;
};
