// The parameters of each part of the store suite.
import type { Store } from "../../ports/store.ts";

/** A new, empty store, and a function that lets time pass for its leases. */
export interface Opened {
  readonly store: Store;
  readonly pass: (ms: number) => void | Promise<void>;
}

export interface Suite {
  readonly opened: () => Opened;
}
