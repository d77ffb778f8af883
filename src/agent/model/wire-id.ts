// What calls are named in a request. Providers ask that a name be short, plain and used once, and do not keep to it.
import type { TranscriptCall } from "../../core/read/transcript.ts";

const PLAIN = /^[A-Za-z0-9_-]{1,64}$/;

/** Gives each call a name of its own. The same calls in the same order get the same names. */
export class WireIds {
  readonly #used: Set<string>;
  #made = 0;

  /** `used`: names the provider has given to calls of its own. */
  constructor(used: Iterable<string> = []) {
    this.#used = new Set(used);
  }

  /** The provider's own name for it, if that will do. */
  of({ provider }: Pick<TranscriptCall, "provider">): string {
    let id = provider?.id ?? "";
    // @fault call-name-used-twice
    while (!PLAIN.test(id) || this.#used.has(id)) {
      this.#made += 1;
      id = `call_${this.#made}`;
    }
    this.#used.add(id);
    return id;
  }
}
