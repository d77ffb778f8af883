// A store that has one log and nothing else, for those who only read.
import type { Event, Recorded } from "../src/core/event.ts";
import type { SessionId } from "../src/core/ids.ts";
import type { Page, Store } from "../src/ports.ts";

/** Everything happens in its own tenth of a second. */
export const timeAt = (seq: number): number => seq * 100;

const READS_MAX = 1_000;

/** `gapTo`: what retention has removed. `reads`: behind which positions it was read. */
export function logStore(events: readonly Event[], gapTo = 0): { readonly store: Store; readonly reads: number[] } {
  const log = events.map((event, index): Recorded => ({ ...event, seq: index + 1, at: timeAt(index + 1) }));
  const reads: number[] = [];
  const read = async (_: SessionId, { after, limit }: { after: number; limit: number }): Promise<Page> => {
    reads.push(after);
    if (reads.length > READS_MAX) throw new Error("It is read in circles.");
    const from = Math.max(after, gapTo);
    return { events: log.slice(from, from + limit), ...(from > after ? { gapTo } : {}) };
  };
  return { store: { read } as Partial<Store> as Store, reads };
}
