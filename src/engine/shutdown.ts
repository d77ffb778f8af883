// Graceful shutdown: refuse, stop or park, settle, flush; all within one limit.
import type { SessionId } from "../core/model/ids.ts";
import type { Engine } from "./engine.ts";
import type { SessionState } from "./log/session-state.ts";
import { closing } from "./shutdown-errors.ts";

/**
 * `park`: live runs are suspended and recovered at the next start; queued runs stay queued.
 * `cancel`: live and queued runs end as cancelled, with reason `shutdown`.
 */
export type ShutdownMode = "park" | "cancel";

export interface ShutdownReport {
  /** Sessions that were still busy at the limit. Their runs are recovered at the next start. */
  readonly unfinished: readonly SessionId[];
}

/** `limit` resolves when the time is over. It may come early, if a second signal forces the shutdown. */
export async function shutDown(engine: Engine, mode: ShutdownMode, limit: Promise<void>): Promise<ShutdownReport> {
  engine.stopAccepting(mode === "park" ? "parking" : "closing");
  const lanes = [...engine.lanes.all()].filter(
    (lane) => lane.phase === "ready" && !(lane.idle && lane.works.length === 0),
  );
  dropLoading(engine);
  const open = new Set(lanes);
  const rest = Promise.all(
    lanes.map(async (lane) => {
      // A lane that another worker drives must be neither parked nor cancelled here.
      if (lane.epoch === undefined) await engine.commit.drained(lane);
      else await (mode === "park" ? park(engine, lane) : cancel(engine, lane));
      open.delete(lane);
    }),
  );
  // @fault shutdown-cuts-hooks-off
  await Promise.race([rest.then(() => engine.hooks.idle()), limit]);
  // Computed now: a lane that loses its lease below becomes idle without having finished.
  const unfinished = [...open].map((lane) => lane.id);
  engine.closed();
  dropLoading(engine);
  const flushed = timeLimit(engine, CLOSE_MS);
  const processesClosed = engine.processes.close(); // @fault shutdown-leaves-children:close
  try {
    await Promise.race([release(engine).then(() => engine.store.close()), flushed.reached]);
  } finally {
    await Promise.race([processesClosed, flushed.reached]);
    flushed.cancel();
    // A store that has not answered by now may never answer.
    engine.left();
  }
  return { unfinished };
}

/** Sessions that were not loaded stay as they are. */
function dropLoading(engine: Engine): void {
  for (const lane of engine.lanes.all()) if (lane.phase === "loading") engine.lanes.drop(lane, closing());
}

/** Releases all leases, so that the next worker need not wait until they expire. */
async function release(engine: Engine): Promise<void> {
  const ours = [...engine.lanes.all()].filter((lane) => lane.epoch !== undefined);
  // A lease that cannot be released expires by itself.
  await Promise.allSettled(ours.map((lane) => engine.store.release(lane.id, engine.worker)));
}

/** How long the store may take for its last write, beyond the limit, before this worker exits anyway. */
const CLOSE_MS = 1_000;

async function park(engine: Engine, lane: SessionState): Promise<void> {
  // A run that is being stopped is not parked; it ends.
  const parks = lane.decided.live?.phase === "running";
  const ended = engine.processes.park(lane); // @fault shutdown-leaves-children:park
  if (parks) for (const work of [...lane.works]) engine.drive.stop(lane, work, { kind: "shutdown" });
  await engine.drive.still(lane);
  await ended;
  await engine.commit.drained(lane);
  if (lane.decided.live?.phase === "running") {
    // Refused only if another worker has taken over the lane, which is then its own to park.
    await engine.commit.submit(lane, { type: "park" }).catch(() => undefined);
  }
  const left = lane.decided.live?.phase;
  // Cancelled or ended after its work was stopped: no work is left whose end would settle it, so it is settled now.
  // @fault cancelled-while-parked:end
  if (left === "stopping" || left === "ending") {
    // Refused by a failing store: then the next worker settles it.
    await engine.commit.submit(lane, { type: "recover", resume: "lose" }).catch(() => undefined);
  }
  await engine.commit.drained(lane);
}

async function cancel(engine: Engine, lane: SessionState): Promise<void> {
  // A failing store refuses the receipt, not the stop, and no caller needs the receipt.
  await engine.cancel.session(lane.id, { reason: { kind: "shutdown" } }).catch(() => undefined);
  await engine.drive.still(lane);
  await engine.processes.park(lane);
  await engine.commit.drained(lane);
}

function timeLimit(engine: Engine, ms: number): { readonly reached: Promise<void>; readonly cancel: () => void } {
  let cancel = (): void => {};
  const reached = new Promise<void>((resolve) => {
    cancel = engine.clock.after(ms, resolve);
  });
  return { reached, cancel };
}
