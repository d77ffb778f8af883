// Opens the store on one SQLite file, for one server.
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { canonicalPath } from "./file/owner.ts";
import { openThreadedStore } from "./thread/threaded-store.ts";

export interface SqliteStoreOptions {
  /** Created if it does not exist. `.lock`, `.reserve` and `.mark` files are created beside it. */
  readonly file: string;
  /** For leases. Default: the machine's monotonic clock. */
  readonly clock?: Clock;
}

/**
 * Opens the file. Throws a ControlError if it is in use, damaged, outdated, of a newer version, or not a Belay store.
 */
export async function openSqliteStore({ file, clock }: SqliteStoreOptions): Promise<Store> {
  return openThreadedStore({ file: canonicalPath(file), clock: clock ?? machineClock });
}

const machineClock: Pick<Clock, "elapsed"> = { elapsed: () => performance.now() };
