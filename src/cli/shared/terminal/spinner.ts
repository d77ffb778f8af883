// A progress indicator on a terminal. It is on stderr, so that piped stdout stays clean.
//
// Invariants
// 1. Once it has stopped, it is erased from the screen, and no timer of it keeps the program alive.
import type { Clock } from "../../../ports/clock.ts";
import { plainLine } from "../format/plain-text.ts";
import { clip, coloured } from "../format/table.ts";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const;
const FRAME_MS = 100;

/** Work that is faster than this shows no spinner. */
const QUIET_MS = 300;

export interface SpinnerParts {
  readonly clock: Clock;
  readonly output: NodeJS.WriteStream;
}

/** Shows the text until the work settles. */
export async function spinning<T>(text: string, work: Promise<T>, { clock, output }: SpinnerParts): Promise<T> {
  if (coloured(output) === "without") return work;
  const began = clock.elapsed();
  let shown = false;
  let cancelTimer = (): void => {};
  const draw = (): void => {
    const elapsedMs = clock.elapsed() - began;
    const frame = FRAMES[Math.floor(elapsedMs / FRAME_MS) % FRAMES.length] ?? "";
    const line = clip(`${frame} ${plainLine(text)} (${Math.floor(elapsedMs / 1_000)} s)`, (output.columns || 80) - 1);
    output.write(`\r\u001b[2K${line}`);
    shown = true;
    cancelTimer = clock.after(FRAME_MS, draw, "idle");
  };
  cancelTimer = clock.after(QUIET_MS, draw, "idle");
  try {
    return await work;
  } finally {
    cancelTimer();
    if (shown) output.write("\r\u001b[2K");
  }
}
