// Known mistakes that a soak must find, as changes of the server's source; and the same server with small caches.
import { type Bug, bug, type Edit } from "../../sim/bugs/bug.ts";

/** A shell whose first child ends while it has become a program that waits for nobody. */
const NEVER_REAPED = `import("node:child_process").then(({ spawn }) =>
  spawn("sh", ["-c", "true & exec sleep 300"], { stdio: "ignore" }));`;

export const MISTAKES: readonly Bug[] = [
  bug(
    "leak-listener",
    "Whoever has followed a session stays on its list, which is kept for ever (K10).",
    "src/engine/follow.ts",
    "    feeds.close(session);\n",
    "",
  ),
  bug(
    "leak-fd",
    "The file with the output of a process stays open when the process has ended.",
    "src/process/output/kept-file.ts",
    "      await sink?.close();\n",
    "      (globalThis.neverClosed ??= []).push(sink);\n",
  ),
  bug(
    "leak-timer",
    "A timer that is not needed any more is left to fire.",
    "src/engine/system-clock.ts",
    "return () => clearTimeout(timer);",
    "return () => {};",
  ),
  bug(
    "zombie",
    "A helper of a tree ends, and whoever started it takes no note of that.",
    "src/process/live-child.ts",
    "    started.control.write(GO);\n",
    `    started.control.write(GO);\n    ${NEVER_REAPED}\n`,
  ),
];

/**
 * What is kept for speed, and is bounded by number, as small as it can be: so that a short soak fills it before it
 * begins to compare. What still grows then is bounded by nothing. The store has its own in its threads: heads of 65,536
 * sessions, and 16 MiB of pages for each of two.
 */
export const SMALL_CACHES: readonly Edit[] = [
  smaller("src/core/limits.ts", "IDLE_LANES_MAX = 1_024", "IDLE_LANES_MAX = 4"),
  smaller("src/core/limits.ts", "CHRONICLE_EVENTS_MAX = 8_192", "CHRONICLE_EVENTS_MAX = 64"),
  smaller("src/store/sqlite/limits.ts", "HEADS_MAX = 65_536", "HEADS_MAX = 16"),
  smaller("src/store/sqlite/limits.ts", "CACHE_KIB = 16 * 1024", "CACHE_KIB = 512"),
];

/** What processes have said is kept of fewer of them: a soak makes more of it in minutes than people do in weeks. */
export const SMALL_SHELF: readonly Edit[] = [
  { file: "src/process/output-shelf.ts", find: "OUTPUTS_MAX = 1_000", replace: "OUTPUTS_MAX = 10" },
];

function smaller(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}
