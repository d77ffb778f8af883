import { expect, test } from "vitest";
import type { Recorded } from "../../../core/model/event.ts";
import type { QuestionId } from "../../../core/model/ids.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { QUIET_MS } from "../../shared/terminal/held-terminal.ts";
import type { Screen } from "../../shared/terminal/screen.ts";
import { HandsOnView } from "./hands-on-view.ts";

function asking(codes?: () => string) {
  const clock = manualClock();
  const lines: string[] = [];
  const screen = { print: (_: string, text: string) => lines.push(text), status() {}, close() {}, terminal: true };
  const view = new HandsOnView(screen as unknown as Screen, clock, codes);
  const ask = (id: QuestionId): void => {
    const about = { kind: "question", text: "Go?" };
    view.show({ type: "question.asked", questionId: id, owner: "turn_1", about, seq: 1, at: 0 } as unknown as Recorded);
  };
  return { clock, lines, view, ask };
}

test("G36: a line answers a question only if it was begun after the question was on the screen", async () => {
  const { clock, lines, view, ask } = asking();
  const id = "qst_1" as QuestionId;
  expect(view.wasSeen(id, clock.elapsed())).toBe(false);
  await clock.advance(1_000);
  ask(id);
  expect(lines).toEqual([expect.stringContaining("Go?")]);
  const painted = clock.elapsed();
  const begun = [painted - 1, painted, painted + QUIET_MS - 1, painted + QUIET_MS];
  expect(begun.map((ms) => view.wasSeen(id, ms))).toEqual([false, false, false, true]);
});

test("G36: if the terminal does not report when a line was begun, an answer ends with its question's code", () => {
  const given = ["k7qx", "m3tz"];
  const { view, ask, lines } = asking(() => given.shift() ?? "");
  const [first, second] = ["ask_1", "ask_2"] as [QuestionId, QuestionId];
  expect(view.coded("answer blue k7qx")).toBeUndefined();
  ask(first);
  ask(second);
  expect(lines).toEqual([expect.stringContaining("k7qx"), expect.stringContaining("m3tz")]);
  expect(view.wasSeen(first, "unknown")).toBe(false);
  expect(view.coded("answer blue")).toBeUndefined();
  expect(view.coded("k7qx")).toBeUndefined();
  const coded = view.coded(" answer  blue K7QX ");
  expect(coded).toEqual({ text: "answer  blue", id: first });
  expect([first, second].map((id) => view.wasSeen(id, coded?.id ?? "unknown"))).toEqual([true, false]);
});

test("a line from a pipe may answer a question that was not shown yet", () => {
  const { view, ask, lines } = asking();
  const id = "qst_1" as QuestionId;
  expect(view.wasSeen(id, "pipe")).toBe(true);
  ask(id);
  expect(lines).toEqual(["Go? Type: answer TEXT"]);
});
