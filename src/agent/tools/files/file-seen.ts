// What a session has seen of the files it works on, and who is writing to which of them right now.
//
// Invariants
// 1. Of the writers to one file, each begins when the one before has ended: calls of one turn go on at once.
// 2. At most SEEN_FILES_MAX files are remembered. What is forgotten is only not checked any more.
import type { SessionId } from "../../../core/model/ids.ts";
import { SEEN_FILES_MAX } from "./file-limits.ts";
import type { FileVersion } from "./file-write.ts";

export class SeenFiles {
  readonly #versions = new Map<string, FileVersion>();
  readonly #writers = new Map<string, Promise<void>>();

  note(session: SessionId, path: string, version: FileVersion): void {
    const key = keyOf(session, path);
    // Put last, so that the first is the one that was not used for longest.
    this.#versions.delete(key);
    this.#versions.set(key, version);
    for (const oldest of this.#versions.keys()) {
      if (this.#versions.size <= SEEN_FILES_MAX) return;
      this.#versions.delete(oldest);
    }
  }

  /** Undefined: the session has not seen it, or that was long ago. */
  seen(session: SessionId, path: string): FileVersion | undefined {
    return this.#versions.get(keyOf(session, path));
  }

  /** Does it when nobody else writes to this file. */
  async alone<T>(path: string, write: () => Promise<T>): Promise<T> {
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
