// An orderly end: refuse, stop or park, settle, flush; all within one limit.
import type { SessionId } from "../core/model/ids.ts";
import type { Engine } from "./engine.ts";
import type { SessionState } from "./log/session-state.ts";
import { closing } from "./shutdown-errors.ts";

/**
 * `park`: live runs are set down and taken up at the next start; what is queued stays queued.
 * `cancel`: live and queued runs end as cancelled, with reason `shutdown`.
 */
export type ShutdownMode = "park" | "cancel";

export interface ShutdownReport {
  /** Sessions that had not come to rest when the limit came. Their runs are recovered at the next start. */
  readonly unfinished: readonly SessionId[];
}

/** `limit` resolves when there is no more time: it may come earlier than planned, if somebody presses again. */
export async function shutDown(engine: Engine, mode: ShutdownMode, limit: Promise<void>): Promise<ShutdownReport> {
  engine.stopAccepting(mode === "park" ? "parking" : "closing");
  const lanes = [...engine.lanes.all()].filter(
    (lane) => lane.phase === "ready" && !(lane.idle && lane.works.length === 0),
  );
  dropLoading(engine);
  const open = new Set(lanes);
  const rest = Promise.all(
    lanes.map(async (lane) => {
      // What another worker drives is not ours to set down or to end.
      if (lane.epoch === undefined) await engine.commit.drained(lane);
      else await (mode === "park" ? park(engine, lane) : cancel(engine, lane));
      open.delete(lane);
    }),
  );
  // @fault shutdown-cuts-hooks-off
  await Promise.race([rest.then(() => engine.hooks.idle()), limit]);
  // Said now: a lane that loses its lease below comes to rest without having finished.
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
    // A store that has not answered by now may never do.
    engine.left();
  }
  return { unfinished };
}

/** What was not even loaded stays as it is. */
function dropLoading(engine: Engine): void {
  for (const lane of engine.lanes.all()) if (lane.phase === "loading") engine.lanes.drop(lane, closing());
}

/** The next worker need not wait until our leases have run out. */
async function release(engine: Engine): Promise<void> {
  const ours = [...engine.lanes.all()].filter((lane) => lane.epoch !== undefined);
  // A lease that cannot be given up runs out by itself.
  await Promise.allSettled(ours.map((lane) => engine.store.release(lane.id, engine.worker)));
}

/** What the store may take to put down its last page, on top of the limit, before we leave anyway. */
const CLOSE_MS = 1_000;

async function park(engine: Engine, lane: SessionState): Promise<void> {
  // A run that is already being stopped is not set down; it ends.
  const parks = lane.decided.live?.phase === "running";
  const ended = engine.processes.park(lane); // @fault shutdown-leaves-children:park
  if (parks) for (const work of [...lane.works]) engine.drive.stop(lane, work, { kind: "shutdown" });
  await engine.drive.still(lane);
  await ended;
  await engine.commit.drained(lane);
  if (lane.decided.live?.phase === "running") {
    // Refused only by a lane that another worker has taken over, and then it is theirs.
    await engine.commit.submit(lane, { type: "park" }).catch(() => undefined);
  }
  const left = lane.decided.live?.phase;
  // Cancelled, or ended, after its work had been set down: nothing is left that could end by itself, so it ends now.
  // @fault cancelled-while-parked:end
  if (left === "stopping" || left === "ending") {
    // Refused by a store in trouble: then the next worker ends it.
    await engine.commit.submit(lane, { type: "recover", resume: "lose" }).catch(() => undefined);
  }
  await engine.commit.drained(lane);
}

async function cancel(engine: Engine, lane: SessionState): Promise<void> {
  // A store in trouble refuses the receipt, not the stop; there is nobody here to show either.
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
