// What a store is, as tests. An adapter that passes this suite can carry Belay; nothing else is asked of it.
//
// Text: whatever JSON can carry survives in events, snapshots and outcomes, lone surrogates included. Titles and keys
// are columns, and databases hold well-formed text only: there a lone surrogate may come back as U+FFFD.
import { afterEach, beforeEach, describe } from "vitest";
import { growthContract } from "./contract-growth.ts";
import { leaseContract } from "./contract-leases.ts";
import { logContract } from "./contract-log.ts";
import { memoContract } from "./contract-memos.ts";
import { processContract } from "./contract-processes.ts";
import { rowContract } from "./contract-rows.ts";
import type { Opened, Suite } from "./contract-suite.ts";
import { trimContract } from "./contract-trim.ts";
import { upkeepContract } from "./contract-upkeep.ts";

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
