import { describe, expect, test } from "vitest";
import { type AnswerMemo, drop, keep, memoName, type PromptMemo } from "./memo.ts";
import { MemoSet, NO_MEMOS } from "./memo-set.ts";

const prompt = (key: string): PromptMemo => ({ kind: "prompt", key, actor: "ann", reason: { kind: "user" } });
const answer = (key: string, actor?: string): AnswerMemo => ({
  ...{ kind: "answer", key, content: "c", answer: "four" },
  ...(actor === undefined ? {} : { actor }),
});
const keys = (memos: MemoSet): readonly string[] => memos.list().map(({ key }) => key);

describe("a set of memos", () => {
  test("is immutable: changes to a derived set leave it as it was, in whatever order they are used", () => {
    const first = new MemoSet([prompt("a")]);
    const second = first.with([keep(prompt("b")), keep(answer("c", "ann"))]);
    const third = second.with([drop(prompt("a")), keep({ ...prompt("b"), reason: { kind: "closed" } })]);
    const other = first.with([keep(prompt("d"))]);
    for (const _ of [1, 2]) {
      expect([...keys(first)].sort()).toEqual(["a"]);
      expect([...keys(other)].sort()).toEqual(["a", "d"]);
      expect([...keys(third)].sort()).toEqual(["b", "c"]);
      expect([...keys(second)].sort()).toEqual(["a", "b", "c"]);
      expect(third.get(memoName(prompt("b")))).toMatchObject({ reason: { kind: "closed" } });
      expect(second.get(memoName(prompt("b")))).toMatchObject({ reason: { kind: "user" } });
      expect([first, second, third].map((one) => one.answersOf("ann").count)).toEqual([0, 1, 1]);
    }
  });

  test("counts the answers of each user, and their characters", () => {
    const memos = NO_MEMOS.with([answer("a"), answer("b", "ann"), answer("c", "ann"), prompt("d")].map(keep));
    const counts = (one: MemoSet) => ["", "ann", "bob"].map((actor) => one.answersOf(actor));
    const [none, single, twice] = [0, 1, 2].map((count) => ({ count, chars: count * 6 }));
    expect(counts(memos)).toEqual([single, twice, none]);
    expect(counts(memos.with([keep(answer("b", "ann")), drop(answer("a"))]))).toEqual([none, twice, none]);
    expect(counts(NO_MEMOS)).toEqual([none, none, none]);
    expect(NO_MEMOS.size).toBe(0);
  });

  test("drops the memos kept at or before a time", () => {
    const memos = NO_MEMOS.with([keep(prompt("a")), keep(prompt("b"))], 1)
      .with([keep(prompt("c"))], 2)
      .with([keep(prompt("a"))], 3);
    expect(memos.since(0)).toBe(memos);
    expect([...keys(memos.since(1))].sort()).toEqual(["a", "c"]);
    expect(keys(memos.since(2))).toEqual(["a"]);
    expect(keys(memos)).toHaveLength(3);
  });

  test("G12: reads each memo once per change, however many there are", () => {
    const many = Array.from({ length: 4_096 }, (_, index) => prompt(`k${index}`));
    let named = 0;
    const counted = many.map((memo) => ({
      ...memo,
      get key() {
        named += 1;
        return memo.key;
      },
    }));
    let memos = new MemoSet();
    for (const memo of counted) memos = memos.with([keep(memo)]);
    for (const memo of counted) memos = memos.with([drop(memo)]);
    expect(memos.size).toBe(0);
    expect(named).toBe(2 * many.length);
  });
});
