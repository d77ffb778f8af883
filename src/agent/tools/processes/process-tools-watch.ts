// Looks at a process on behalf of the call that waits for it: people see how far it is, and if the call is stopped,
// what it had said by then is its result.
//
// Invariants
// 1. A look costs a bounded piece of the output, however much there is; and looks come ever less often.
// 2. Whatever happens to a look, the call goes on: it is a courtesy.
import type { LiveCall } from "../../../ports/agent.ts";
import type { ProcessHandle } from "../../../ports/spawner.ts";
import { COMMAND_NOTE_CHARS, COMMAND_NOTE_FIRST_MS, COMMAND_NOTE_LAST_MS } from "../../limits.ts";
import { saidBy } from "./process-tools-report.ts";

export interface WatchOptions {
  /** Undefined: not yet. A command that is run has an id only once it is recorded. */
  readonly find: () => Promise<ProcessHandle | undefined>;
  /** How much of its output becomes the result of a call that is stopped. */
  readonly bytesMax: number;
}

export interface Watching {
  /** Looks now. Never rejects. */
  look(): Promise<void>;
  end(): void;
}

/** Looks until it is ended, and once when the call is stopped. */
export function watch(call: LiveCall, { find, bytesMax }: WatchOptions): Watching {
  const { clock, signal } = call;
  let over = false;
  let found: ProcessHandle | undefined;
  let dispose = (): void => {};
  const see = async (): Promise<void> => {
    // Kept: a process that has ended is not found among those that go on.
    found ??= await find();
    const output = await found?.output();
    if (found === undefined || output === undefined) return;
    const said = await saidBy(output, found.id, bytesMax);
    if (over) return;
    call.partial(said);
    const { counts } = output;
    const { head, tail } = output.excerpt({ bytesMax: 2 * COMMAND_NOTE_CHARS, plain: true });
    // Of what does not fit only the end: its beginning would read as if nothing were missing between the two.
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
