// Known mistakes that a soak must find, as edits of the server's source; and the same server with small caches.
import { type Mistake, mistake } from "../mistakes/mistake.ts";
import { inline } from "../mistakes/place.ts";

/** Where a mistake keeps the files that it does not close. */
type Leaking = { neverClosed?: unknown[] };

export const MISTAKES: readonly Mistake[] = [
  mistake(
    "leak-listener",
    "A follower that has left a session stays on its list, which is never cleared (K10).",
    (at) => at.remove(),
  ),
  mistake("leak-fd", "The file with the output of a process stays open when the process has ended.", (at) => {
    const keep = (sink: unknown): void => {
      const leaking = globalThis as Leaking;
      leaking.neverClosed ??= [];
      leaking.neverClosed.push(sink);
    };
    return at.become(`${inline(keep, at.value().value().target())};`);
  }),
  mistake("leak-timer", "A timer that is not needed any more is left to fire.", (at) => at.value().body().become("{}")),
  mistake("zombie", "A helper of a tree ends, and its parent never waits for it.", (at) =>
    // A shell whose first child ends after the shell has become a program that waits for no child.
    at.after(
      ` ${inline(() => {
        const { spawn } = process.getBuiltinModule("node:child_process");
        spawn("sh", ["-c", "true & exec sleep 300"], { stdio: "ignore" });
      })};`,
    ),
  ),
];

/**
 * Caches that are bounded by number, as small as they can be: so that a short soak fills them before it begins to
 * compare. What still grows then is bounded by nothing. The store has its own in its threads: heads of 65,536 sessions,
 * and 16 MiB of pages for each of two.
 */
export const SMALL_CACHES: Mistake = mistake("small-caches", "The caches of the engine and of the store are small.", {
  lanes: (at) => at.value().become("4"),
  chronicle: (at) => at.value().become("64"),
  heads: (at) => at.value().become("16"),
  pages: (at) => at.value().become("512"),
});

/** The output of fewer processes is kept: a soak makes more of it in minutes than people do in weeks. */
export const SMALL_SHELF: Mistake = mistake("small-shelf", "The output of few processes is kept.", (at) =>
  at.value().become("10"),
);
