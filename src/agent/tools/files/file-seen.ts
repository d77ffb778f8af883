// The file versions that each session has seen, and a lock per file for writers.
//
// Invariants
// 1. Writes to one file are serialised, because the calls of a turn run concurrently.
// 2. At most SEEN_FILES_MAX versions are kept, LRU. A forgotten file is only no longer checked for changes.
import type { SessionId } from "../../../core/model/ids.ts";
import { SEEN_FILES_MAX } from "./file-limits.ts";
import type { FileVersion } from "./file-write.ts";

export class SeenFiles {
  readonly #versions = new Map<string, FileVersion>();
  readonly #writers = new Map<string, Promise<void>>();

  note(session: SessionId, path: string, version: FileVersion): void {
    const key = keyOf(session, path);
    // Inserted last, so that the first key is the least recently used.
    this.#versions.delete(key);
    this.#versions.set(key, version);
    for (const oldest of this.#versions.keys()) {
      if (this.#versions.size <= SEEN_FILES_MAX) return;
      this.#versions.delete(oldest);
    }
  }

  /** Undefined if the session has not read the file, or not recently. */
  seen(session: SessionId, path: string): FileVersion | undefined {
    return this.#versions.get(keyOf(session, path));
  }

  /** Runs `write` under the file's lock. */
  async exclusively<T>(path: string, write: () => Promise<T>): Promise<T> {
    const before = this.#writers.get(path);
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#writers.set(path, over);
    try {
      await before;
      return await write();
    } finally {
      end();
      if (this.#writers.get(path) === over) this.#writers.delete(path);
    }
  }
}

const keyOf = (session: SessionId, path: string): string => `${session} ${path}`;
