// Promises that fail when nobody waits for them: mostly of tools, which have ended long before. Their program goes on.
//
// Invariants
// 1. Only a program that carries out an agent's code is held up like this: its runs are in a log, and most of them are
//    somebody else's. What is thrown outside of any promise still ends it, since then nobody knows what is half done.

export interface RejectionGuard {
  /** How many there were. */
  readonly count: number;
  /** Listens no longer. */
  dispose(): void;
}

/** Tells of each, and ends nothing. */
export function surviveRejections(tell: (failure: unknown) => void): RejectionGuard {
  let count = 0;
  const onStray = (failure: unknown): void => {
    count += 1;
    tell(failure);
  };
  process.on("unhandledRejection", onStray);
  return {
    get count() {
      return count;
    },
    dispose: () => void process.removeListener("unhandledRejection", onStray),
  };
}

/** What is said of one. */
export const STRAY = "a promise has failed that nobody waits for; what it belonged to has ended before";
