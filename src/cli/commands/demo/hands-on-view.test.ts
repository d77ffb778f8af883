import { expect, test } from "vitest";
import type { Recorded } from "../../../core/model/event.ts";
import type { QuestionId } from "../../../core/model/ids.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { QUIET_MS } from "../../shared/terminal/held-terminal.ts";
import type { Screen } from "../../shared/terminal/screen.ts";
import { HandsOnView } from "./hands-on-view.ts";

test("G36: a line answers a question only if it was begun once the question had been on the screen", async () => {
  const clock = manualClock();
  const lines: string[] = [];
  const screen = { say: (_: string, text: string) => lines.push(text), status() {}, close() {}, terminal: true };
  const view = new HandsOnView(screen as unknown as Screen, clock);
  const id = "qst_1" as QuestionId;
  const asked = { type: "question.asked", questionId: id, owner: "turn_1", about: { kind: "question", text: "Go?" } };
  expect(view.wasSeen(id, clock.elapsed())).toBe(false);
  await clock.advance(1_000);
  view.show({ ...asked, seq: 1, at: 0 } as unknown as Recorded);
  expect(lines).toEqual([expect.stringContaining("Go?")]);
  const painted = clock.elapsed();
  const begun = [painted - 1, painted, painted + QUIET_MS - 1, painted + QUIET_MS];
  expect(begun.map((ms) => view.wasSeen(id, ms))).toEqual([false, false, false, true]);
});
