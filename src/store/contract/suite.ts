// What each part of the contract is given to test.
import type { Store } from "../../ports/store.ts";

/** A fresh, empty store, and the means to let time pass for its leases. */
export interface Opened {
  readonly store: Store;
  readonly pass: (ms: number) => void | Promise<void>;
}

export interface Suite {
  readonly opened: () => Opened;
}
