// What a store is, as tests. An adapter that passes this suite can carry Belay; nothing else is asked of it.
//
// Text: whatever JSON can carry survives in events, snapshots and outcomes, lone surrogates included. Titles and keys
// are columns, and databases hold well-formed text only: there a lone surrogate may come back as U+FFFD.
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
