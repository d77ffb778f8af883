// Wraps the host's callbacks so that their errors cannot break Belay.
import type { Notify } from "../ports/hooks.ts";

export const processNotices =
  (notify: Notify) =>
  (message: string, warning?: true): void =>
    notify({ type: "process", message, ...(warning === undefined ? {} : { warning }) });

/** A callback that cannot harm its caller, neither by throwing nor by returning a promise that rejects. */
export function harmless<A extends readonly unknown[]>(
  listener: ((...args: A) => void) | undefined,
  onError: (error: unknown, ...args: A) => void,
): ((...args: A) => void) | undefined {
  if (listener === undefined) return undefined;
  return (...args) => {
    try {
      // The type returns nothing, but callers do pass async functions.
      const answer: unknown = listener(...args);
      if (answer instanceof Promise) answer.catch((error: unknown) => onError(error, ...args));
    } catch (error) {
      onError(error, ...args);
    }
  };
}
