// `belay close SESSION`: ends a session, and prints what was stopped.

import { UNTIL_ANSWERED, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { partsOf, receiptExit, receiptLines } from "../../shared/format/format-receipt.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { offlineStopLines } from "../../shared/offline-stop.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface CloseFlags extends ConnectionOptions {
  readonly reason?: string;
  readonly json?: true;
}

export function runClose(typed: string, flags: CloseFlags): Promise<number> {
  return withControl(
    flags,
    async (connection) => {
      const id = await resolveSession(connection.control, typed);
      const { reason } = flags;
      const receipt = await connection.control.session(id).close(reason === undefined ? {} : { reason });
      if (flags.json) print(JSON.stringify(receipt));
      else {
        const offlineLines = await offlineStopLines(connection, partsOf(id, receipt));
        for (const line of [...receiptLines(id, receipt), ...offlineLines]) print(line);
        if (receipt.kind !== "unknown") print(`${id} is closed and accepts nothing more.`);
      }
      return receiptExit(receipt);
    },
    UNTIL_ANSWERED,
  );
}
