// A sign of life on a terminal while somebody waits. On stderr, so that what is piped on stays clean.
//
// Invariants
// 1. Once it has stopped, nothing of it is on the screen, and nothing of it keeps the program alive.
import type { Clock } from "../../../ports/clock.ts";
import { plainLine } from "../format/plain-text.ts";
import { clip, coloured } from "../format/table.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const;
const FRAME_MS = 100;

/** What is over sooner than this needs no sign. */
const QUIET_MS = 300;

export interface SpinnerParts {
  readonly clock: Clock;
  readonly output: NodeJS.WriteStream;
}

/** Shows the text while the work goes on. */
export async function spinning<T>(text: string, work: Promise<T>, { clock, output }: SpinnerParts): Promise<T> {
  if (coloured(output) === "without") return work;
  const began = clock.elapsed();
  let shown = false;
  let dispose = (): void => {};
  const draw = (): void => {
    const elapsedMs = clock.elapsed() - began;
    const frame = FRAMES[Math.floor(elapsedMs / FRAME_MS) % FRAMES.length] ?? "";
    const line = clip(`${frame} ${plainLine(text)} (${Math.floor(elapsedMs / 1_000)} s)`, (output.columns || 80) - 1);
    output.write(`\r\u001b[2K${line}`);
    shown = true;
    dispose = clock.after(FRAME_MS, draw, "idle");
  };
  dispose = clock.after(QUIET_MS, draw, "idle");
  try {
    return await work;
  } finally {
    dispose();
    if (shown) output.write("\r\u001b[2K");
  }
}
