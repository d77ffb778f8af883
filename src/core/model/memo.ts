// Memos: what a session remembers besides its log. A cancel can name prompts that have not arrived yet; a request that
// changes nothing has an answer and no event. Both are kept without a position in the log, and written with it.
//
// Invariants
// 1. A memo of a prompt counts for the user that left it, in its session, and for the prompt with its key alone.
// 2. No memo of a prompt is dropped for room: one more than the limit is refused.

import { ANSWERS_KEPT } from "../limits.ts";
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

export const NO_MEMOS: readonly Memo[] = [];

export function remember(memos: readonly Memo[], change: MemoChange): readonly Memo[] {
  const name = change.type === "keep" ? memoName(change.memo) : change.name;
  const rest = memos.filter((one) => memoName(one) !== name);
  if (change.type === "keep") return [...rest, change.memo];
  return rest.length === 0 ? NO_MEMOS : rest;
}

/** The memo that cancels a prompt which arrives now, if its own user has left one. */
export function cancelledBefore(
  memos: readonly Memo[],
  { key, actor = "" }: { readonly key?: string; readonly actor?: string },
): PromptMemo | undefined {
  if (key === undefined) return undefined;
  return memos.find((one): one is PromptMemo => one.kind === "prompt" && one.key === key && one.actor === actor);
}

/** The memos that a cancel leaves for the prompts it names: for those that are not `here`, in this order. */
export function memosFor(
  { prompts = [], actor = "", arrived = [], crowded }: NamedPrompts,
  reason: CancelReason,
  here: ReadonlySet<string | undefined>,
): readonly PromptMemo[] {
  if (crowded === true) return [];
  return [...new Set(prompts)]
    .filter((key) => !here.has(key) && !arrived.includes(key))
    .map((key) => ({ kind: "prompt", key, actor, reason }));
}

/** Keeps an answer. A session remembers only so many, and forgets the oldest. */
export function keepAnswer(memos: readonly Memo[], memo: AnswerMemo): readonly MemoChange[] {
  const answers = memos.filter(({ kind }) => kind === "answer");
  const dropped = answers.slice(0, Math.max(0, answers.length + 1 - ANSWERS_KEPT));
  return [...dropped.map(drop), keep(memo)];
}

export const keep = (memo: Memo): MemoChange => ({ type: "keep", memo });
export const drop = (memo: Memo): MemoChange => ({ type: "drop", name: memoName(memo) });
