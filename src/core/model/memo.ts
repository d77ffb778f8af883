// Memos: what a session remembers besides its log. A cancel can name prompts that have not arrived yet; a request that
// changes nothing has an answer and no event. Both are kept without a position in the log, and written with it.
//
// Invariants
// 1. A memo of a prompt counts for the user that left it, in its session, and for the prompt with its key alone.
// 2. No memo is dropped for room: one more than the limit is refused.

import type { CancelReason, NamedPrompts } from "./cancel.ts";
import type { Json } from "./prompt.ts";

/** `prompt`: cancelled before it arrived. `answer`: what a request was answered that left no event. */
export type Memo = PromptMemo | AnswerMemo;

export interface PromptMemo {
  readonly kind: "prompt";
  /** The idempotency key of the prompt. */
  readonly key: string;
  /** The user whose cancel it was. The empty string: the host itself. */
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

/** What is written with a batch of events, all or none. Even of a session that does not exist yet. */
export interface MemoBatch {
  readonly memos?: readonly MemoChange[];
  /** Names of memos: if one of them is kept, nothing is added. */
  readonly unless?: readonly string[];
}

type Named = Pick<AnswerMemo, "kind" | "key"> | Pick<PromptMemo, "kind" | "key" | "actor">;

/** What a memo is called within its session. Those of two users for one key are two. */
export const memoName = (memo: Named): string =>
  JSON.stringify(memo.kind === "prompt" ? [memo.kind, memo.key, memo.actor] : [memo.kind, memo.key]);

/** The name of the memo that cancels this prompt when it arrives. Undefined: none can. */
export const promptMemoName = ({ key, actor = "" }: { readonly key?: string; readonly actor?: string }) =>
  key === undefined ? undefined : memoName({ kind: "prompt", key, actor });

/** The memos that a cancel leaves for the prompts it names: for those that are not `here`, in this order. */
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
