// Opens the store that `openBelay()` was given by name, and keeps track of the files that are open.
import { resolve } from "node:path";
import type { Clock } from "../ports/clock.ts";
import type { Store } from "../ports/store.ts";

/** Loaded on demand: a program that brings a store loads neither of these. */
export async function openStore(place: string, clock: Clock): Promise<Store> {
  if (place === ":memory:") {
    const { MemoryStore } = await import("../store/memory/memory-store.ts");
    return new MemoryStore({ clock });
  }
  const { openSqliteStore } = await import("../store/sqlite/sqlite-store.ts");
  return openSqliteStore({ file: place });
}

interface Opened<A> {
  readonly options: object;
  readonly opening: Promise<A>;
}

/** The Belays that this process has open, by file. Opening one again with the same options returns the same Belay. */
export class OpenStores<A> {
  readonly #byFile = new Map<string, Opened<A>>();

  /** `open` rejects if the file is in use, including by this process with other options. */
  async open(file: string, options: object, open: (closed: () => void) => Promise<A>): Promise<A> {
    const found = this.#byFile.get(resolve(file));
    if (found !== undefined && sameOptions(found.options, options)) return found.opening;
    let name: string | undefined;
    const closed = (): void => {
      if (name !== undefined && this.#byFile.get(name) === entry) this.#byFile.delete(name);
    };
    const entry: Opened<A> = { options, opening: open(closed) };
    if (found === undefined) {
      name = resolve(file);
      this.#byFile.set(name, entry);
      entry.opening.catch(closed);
    }
    return entry.opening;
  }
}

/** Compares values by identity, so a function that was created again is a different option. */
function sameOptions(one: object, other: object): boolean {
  const [these, those] = [Object.entries(one), new Map<string, unknown>(Object.entries(other))];
  return these.length === those.size && these.every(([name, value]) => Object.is(those.get(name), value));
}
