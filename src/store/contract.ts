// What a store is, as tests. An adapter that passes this suite can carry Belay; nothing else is asked of it.
//
// Text: whatever JSON can carry survives in events, snapshots and outcomes, lone surrogates included. Titles and keys are
// columns, and databases hold well-formed text only: there a lone surrogate may come back as U+FFFD.
import { afterEach, beforeEach, describe, it } from "vitest";
import type { Store } from "../ports.ts";
import { growthContract } from "./contract-growth.ts";
import { leaseContract } from "./contract-leases.ts";
import { logContract } from "./contract-log.ts";
import { rowContract } from "./contract-rows.ts";
import { trimContract } from "./contract-trim.ts";

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

export function storeContract(
  name: string,
  open: () => Promise<Opened>,
  lacks: Readonly<Partial<Record<Capability, string>>> = {},
): void {
  describe(`${name} is a store`, () => {
    let current: Opened | undefined;
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.store.close();
    });

    const suite: Suite = {
      opened: () => {
        if (current === undefined) throw new Error("no store is open outside of a test");
        return current;
      },
      needs: (capability, title, test) => {
        const reason = lacks[capability];
        if (reason === undefined) it(title, test);
        else it.skip(`${title} (skipped: ${reason})`, test);
      },
    };
    logContract(suite);
    growthContract(suite);
    rowContract(suite);
    leaseContract(suite);
    trimContract(suite);
  });
}
