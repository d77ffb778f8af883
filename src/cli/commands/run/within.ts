// A promise with a timeout.
import type { Clock } from "../../../ports/clock.ts";

/** Resolves with the result of the work, or with undefined after the timeout. */
export async function within<T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const cancelTimer = clock.after(limitMs, () => resolve(undefined));
  try {
    return await Promise.race([work, late]);
  } finally {
    cancelTimer();
  }
}
