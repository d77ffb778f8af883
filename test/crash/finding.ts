// What a crash loop can find: what the model finds, and processes that are left.
import { FINDING_KINDS as MODEL_KINDS, type FindingKind as ModelKind } from "../oracle/finding.ts";

/** `processesLeft`: a process outlived its server. */
export type FindingKind = ModelKind | "processesLeft";

export const FINDING_KINDS: readonly FindingKind[] = [...MODEL_KINDS, "processesLeft"];

export interface Finding {
  readonly kind: FindingKind;
  readonly message: string;
}
