// Listeners of the host, called so that an error of theirs harms nothing here.
import type { Notify } from "../ports/hooks.ts";

export const processNotices =
  (notify: Notify) =>
  (message: string, warning?: true): void =>
    notify({ type: "process", message, ...(warning === undefined ? {} : { warning }) });

/** A listener that cannot harm its caller, neither by an error that it throws nor by a promise that rejects. */
export function harmless<A extends readonly unknown[]>(
  listener: ((...told: A) => void) | undefined,
  hurt: (error: unknown, ...told: A) => void,
): ((...told: A) => void) | undefined {
  if (listener === undefined) return undefined;
  return (...told) => {
    try {
      // Its type says nothing of promises; an async function is given all the same.
      const answer: unknown = listener(...told);
      if (answer instanceof Promise) answer.catch((error: unknown) => hurt(error, ...told));
    } catch (error) {
      hurt(error, ...told);
    }
  };
}
