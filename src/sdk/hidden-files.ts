// Paths that no command of this Belay can see: the files of its store, those the host names, and those a server adds
// when it starts.
import { accessSync, closeSync, constants, existsSync, openSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { STORE_ENDINGS } from "../core/own-paths.ts";
import { linksOf } from "../http/auth/private-directory.ts";

/**
 * Files that the store creates on demand. A missing path cannot be covered by a mount, and the store would take a
 * file that a command creates there for its own. So each exists, empty, before a command starts: an empty one has no
 * effect.
 */
const ON_DEMAND = ["-journal", ".mark", ".reserve"] as const;

export class HiddenFiles {
  /** Undefined: the store is not a file. */
  readonly #store: string | undefined;
  readonly #paths: string[];
  /** The path as the host wrote it. */
  readonly #named: string | undefined;
  readonly #made: string[] = [];

  constructor(store: unknown, paths: readonly string[]) {
    this.#named = typeof store === "string" && store !== ":memory:" ? resolve(store) : undefined;
    this.#store = this.#named === undefined ? undefined : canonical(this.#named);
    this.#paths = [...paths];
  }

  /** Applies to processes started from now on. */
  add(paths: readonly string[]): void {
    this.#paths.push(...paths.filter((path) => !this.#paths.includes(path)));
  }

  /** The current paths, including files that were created or replaced since. */
  list(): readonly string[] {
    const store = this.#store;
    if (store === undefined) return this.#paths;
    for (const ending of ON_DEMAND) this.#create(`${store}${ending}`);
    return [...this.#paths, ...STORE_ENDINGS.map((ending) => `${store}${ending}`)];
  }

  /** A warning for operators if the store is inside the workspace. */
  noticeFor(workspace: string): string | undefined {
    if (this.#store === undefined || !existsSync(workspace)) return undefined;
    const store = this.#store;
    if (dirname(store) !== realpathSync(workspace)) return undefined;
    return (
      `The store ${store} lies in the workspace, where commands find an empty file. Keep it in a directory of its ` +
      "own, outside of the workspace."
    );
  }

  /**
   * A warning for operators about symbolic links on the way to these paths. A command cannot rename a directory above
   * a hidden path, because that is a mount point; it can replace a link.
   */
  linkNotice(): string | undefined {
    const paths = [...(this.#named === undefined ? [] : [this.#named]), ...this.#paths].filter(existsOrParent);
    for (const path of paths) {
      const link = linksOf(path).find((one) => isWritable(dirname(one)));
      if (link === undefined) continue;
      return (
        `Commands can replace the link ${link}, which leads to ${path}: where you look for your server, a command ` +
        `could then answer. Name the place itself: ${canonical(path)}`
      );
    }
    return undefined;
  }

  /** Removes the empty files. One that cannot be removed, on a read-only file system, has no effect. */
  close(): void {
    for (const path of this.#made.splice(0)) {
      try {
        if (statSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path, { force: true });
      } catch {
        // A leftover file has no effect.
      }
    }
  }

  #create(path: string): void {
    try {
      closeSync(openSync(path, "wx", 0o600));
      this.#made.push(path);
    } catch {
      // It exists already; or it cannot be created, by a command either.
    }
  }
}

const existsOrParent = (path: string): boolean => existsSync(path) || existsSync(dirname(path));

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path beside which the store creates its files, even if it is opened through a symbolic link. */
function canonical(store: string): string {
  const path = resolve(store);
  if (existsSync(path)) return realpathSync(path);
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path;
}
