// What outlives every life: a memory store that is never closed, and a record of everything that was appended to it.
import type { Recorded } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Batch, Store } from "../../src/ports/store.ts";
import { MemoryStore } from "../../src/store/memory/memory-store.ts";

export interface Disk {
  readonly store: Store;
  /** Also what was trimmed since. */
  readonly logs: ReadonlyMap<SessionId, readonly Recorded[]>;
  /** Sessions that it does not have any more. */
  readonly deleted: ReadonlySet<SessionId>;
  /** Calls that the store has not answered. */
  readonly outstanding: () => number;
}

export function makeDisk(clock: Clock): Disk {
  const memory = new MemoryStore({ clock });
  const logs = new Map<SessionId, Recorded[]>();
  const deleted = new Set<SessionId>();
  let outstanding = 0;
  const note = ({ session, events, expected, at }: Batch): void => {
    const log = logs.get(session) ?? [];
    events.forEach((event, index) => void log.push({ ...event, seq: expected + index + 1, at }));
    logs.set(session, log);
  };
  const counted = <T extends object>(part: T): T => new Proxy<T>(part, handler as ProxyHandler<T>);
  const handler: ProxyHandler<object> = {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name === "upkeep") return counted(Object(value) as object);
      if (typeof value !== "function") return value;
      if (name === "close") return () => Promise.resolve();
      return async (...asked: readonly unknown[]): Promise<unknown> => {
        outstanding += 1;
        try {
          // The memory store has appended, or not, when it returns.
          const answering: Promise<unknown> = value.apply(target, asked);
          const answer = await answering;
          if (name === "append" && Reflect.get(Object(answer), "kind") === "appended") note(asked[0] as Batch);
          if (name === "remove" && answer === "done") deleted.add(asked[0] as SessionId);
          return answer;
        } finally {
          outstanding -= 1;
        }
      };
    },
  };
  return { store: counted<Store>(memory), logs, deleted, outstanding: () => outstanding };
}
