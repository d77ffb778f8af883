// The store that `openBelay()` is given a name for.
import type { Clock } from "../ports/clock.ts";
import type { Store } from "../ports/store.ts";

/** Loaded on demand: a program that brings its store does not load ours. */
export async function openStore(place: string, clock: Clock): Promise<Store> {
  if (place === ":memory:") {
    const { MemoryStore } = await import("../store/memory/memory-store.ts");
    return new MemoryStore({ clock });
  }
  const { openSqliteStore } = await import("../store/sqlite/sqlite-store.ts");
  return openSqliteStore({ file: place });
}
