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

test("deltas are returned as they arrive, and recorded text is not repeated", () => {
  const progress = new RunTextSoFar();
  const texts = [progress.delta(delta("Hel", 0)), progress.delta(delta("lo", 3)), progress.extended(extended("Hello"))];
  expect([...texts, progress.settled(settled("Hello there"))]).toEqual(["Hel", "lo", "", " there"]);
});

test("a delta that overlaps earlier text is trimmed, and a repeated one is dropped", () => {
  const progress = new RunTextSoFar();
  expect([progress.delta(delta("abc", 0)), progress.delta(delta("abcde", 0)), progress.delta(delta("bc", 1))]).toEqual([
    ...["abc", "de", ""],
  ]);
});

test("the recorded text replaces a lost delta", () => {
  const progress = new RunTextSoFar();
  expect(progress.delta(delta("one ", 0))).toBe("one ");
  expect(progress.delta(delta("three", 8))).toBe("");
  expect(progress.extended(extended("one two three"))).toBe("two three");
  expect(progress.settled(settled())).toBe("");
});

test("a turn that replaces its text is returned as a whole, on a new line", () => {
  const progress = new RunTextSoFar();
  progress.delta(delta("draft", 0));
  expect(progress.settled(settled("final"))).toBe("\nfinal");
});

test("a turn without deltas is returned as a whole", () => {
  expect(new RunTextSoFar().settled(settled("all of it"))).toBe("all of it");
});
