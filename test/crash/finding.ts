// What the checker can find.

export const FINDING_KINDS = [
  /** A prompt that was acknowledged is not in the log. */
  "lost",
  /** A run that was accepted never ended. */
  "withoutOutcome",
  "twoOutcomes",
  /** A tool did its work again that must not have. */
  "repeatedCalls",
  /** Something did not come to rest in its time. */
  "stuck",
  /** An outcome was told, or recorded, that is not so. */
  "falseOutcomes",
  /** A receipt said something that the log does not bear out. */
  "falseReceipts",
  /** What was refused has left a trace. */
  "refusedTraces",
  /** One key, or one sending, two runs. */
  "doublePrompts",
  /** A follower heard something else than the log. */
  "brokenSlices",
  /** What was accepted first stands later. */
  "outOfOrder",
  /** The log itself breaks the contract. */
  "brokenLogs",
  "brokenTranscripts",
  /** A process outlived its server. */
  "processesLeft",
  /** A server died, or complained, without having been killed. */
  "faults",
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export interface Finding {
  readonly kind: FindingKind;
  readonly message: string;
}

export type Report = (kind: FindingKind, message: string) => void;
