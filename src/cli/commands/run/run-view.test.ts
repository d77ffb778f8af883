// RunView sanitises text for a terminal, writes exact text to a file, and prints nothing below a question.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { Delta } from "../../../core/model/delta.ts";
import type { RunId } from "../../../core/model/ids.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { RunView } from "./run-view.ts";

const RUN = "run_1" as RunId;

function view({ isTTY }: { readonly isTTY: boolean }) {
  const output = Object.assign(new PassThrough(), { isTTY, columns: 40 });
  const shown = new RunView({ out: output, err: output, form: "text", options: "", clock: manualClock() });
  const write = (text: string): void =>
    shown.show({ type: "delta", kind: "text", turnId: "turn_1.1", runId: RUN, text } as unknown as Delta, RUN);
  return { shown, write, output: () => String(output.read() ?? "") };
}

const WILD = "\ufeffa\u200bb\u202ec\fd\u2028e\r\n\u001b[31mred\u001b[0m";

test("a file or a pipe gets every character that the model wrote", () => {
  const { write, output } = view({ isTTY: false });
  write(WILD);
  expect(output()).toBe(WILD);
});

test("a terminal gets sanitised text, in a margin", () => {
  const { write, output, shown } = view({ isTTY: true });
  write(WILD);
  shown.endLine();
  expect(output()).toBe("│ abcde\n│ red\n");
});

test("no line is printed below an open question; held output follows afterwards, in order", () => {
  const { write, output, shown } = view({ isTTY: true });
  write("before");
  shown.hold();
  expect(output()).toBe("│ before\n");
  write("Type abcd to allow it: ");
  shown.note("a note");
  expect(output()).toBe("");
  shown.release();
  expect(output()).toMatch(/^│ Type abcd to allow it: \n.*· a note\n/);
});
