// What the model can find, and which guarantee each kind of finding breaks.

/** Each kind with the guarantee it breaks, unless the finding names another. */
const GUARANTEES = {
  /** A prompt that was acknowledged is not in the log. */
  lost: "G1",
  /** A run or process has begun or was accepted, and has no outcome. */
  withoutOutcome: "G8",
  twoOutcomes: "G14",
  /** Work was carried out again that must not be repeated, or that the log never requested. */
  repeatedCalls: "G25",
  /** A request was never answered, or something did not come to rest in time. */
  stuck: "G8",
  /** A returned or recorded outcome is not what happened. */
  falseOutcomes: "G15",
  /** A receipt contradicts the log. */
  falseReceipts: "G10",
  /** A refused request left a trace in the log. */
  refusedTraces: "G3",
  /** One key, or one prompt, became two runs. */
  doublePrompts: "G2",
  /** A follower received something other than a contiguous slice of the log. */
  brokenSlices: "G30",
  /** A prompt that was acknowledged before another was sent comes after it. */
  outOfOrder: "G4",
  /** The log itself breaks the contract. */
  brokenLogs: "G29",
  brokenTranscripts: "G17",
  /** A request was rejected with an error of Belay's own, or a server died or complained without having been killed. */
  faults: "G28",
} as const;

export type FindingKind = keyof typeof GUARANTEES;

// The edge: the keys of an object literal are the keys of its type.
export const FINDING_KINDS = Object.keys(GUARANTEES) as readonly FindingKind[];

export interface Finding {
  readonly kind: FindingKind;
  readonly guarantee: string;
  readonly message: string;
}

/** Adds a finding. `guarantee`: if it breaks another one than its kind usually does. */
export type Report = (kind: FindingKind, message: string, guarantee?: string) => void;

export function findingsInto(findings: Finding[]): Report {
  return (kind, message, guarantee = GUARANTEES[kind]) => void findings.push({ kind, guarantee, message });
}
