// The memos of a lane, by name. An immutable value, like the lane that has it: a change returns another set.
//
// Invariants
// 1. A change costs what it changes, however many memos there are: a cancel may name thousands of prompts.
// 2. All versions share one table, which belongs to the version used last. Each older version keeps the steps that turn
//    the table of the next one into its own, and takes the table over when it is used again. Copying the table for each
//    change would be simpler, but would block the event loop when thousands of cancelled prompts arrive.
import { type Memo, type MemoChange, memoName } from "./memo.ts";
import type { Json } from "./prompt.ts";

interface Kept {
  readonly memo: Memo;
  /** When it was kept, by a monotonic clock. */
  readonly at: number;
  /** What it counts towards its user's limit; undefined: it is not an answer. */
  readonly answer: AnswerCount | undefined;
}

/** The number of answers kept for a user, and their characters together. */
export interface AnswerCount {
  readonly count: number;
  readonly chars: number;
}

interface Table {
  readonly kept: Map<string, Kept>;
  readonly answers: Map<string, AnswerCount>;
  /** No memo was kept before this time. */
  oldest: number;
}

/** The memo that a name had, or has next. */
type Step = readonly [name: string, kept: Kept | undefined];

type State =
  | { readonly kind: "current"; readonly table: Table }
  | { readonly kind: "other"; readonly next: MemoSet; readonly steps: readonly Step[] };

export class MemoSet {
  #state: State;

  constructor(memos: Iterable<Memo> = [], at = 0) {
    const table: Table = { kept: new Map(), answers: new Map(), oldest: Number.POSITIVE_INFINITY };
    for (const memo of memos) put(table, memoName(memo), keptAt(memo, at));
    this.#state = { kind: "current", table };
  }

  get size(): number {
    return this.#table().kept.size;
  }

  get(name: string): Memo | undefined {
    return this.#table().kept.get(name)?.memo;
  }

  list(): readonly Memo[] {
    return [...this.#table().kept.values()].map(({ memo }) => memo);
  }

  /** The answers that are kept for one user. */
  answersOf(actor: string): AnswerCount {
    return this.#table().answers.get(actor) ?? NO_ANSWERS;
  }

  with(changes: readonly MemoChange[], at = 0): MemoSet {
    return this.#changed(
      changes.map((change) =>
        change.type === "keep" ? [memoName(change.memo), keptAt(change.memo, at)] : [change.name, undefined],
      ),
    );
  }

  /** Without the memos that were kept at or before `at`. */
  since(at: number): MemoSet {
    const table = this.#table();
    if (table.oldest > at) return this;
    const old = [...table.kept].filter(([, kept]) => kept.at <= at);
    const memos = this.#changed(old.map(([name]) => [name, undefined]));
    table.oldest = oldestOf(table.kept.values());
    return memos;
  }

  #changed(steps: readonly Step[]): MemoSet {
    if (steps.length === 0) return this;
    const table = this.#table();
    // All empty lanes share one empty set.
    if (table.kept.size === 0) {
      const first = new MemoSet();
      for (const [name, kept] of steps) put(first.#table(), name, kept);
      return first;
    }
    const back = steps.map(([name, kept]): Step => [name, put(table, name, kept)]).reverse();
    const next = new MemoSet();
    next.#state = { kind: "current", table };
    this.#state = { kind: "other", next, steps: back };
    return next;
  }

  /** The table in the state of this version. */
  #table(): Table {
    const path: MemoSet[] = [];
    let at: MemoSet = this;
    for (; at.#state.kind === "other"; at = at.#state.next) path.push(at);
    const { table } = at.#state;
    for (const version of path.reverse()) {
      if (version.#state.kind !== "other") continue;
      const { steps } = version.#state;
      const back = steps.map(([name, kept]): Step => [name, put(table, name, kept)]).reverse();
      at.#state = { kind: "other", next: version, steps: back };
      version.#state = { kind: "current", table };
      at = version;
    }
    return table;
  }
}

/** Puts one memo into the table as the newest, and returns the one it replaces. */
function put(table: Table, name: string, next: Kept | undefined): Kept | undefined {
  const { kept, answers } = table;
  const before = kept.get(name);
  kept.delete(name);
  if (next !== undefined) kept.set(name, next);
  table.oldest = Math.min(table.oldest, next?.at ?? table.oldest);
  if (before !== undefined) count(answers, before, -1);
  if (next !== undefined) count(answers, next, 1);
  return before;
}

function count(answers: Map<string, AnswerCount>, { memo, answer }: Kept, sign: 1 | -1): void {
  if (answer === undefined) return;
  const actor = memo.actor ?? "";
  const { count, chars } = answers.get(actor) ?? NO_ANSWERS;
  const after = { count: count + sign, chars: chars + sign * answer.chars };
  if (after.count === 0) answers.delete(actor);
  else answers.set(actor, after);
}

const NO_ANSWERS: AnswerCount = { count: 0, chars: 0 };

const keptAt = (memo: Memo, at: number): Kept => ({
  ...{ memo, at },
  answer: memo.kind === "answer" ? { count: 1, chars: charsOf(memo.answer) } : undefined,
});

/** The size of an answer. An undefined answer is kept too. */
export const charsOf = (answer: Json | undefined): number => JSON.stringify(answer)?.length ?? 0;

export const NO_MEMOS = new MemoSet();

function oldestOf(memos: Iterable<Kept>): number {
  let oldest = Number.POSITIVE_INFINITY;
  for (const { at } of memos) oldest = Math.min(oldest, at);
  return oldest;
}
