// Requests with an idempotency key: what counts as the same request, and whether it was refused.
import type { NamedPrompts } from "../core/model/cancel.ts";
import type { Command, Refused } from "../core/model/command.ts";

export function isRefused(answer: unknown): answer is Refused {
  return (answer as Partial<Refused> | undefined)?.kind === "refused";
}

/** The content of a request. It excludes the prompts for which the caller had received no answer. */
export const requestOf = (command: Command): object => {
  const { prompts: _, actor: __, ...request } = command as Command & NamedPrompts;
  return request;
};
