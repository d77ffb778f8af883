// The Belays that this process has open, by their file: opened again with the same options, it is the same one.
import { resolve } from "node:path";

interface Opened<A> {
  readonly options: object;
  readonly opening: Promise<A>;
}

export class OpenStores<A> {
  readonly #byFile = new Map<string, Opened<A>>();

  /** `open` rejects if the file is in use, also by this process: so it is, with other options. */
  async open(file: string, options: object, open: (closed: () => void) => Promise<A>): Promise<A> {
    const found = this.#byFile.get(resolve(file));
    if (found !== undefined && agree(found.options, options)) return found.opening;
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

/** The same values under the same names. A function that is written again is another one. */
function agree(one: object, other: object): boolean {
  const [these, those] = [Object.entries(one), new Map<string, unknown>(Object.entries(other))];
  return these.length === those.size && these.every(([name, value]) => Object.is(those.get(name), value));
}
