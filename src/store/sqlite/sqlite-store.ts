// Opening the store on one SQLite file, for one server.
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { canonicalPath } from "./file/owner.ts";
import { openThreadedStore } from "./thread/threaded-store.ts";

export interface SqliteStoreOptions {
  /** Made if it does not exist. `.lock`, `.reserve` and `.mark` are put beside it. */
  readonly file: string;
  /** For leases. Default: the machine's. */
  readonly clock?: Clock;
}

/** Opens the file, or throws a ControlError: in use, damaged, older than it was, of a newer Belay, not ours. */
export async function openSqliteStore({ file, clock }: SqliteStoreOptions): Promise<Store> {
  return openThreadedStore({ file: canonicalPath(file), clock: clock ?? machineClock });
}

const machineClock: Pick<Clock, "elapsed"> = { elapsed: () => performance.now() };
