// The contract of a store, as tests. A store that passes this suite works with Belay.
//
// Text: everything that JSON can carry is preserved in events, snapshots and outcomes, including lone surrogates.
// Titles and keys are columns, and databases store only well-formed text: there a lone surrogate may be read back as
// U+FFFD.
import { afterEach, beforeEach, describe } from "vitest";
import { growthContract } from "./growth.ts";
import { leaseContract } from "./leases.ts";
import { logContract } from "./log.ts";
import { memoContract } from "./memos.ts";
import { processContract } from "./processes.ts";
import { rowContract } from "./rows.ts";
import type { Opened, Suite } from "./suite.ts";
import { trimContract } from "./trim.ts";
import { upkeepContract } from "./upkeep.ts";

export function storeContract(name: string, open: () => Promise<Opened>): void {
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
    };
    logContract(suite);
    growthContract(suite);
    rowContract(suite);
    processContract(suite);
    leaseContract(suite);
    trimContract(suite);
    upkeepContract(suite);
    memoContract(suite);
  });
}
