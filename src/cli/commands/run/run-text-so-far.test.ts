import { expect, test } from "vitest";
import type { Outcome } from "../../../core/model/cancel.ts";
import { RunTextSoFar } from "./run-text-so-far.ts";

const runId = "run_1";
const turnId = "turn_1.1";
const outcome: Outcome = { kind: "completed" };
const delta = (text: string, from: number) => ({ type: "delta", runId, turnId, text, from }) as const;
const extended = (text: string) => ({ type: "turn.extended", runId, turnId, text, seq: 1, at: 0 }) as const;
const settled = (text?: string) =>
  ({
    ...({ type: "turn.settled", runId, turnId, outcome, next: "end", seq: 2, at: 0 } as const),
    ...(text === undefined ? {} : { text }),
  }) as const;

test("deltas are handed on, and the recorded text says nothing twice", () => {
  const said = new RunTextSoFar();
  const heard = [said.delta(delta("Hel", 0)), said.delta(delta("lo", 3)), said.extended(extended("Hello"))];
  expect([...heard, said.settled(settled("Hello there"))]).toEqual(["Hel", "lo", "", " there"]);
});

test("a delta that overlaps what was heard is trimmed, one that was heard is dropped", () => {
  const said = new RunTextSoFar();
  expect([said.delta(delta("abc", 0)), said.delta(delta("abcde", 0)), said.delta(delta("bc", 1))]).toEqual([
    ...["abc", "de", ""],
  ]);
});

test("what a lost delta would have said is made up for by the log", () => {
  const said = new RunTextSoFar();
  expect(said.delta(delta("one ", 0))).toBe("one ");
  expect(said.delta(delta("three", 8))).toBe("");
  expect(said.extended(extended("one two three"))).toBe("two three");
  expect(said.settled(settled())).toBe("");
});

test("a turn that replaces what it had said is heard to the end, on a line of its own", () => {
  const said = new RunTextSoFar();
  said.delta(delta("draft", 0));
  expect(said.settled(settled("final"))).toBe("\nfinal");
});

test("a turn of which nothing was heard is said as a whole", () => {
  expect(new RunTextSoFar().settled(settled("all of it"))).toBe("all of it");
});
