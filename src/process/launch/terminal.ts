// A terminal for a command that requests one. `script` makes it, because Node cannot.
import { execFile } from "node:child_process";
import { ControlError } from "../../core/errors.ts";
import { TERMINAL_CELLS_MAX } from "../../core/limits.ts";
import { childrenOf } from "../tree/proc.ts";
import { quote } from "./command-line.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** The timeout of `stty`. It takes a millisecond. */
const RESIZE_MS_MAX = 2_000;

export function checkSize({ columns, rows }: Size): void {
  for (const [name, value] of Object.entries({ columns, rows })) {
    if (Number.isInteger(value) && value >= 1 && value <= TERMINAL_CELLS_MAX) continue;
    throw new ControlError("invalid", `A terminal has from 1 to ${TERMINAL_CELLS_MAX} ${name}, not ${value}.`);
  }
}

/** Wraps the command in a terminal of this size. The typescript that `script` writes is discarded. */
export function inTerminal(
  argv: readonly [string, ...string[]],
  size: Size,
  script: string | undefined,
): readonly [string, ...string[]] {
  checkSize(size);
  if (script === undefined) {
    throw new ControlError("not_started", "A terminal was requested, but the program that makes one is missing.", {
      hint: "Install `script` (apt-get install bsdutils, or util-linux), or start it without a terminal.",
    });
  }
  const sized = `stty cols ${size.columns} rows ${size.rows} 2>/dev/null; exec ${quote(argv)}`;
  return [script, "-q", "-e", "-f", "-c", sized, "/dev/null"];
}

/** Resizes the terminal behind `maker`, the process that made it. */
export async function resizeTerminal(maker: number, size: Size, stty: string | undefined): Promise<void> {
  checkSize(size);
  const [inside] = childrenOf(maker);
  if (stty === undefined || inside === undefined) {
    throw new ControlError("closed", "The terminal of this process is gone, or cannot be reached.");
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // By the file descriptor of the process on it: its name may belong to another mount of /dev.
  const args = ["-F", `/proc/${inside}/fd/0`, "cols", String(size.columns), "rows", String(size.rows)];
  execFile(stty, args, { timeout: RESIZE_MS_MAX }, (error) => {
    if (error === null) resolve();
    else reject(new ControlError("closed", "The terminal of this process is gone.", { cause: error }));
  });
  return promise;
}
