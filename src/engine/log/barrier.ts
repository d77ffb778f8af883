// What whoever only looks at a session waits for.
import type { Clock } from "../../ports/clock.ts";
import type { Commit } from "./commit.ts";
import type { SessionState } from "./session-state.ts";

/** A write takes milliseconds. A store that takes longer is in trouble, and those who look want to see that. */
export const BARRIER_MS_MAX = 1_000;

interface Parts {
  readonly commit: Commit;
  readonly clock: Clock;
}

/**
 * Until the lane is loaded and everything decided so far is durable. While the store can record nothing, or does not
 * answer, what is durable has to do: whoever only looks neither is refused nor waits for what others have asked.
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
