// What handles of processes need of the engine.
import type { Delta, Gap } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import type { Seq, SessionId } from "../core/ids.ts";
import { sessionOf } from "../core/ids.ts";
import type { Clock, Store } from "../ports.ts";
import type { Cancels } from "./cancels.ts";
import type { Lanes } from "./lanes.ts";
import type { HandleDesk } from "./process-handle.ts";
import { type Processes, resultOf } from "./processes.ts";

interface House {
  readonly clock: Clock;
  readonly store: Store;
  readonly processes: Processes;
  readonly lanes: Lanes;
  readonly cancel: Cancels;
  follow(
    session: SessionId,
    from: { after: Seq; signal: AbortSignal; deltas: "without" },
  ): AsyncGenerator<Recorded | Delta | Gap, void>;
}

export function makeHandleDesk(house: House): HandleDesk {
  return {
    clock: house.clock,
    processes: house.processes,
    info: (id) => {
      const lane = house.lanes.peek(sessionOf(id));
      return lane === undefined ? undefined : house.processes.list(lane).find((one) => one.id === id);
    },
    cancel: (id, reason) => house.cancel.process(id, reason),
    settled: async (id, signal) => {
      const after = (await house.store.process(id))?.requestedAt ?? 0;
      for await (const event of house.follow(sessionOf(id), { after, signal, deltas: "without" })) {
        if (event.type === "process.settled" && event.processId === id) return resultOf(event);
        // Its end may be in what retention has removed.
        const ended = event.type === "gap" ? await house.processes.ended(id) : undefined;
        if (ended !== undefined) return ended;
      }
      return undefined;
    },
  };
}
