// Walks a directory tree of the workspace in sorted order, without following links, within limits.
import { opendir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { WALK_DEPTH_MAX, WALK_ENTRIES_MAX } from "./file-limits.ts";
import { type FilePath, holdDirectory, isHidden } from "./file-path.ts";

export interface WalkEntry {
  readonly kind: "file" | "directory" | "link" | "other";
  /** The real path. */
  readonly path: string;
  /** Relative to the workspace, with `/`. */
  readonly name: string;
}

export interface WalkOptions {
  readonly depth: "one" | "all";
  readonly signal: AbortSignal;
}

/** What a walk has left out. Filled during the walk. */
export interface LeftOut {
  /** Names of directories that contain no sources of the project. */
  readonly skipped: Set<string>;
  /** Directories that could not be read. */
  closed: number;
  /** A limit was reached, and the rest was not visited. */
  cut: boolean;
}

export const nothingLeftOut = (): LeftOut => ({ skipped: new Set(), closed: 0, cut: false });

/** Not entered, unless the walk starts in one of them. */
const SKIPPED: ReadonlySet<string> = new Set([".git", ".hg", ".svn", "node_modules"]);

export async function* walk(from: FilePath, options: WalkOptions, left: LeftOut): AsyncGenerator<WalkEntry> {
  const todo = [{ path: from.path, depth: 1 }];
  let room = WALK_ENTRIES_MAX;
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    options.signal.throwIfAborted();
    const entries = await entriesOf(from.root, next.path, room).catch((error: unknown) => {
      // The directory that the model named reports its error; below it errors are only counted.
      if (next.path === from.path) throw error;
      left.closed += 1;
      return { list: [], cut: false };
    });
    room -= entries.list.length;
    left.cut ||= entries.cut;
    const inner: typeof todo = [];
    for (const entry of entries.list) {
      if (isHidden(from.hidden, entry.path)) continue;
      yield entry;
      if (entry.kind !== "directory" || options.depth === "one") continue;
      const own = entry.name.split("/").at(-1) ?? "";
      if (SKIPPED.has(own)) left.skipped.add(own);
      else if (next.depth >= WALK_DEPTH_MAX) left.cut = true;
      else inner.push({ path: entry.path, depth: next.depth + 1 });
    }
    todo.push(...inner.reverse());
  }
}

async function entriesOf(
  home: string,
  path: string,
  max: number,
): Promise<{ readonly list: readonly WalkEntry[]; readonly cut: boolean }> {
  await using held = await holdDirectory(home, path);
  const list: WalkEntry[] = [];
  for await (const one of await opendir(held.at())) {
    if (list.length >= max) return { list: sorted(list), cut: true };
    const inner = join(path, one.name);
    list.push({ kind: kindOf(one), path: inner, name: relative(home, inner).replaceAll(sep, "/") });
  }
  return { list: sorted(list), cut: false };
}

const sorted = (list: readonly WalkEntry[]): readonly WalkEntry[] =>
  list.toSorted((one, other) => (one.name < other.name ? -1 : 1));

interface Kinds {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

function kindOf(one: Kinds): WalkEntry["kind"] {
  if (one.isFile()) return "file";
  if (one.isDirectory()) return "directory";
  return one.isSymbolicLink() ? "link" : "other";
}
