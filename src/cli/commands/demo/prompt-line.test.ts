import { PassThrough } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { manualClock } from "../../../testing/manual-clock.ts";
import { type Begun, PromptLine } from "./prompt-line.ts";

// Node reads a dumb terminal line by line.
beforeEach(() => {
  vi.stubEnv("TERM", "xterm");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Records the lines of a terminal, each with the time at which its first key was read. */
function terminal(isTTY: { readonly input: boolean; readonly output: boolean } = { input: true, output: true }) {
  const clock = manualClock();
  const input = Object.assign(new PassThrough(), { isTTY: isTTY.input, setRawMode: () => {} });
  const output = Object.assign(new PassThrough(), { isTTY: isTTY.output, columns: 80 });
  output.resume();
  const read: (readonly [string, Begun])[] = [];
  const line = new PromptLine(input as unknown as ReadStream, output as unknown as WriteStream, clock, {
    onLine: (text, begun) => read.push([text, begun]),
    onInterrupt: () => {},
    onEnd: () => {},
  });
  const press = async (keys: string): Promise<void> => {
    input.write(keys);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, read, press, line };
}

test("G36: every line of a paste counts as begun when the paste was read", async () => {
  const { clock, read, press, line } = terminal();
  clock.tick(100);
  await press("hello\ry\ry\r");
  expect(read).toEqual([
    ["hello", 100],
    ["y", 100],
    ["y", 100],
  ]);
  line.close();
});

test("G36: a line begins with its first key, even if that arrived together with the previous line", async () => {
  const { clock, read, press, line } = terminal();
  clock.tick(100);
  await press("hello\ry");
  clock.tick(900);
  await press("\r");
  clock.tick(50);
  await press("n\r");
  expect(read).toEqual([
    ["hello", 100],
    ["y", 100],
    ["n", 1_050],
  ]);
  line.close();
});

test.each([
  ["a dumb terminal", "dumb", { input: true, output: true }, "unknown"],
  ["a terminal whose output goes to a file", "xterm", { input: true, output: false }, "unknown"],
  ["a pipe", "xterm", { input: false, output: false }, "pipe"],
] as const)("G36: %s does not report when a line was begun", async (_, term, isTTY, begun) => {
  vi.stubEnv("TERM", term);
  const { read, press, line } = terminal(isTTY);
  await press("yes\n");
  expect(read).toEqual([["yes", begun]]);
  line.close();
});
