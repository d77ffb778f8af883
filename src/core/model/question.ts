// A question: something put to people that work waits for. An approval is one that is bound to the exact bytes of a
// call.
//
// Invariants
// 1. It is settled once: answered, expired, or withdrawn with what it belongs to.
// 2. It never outlives the work that asked it, nor its run.
import type { CancelReason } from "./cancel.ts";
import type { QuestionId, Work } from "./ids.ts";
import type { Json } from "./prompt.ts";

/** What is asked. */
export type Subject =
  /** May this call be carried out, with exactly this input? `digest` is that of name and input. */
  | {
      readonly kind: "approval";
      readonly name: string;
      readonly input: Json;
      readonly digest: string;
      /** What an approval for the whole session covers; default the name. */
      readonly scope: string;
      readonly note?: string;
    }
  /** Anything else. `options` are suggestions, or, with `only`, all there is to choose from. */
  | {
      readonly kind: "question";
      readonly text: string;
      readonly options?: readonly string[];
      readonly only?: true;
      readonly data?: Json;
    };

export interface Question {
  readonly id: QuestionId;
  /** Who waits for the answer: a call, or the turn. */
  readonly owner: Work;
  readonly about: Subject;
  readonly deadlineMs: number | undefined;
}

export type QuestionReply =
  /** `remember`: calls of the same scope need no approval in this session any more. */
  | { readonly kind: "allowed"; readonly remember?: "session"; readonly by?: string; readonly note?: string }
  | { readonly kind: "denied"; readonly by?: string; readonly note?: string }
  | { readonly kind: "answered"; readonly value: Json; readonly by?: string };

/** How a question ended. */
export type QuestionOutcome =
  | QuestionReply
  /** Nobody answered in time. For an approval that means no. */
  | { readonly kind: "expired"; readonly limitMs: number }
  /** What it belonged to was stopped, or went on without the answer. */
  | { readonly kind: "withdrawn"; readonly reason: CancelReason };

/** What whoever answers is told. */
export type AnswerReceipt =
  | { readonly kind: "recorded"; readonly questionId: QuestionId }
  /** Too late: it had ended like this. */
  | { readonly kind: "settled"; readonly ending: QuestionOutcome }
  /** It asks for something else, or the bytes are not those it asks about. Nothing was recorded. */
  | { readonly kind: "refused"; readonly code: "invalid" | "conflict"; readonly message: string }
  | { readonly kind: "unknown" };

/** Whether this reply fits the question; if not, why. */
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
