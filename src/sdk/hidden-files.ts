// What no command of this Belay sees: the files of its store, what the host has named, and what a server in front of it
// adds when it is started.
import { accessSync, closeSync, constants, existsSync, openSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { STORE_ENDINGS } from "../core/own-paths.ts";
import { linksOf } from "../http/auth/private-directory.ts";

/**
 * Files that the store makes when it needs them. A name that is free cannot be covered, and what a command puts there
 * would be taken for the store's own. So each is there, empty, before a command starts: an empty one has no effect.
 */
const KEPT_FREE = ["-journal", ".mark", ".reserve"] as const;

export class HiddenFiles {
  /** Undefined: the store is not a file. */
  readonly #store: string | undefined;
  readonly #paths: string[];
  /** As the host has named it. */
  readonly #named: string | undefined;
  readonly #made: string[] = [];

  constructor(store: unknown, paths: readonly string[]) {
    this.#named = typeof store === "string" && store !== ":memory:" ? resolve(store) : undefined;
    this.#store = this.#named === undefined ? undefined : canonical(this.#named);
    this.#paths = [...paths];
  }

  /** From the next process on. */
  add(paths: readonly string[]): void {
    this.#paths.push(...paths.filter((path) => !this.#paths.includes(path)));
  }

  /** As of now: a file that was made or replaced since is in it. */
  list(): readonly string[] {
    const store = this.#store;
    if (store === undefined) return this.#paths;
    for (const ending of KEPT_FREE) this.#occupy(`${store}${ending}`);
    return [...this.#paths, ...STORE_ENDINGS.map((ending) => `${store}${ending}`)];
  }

  /** What an operator should know of a workspace in which some of it lies. */
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
   * What an operator should know of the links on the way to these paths. A directory above a hidden path cannot be
   * renamed by a command, because it is a mount point; a link cannot be one.
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

  /** Removes the empty files. One that cannot be removed, on a disk that can only be read, stays: it has no effect. */
  close(): void {
    for (const path of this.#made.splice(0)) {
      try {
        if (statSync(path, { throwIfNoEntry: false })?.size === 0) rmSync(path, { force: true });
      } catch {
        // See above.
      }
    }
  }

  #occupy(path: string): void {
    try {
      closeSync(openSync(path, "wx", 0o600));
      this.#made.push(path);
    } catch {
      // It is there; or nothing can be made there, by a command neither.
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

/** The name beside which the store puts its files, whatever link it is opened by. */
function canonical(store: string): string {
  const path = resolve(store);
  if (existsSync(path)) return realpathSync(path);
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path;
}
