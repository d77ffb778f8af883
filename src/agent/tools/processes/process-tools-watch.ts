// Polls a process for the call that waits for it: reports progress, and keeps the output so far as the partial result
// of a call that is stopped.
//
// Invariants
// 1. A poll reads a bounded part of the output, and polls become less frequent.
// 2. A failed poll does not affect the call.
import type { LiveCall } from "../../../ports/agent.ts";
import type { ProcessHandle } from "../../../ports/spawner.ts";
import { COMMAND_NOTE_CHARS, COMMAND_NOTE_FIRST_MS, COMMAND_NOTE_LAST_MS } from "../../limits.ts";
import { outputReport } from "./process-tools-report.ts";

export interface WatchOptions {
  /** Undefined until the process is recorded and has an id. */
  readonly find: () => Promise<ProcessHandle | undefined>;
  /** How much of its output becomes the result of a call that is stopped. */
  readonly bytesMax: number;
}

export interface Watching {
  /** Polls now. Never rejects. */
  look(): Promise<void>;
  end(): void;
}

/** Polls until `end`, and once when the call is stopped. */
export function watch(call: LiveCall, { find, bytesMax }: WatchOptions): Watching {
  const { clock, signal } = call;
  let over = false;
  let found: ProcessHandle | undefined;
  let dispose = (): void => {};
  const see = async (): Promise<void> => {
    // Kept, because a process that has ended is not listed any more.
    found ??= await find();
    const output = await found?.output();
    if (found === undefined || output === undefined) return;
    const report = await outputReport(output, found.id, bytesMax);
    if (over) return;
    call.partial(report);
    const { counts } = output;
    const { head, tail } = output.excerpt({ bytesMax: 2 * COMMAND_NOTE_CHARS, plain: true });
    // Only the end, if it does not all fit: the beginning would read as if nothing were missing in between.
    const last = (tail === "" ? head : tail).slice(-COMMAND_NOTE_CHARS).toWellFormed();
    call.progress({ processId: found.id, bytes: counts.bytes.all, lines: counts.lines, tail: last });
  };
  const look = (): Promise<void> => see().catch(() => {});
  const onAbort = (): void => void look();
  const arm = (pauseMs: number): void => {
    const next = (): void => {
      void look();
      arm(Math.min(2 * pauseMs, COMMAND_NOTE_LAST_MS));
    };
    dispose = clock.after(pauseMs, next, "idle");
  };
  arm(COMMAND_NOTE_FIRST_MS);
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    look,
    end: () => {
      over = true;
      dispose();
      signal.removeEventListener("abort", onAbort);
    },
  };
}
