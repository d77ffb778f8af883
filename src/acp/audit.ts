// Where the records of control requests go: who asked for what, and what they were told.
import { codeOf } from "./rpc-error.ts";

export interface AuditRecord {
  readonly id: string;
  /** Wall clock, ms. */
  readonly at: number;
  readonly actor: string;
  readonly via: "acp";
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  readonly code?: string;
  readonly tenant?: string;
}

export interface Audit {
  note(record: AuditRecord): Promise<void>;
}

export const refused = (error: unknown): { readonly answer: string; readonly code: string } => ({
  answer: "refused",
  code: codeOf(error),
});

/** One word for what was answered. */
export function word(answer: unknown): string {
  if (typeof answer !== "object" || answer === null) return "done";
  const { status, kind } = answer as { readonly status?: unknown; readonly kind?: unknown };
  if (typeof status === "string") return status;
  return typeof kind === "string" ? kind : "done";
}
