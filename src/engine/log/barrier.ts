// The barrier for requests that only read a session.
import type { Clock } from "../../ports/clock.ts";
import type { Commit } from "./commit.ts";
import type { SessionState } from "./session-state.ts";

/** A write takes milliseconds. If the store takes longer it is failing, and readers should see that state. */
export const BARRIER_MS_MAX = 1_000;

interface Parts {
  readonly commit: Commit;
  readonly clock: Clock;
}

/**
 * Waits until the lane is loaded and everything decided so far is durable. While the store fails or does not answer,
 * the durable state is used: a reader is neither refused nor delayed by other requests.
 */
export async function readBarrier(lane: SessionState, { commit, clock }: Parts): Promise<void> {
  const turn = commit.barrier(lane).catch((error: unknown) => {
    if (!canBeSeen(lane)) throw error;
  });
  if (!canBeSeen(lane) || lane.atRest) return turn;
  let dispose = (): void => {};
  const late = new Promise<void>((resolve) => {
    dispose = clock.after(BARRIER_MS_MAX, resolve, "idle");
  });
  await Promise.race([turn, late]).finally(dispose);
}

const canBeSeen = (lane: SessionState): boolean => lane.phase === "ready" && lane.durable.phase !== "absent";
