// What a run shows: to a terminal in a margin and harmless, to a file as it was said, and nothing below a question.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { Delta } from "../../../core/model/delta.ts";
import type { RunId } from "../../../core/model/ids.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { RunView } from "./run-view.ts";

const RUN = "run_1" as RunId;

function view({ isTTY }: { readonly isTTY: boolean }) {
  const paper = Object.assign(new PassThrough(), { isTTY, columns: 40 });
  const shown = new RunView({ out: paper, err: paper, form: "text", options: "", clock: manualClock() });
  const say = (text: string): void =>
    shown.show({ type: "delta", kind: "text", turnId: "turn_1.1", runId: RUN, text } as unknown as Delta, RUN);
  return { shown, say, paper: () => String(paper.read() ?? "") };
}

const WILD = "\ufeffa\u200bb\u202ec\fd\u2028e\r\n\u001b[31mred\u001b[0m";

test("a file or a pipe gets every character that the model wrote", () => {
  const { say, paper } = view({ isTTY: false });
  say(WILD);
  expect(paper()).toBe(WILD);
});

test("a terminal gets none that could steer it, and all of it in a margin", () => {
  const { say, paper, shown } = view({ isTTY: true });
  say(WILD);
  shown.endLine();
  expect(paper()).toBe("│ abcde\n│ red\n");
});

test("nothing is printed below a question that is on the screen; it comes when that is over, in its order", () => {
  const { say, paper, shown } = view({ isTTY: true });
  say("before");
  shown.hold();
  expect(paper()).toBe("│ before\n");
  say("Type abcd to allow it: ");
  shown.note("a note");
  expect(paper()).toBe("");
  shown.goOn();
  expect(paper()).toMatch(/^│ Type abcd to allow it: \n.*· a note\n/);
});
