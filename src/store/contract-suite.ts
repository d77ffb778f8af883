// What each part of the contract is given to test.
import type { Store } from "../ports.ts";

/** A fresh, empty store, and the means to let time pass for its leases. */
export interface Opened {
  readonly store: Store;
  readonly pass: (ms: number) => void | Promise<void>;
}

/** What an adapter may lack, if it can say why in a sentence. */
export type Capability = "expiry";

export interface Suite {
  readonly opened: () => Opened;
  /** A test that an adapter may be excused from. */
  readonly needs: (capability: Capability, title: string, test: () => Promise<void>) => void;
}
