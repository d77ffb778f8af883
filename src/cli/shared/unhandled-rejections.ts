// Logs unhandled promise rejections instead of ending the program. Most come from tools that ended long before.
//
// Invariants
// 1. Only a program that runs an agent's code survives a rejection: its runs are in a log, and most belong to other
//    users. An uncaught exception still ends it, since its state is unknown then.

export interface RejectionGuard {
  /** How many rejections there were. */
  readonly count: number;
  /** Removes the listener. */
  dispose(): void;
}

/** Calls `report` for each unhandled rejection, and keeps the program running. */
export function surviveRejections(report: (failure: unknown) => void): RejectionGuard {
  let count = 0;
  const onRejection = (failure: unknown): void => {
    count += 1;
    report(failure);
  };
  process.on("unhandledRejection", onRejection);
  return {
    get count() {
      return count;
    },
    dispose: () => void process.removeListener("unhandledRejection", onRejection),
  };
}

/** The log message for each. */
export const UNHANDLED_REJECTION = "unhandled promise rejection: the work it belonged to has already ended";
