// Memos: state of a session that is not in its log. A cancel can name prompts that have not arrived yet, and a request
// that changes nothing has an answer but no event. Both are kept without a position, and written together with the log.
//
// Invariants
// 1. A memo of a prompt applies only to its own session, user and key.
// 2. Memos are never evicted: one above the limit is refused.

import type { CancelReason, NamedPrompts } from "./cancel.ts";
import type { Json } from "./prompt.ts";

/** `prompt`: cancelled before it arrived. `answer`: the answer to a request that left no event. */
export type Memo = PromptMemo | AnswerMemo;

export interface PromptMemo {
  readonly kind: "prompt";
  /** The idempotency key of the prompt. */
  readonly key: string;
  /** The user that sent the cancel. The empty string: the host itself. */
  readonly actor: string;
  readonly reason: CancelReason;
}

export interface AnswerMemo {
  readonly kind: "answer";
  readonly key: string;
  /** Digest of the request. */
  readonly content: string;
  readonly answer: Json;
  /** The user that sent the request. Absent: the request does not name one. */
  readonly actor?: string;
}

export type MemoChange =
  | { readonly type: "keep"; readonly memo: Memo }
  | { readonly type: "drop"; readonly name: string };

/** Memo changes that are written atomically with a batch of events, even for a session that does not exist yet. */
export interface MemoBatch {
  readonly memos?: readonly MemoChange[];
  /** Names of memos. If one of them is kept, nothing is written. */
  readonly unless?: readonly string[];
}

type Named = Pick<AnswerMemo, "kind" | "key"> | Pick<PromptMemo, "kind" | "key" | "actor">;

/** The name of a memo within its session. Two users with the same key have two memos. */
export const memoName = (memo: Named): string =>
  JSON.stringify(memo.kind === "prompt" ? [memo.kind, memo.key, memo.actor] : [memo.kind, memo.key]);

/** The name of the memo that cancels this prompt when it arrives. Undefined: without a key there is none. */
export const promptMemoName = ({ key, actor = "" }: { readonly key?: string; readonly actor?: string }) =>
  key === undefined ? undefined : memoName({ kind: "prompt", key, actor });

/** The memos that a cancel keeps for the prompts it names that are not `here`, in the order given. */
export function memosFor(
  { prompts = [], actor = "", arrived = [], crowded }: NamedPrompts,
  reason: CancelReason,
  here: ReadonlySet<string | undefined>,
): readonly PromptMemo[] {
  if (crowded === true) return [];
  const over = new Set(arrived);
  return [...new Set(prompts)]
    .filter((key) => !here.has(key) && !over.has(key))
    .map((key) => ({ kind: "prompt", key, actor, reason }));
}

export const keep = (memo: Memo): MemoChange => ({ type: "keep", memo });
export const drop = (memo: Memo): MemoChange => ({ type: "drop", name: memoName(memo) });
