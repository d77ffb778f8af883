// A wait with a limit.
import type { Clock } from "../../../ports/clock.ts";

/** What the work resolves with, if it does in time. */
export async function within<T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const dispose = clock.after(limitMs, () => resolve(undefined));
  try {
    return await Promise.race([work, late]);
  } finally {
    dispose();
  }
}
