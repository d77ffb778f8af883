// A question: something that work asks people and waits for. An approval is bound to the exact bytes of a call's input.
//
// Invariants
// 1. It is settled once: answered, expired, or withdrawn with the work it belongs to.
// 2. It never outlives the work that asked it, nor its run.
import type { CancelReason } from "./cancel.ts";
import type { QuestionId, Work } from "./ids.ts";
import type { Json } from "./prompt.ts";

/** The content of a question. */
export type Subject =
  /** May this call run with exactly this input? `digest` covers its name and input. */
  | {
      readonly kind: "approval";
      readonly name: string;
      readonly input: Json;
      readonly digest: string;
      /** What an approval for the whole session covers. Default: the name. */
      readonly scope: string;
      readonly note?: string;
    }
  /** Any other question. `options` are suggestions; with `only`, the answer must be one of them. */
  | {
      readonly kind: "question";
      readonly text: string;
      readonly options?: readonly string[];
      readonly only?: true;
      readonly data?: Json;
    };

/**
 * An open question. An answer, its deadline, a cancel, or the end of its owner settles it.
 * If Belay dies here: an approval stays open if its call can be begun again. Every other question is withdrawn, and
 * asked again if its work is repeated.
 */
export interface Question {
  readonly id: QuestionId;
  /** The call or turn that waits for the answer. */
  readonly owner: Work;
  readonly about: Subject;
  readonly deadlineMs: number | undefined;
}

export type QuestionReply =
  /** `remember`: further calls of the same scope need no approval in this session. */
  | { readonly kind: "allowed"; readonly remember?: "session"; readonly by?: string; readonly note?: string }
  | { readonly kind: "denied"; readonly by?: string; readonly note?: string }
  | { readonly kind: "answered"; readonly value: Json; readonly by?: string };

/** How a question ended. Written once. */
export type QuestionOutcome =
  | QuestionReply
  /** There was no answer before the deadline. For an approval this means no. */
  | { readonly kind: "expired"; readonly limitMs: number }
  /** The work that asked it was stopped, or continued without the answer. */
  | { readonly kind: "withdrawn"; readonly reason: CancelReason };

/** The receipt of an answer. */
export type AnswerReceipt =
  | { readonly kind: "recorded"; readonly questionId: QuestionId }
  /** It had already ended like this. */
  | { readonly kind: "settled"; readonly ending: QuestionOutcome }
  /** The reply does not fit the question, or the approval is for other bytes. Nothing was recorded. */
  | { readonly kind: "refused"; readonly code: "invalid" | "conflict"; readonly message: string }
  | { readonly kind: "unknown" };

/** Why this reply does not fit the question; undefined if it fits. */
export function misfit(
  about: Subject,
  reply: QuestionReply,
  digest: string | undefined,
): Extract<AnswerReceipt, { kind: "refused" }> | undefined {
  if (about.kind === "approval") {
    if (reply.kind === "answered") return refused("invalid", "An approval is answered with `allowed` or `denied`.");
    if (digest === undefined || digest === about.digest) return undefined; // @fault digest-not-compared
    return refused("conflict", "The approval is for other bytes than those the call would carry out.");
  }
  if (reply.kind !== "answered") return refused("invalid", "A question is answered with a value.");
  if (about.only !== true || (about.options ?? []).some((option) => option === reply.value)) return undefined;
  return refused("invalid", `The answer is one of: ${(about.options ?? []).join(", ")}.`);
}

const refused = (
  code: "invalid" | "conflict",
  message: string,
): { readonly kind: "refused"; readonly code: "invalid" | "conflict"; readonly message: string } => ({
  kind: "refused",
  code,
  message,
});
