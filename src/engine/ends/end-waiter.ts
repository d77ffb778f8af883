// Waits for the end of a run, a call or a process.
//
// Invariants
// 1. Registered first, looked up second: an end that is recorded in between is not missed.
// 2. A waiter of a run is known by the lane of the run, and is released if that lane is unloaded.
// 3. However the wait ends, nothing stays registered.

import type { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { CallId, ProcessId, RunId, SessionId } from "../../core/model/ids.ts";
import type { Lane } from "../../core/model/lane.ts";
import type { ProcessResult } from "../../ports/spawner.ts";
import type { Store } from "../../ports/store.ts";
import { isOpen, type SessionRegistry } from "../log/session-registry.ts";
import type { RemoteEnds } from "./remote-ends.ts";
import type { Waiters } from "./waiters.ts";

interface Parts {
  readonly store: Store;
  readonly lanes: SessionRegistry;
  readonly waiters: Waiters;
  /** The durable state of a session, including all decisions so far; undefined if there is none. */
  readonly loaded: (session: SessionId) => Promise<{ readonly durable: Lane } | undefined>;
  /** The error if this worker will not learn how the run ends. */
  readonly release: (runId: RunId) => ControlError;
}

/** Resolves with the run's own outcome, once it is durable. Undefined: no such run. */
export async function awaitedOutcome(runId: RunId, parts: Parts): Promise<Outcome | undefined> {
  let dispose = ignore;
  const coming = new Promise<Outcome | undefined>((resolve, reject) => {
    dispose = parts.waiters.wait(runId, (outcome) => {
      if (outcome === undefined) reject(parts.release(runId));
      else resolve(outcome === "absent" ? undefined : outcome);
    });
  });
  // It may be released while the run is still being looked up.
  coming.catch(ignore); // @fault rejection-unheard
  if (parts.lanes.sessionOf(runId) !== undefined) return coming;
  try {
    const ended = await lookUp(runId, parts);
    if (ended.kind === "open") return coming;
    dispose();
    return ended.outcome;
  } catch (error) {
    dispose(); // @fault wait-kept-after-trouble
    throw error;
  }
}

type Found = { readonly kind: "open" } | { readonly kind: "ended"; readonly outcome: Outcome | undefined };

async function lookUp(runId: RunId, { store, loaded }: Parts): Promise<Found> {
  const row = await store.run(runId);
  if (row === undefined || row.outcome !== undefined) return { kind: "ended", outcome: row?.outcome };
  const lane = (await loaded(row.session))?.durable;
  if (lane !== undefined && isOpen(lane, runId)) return { kind: "open" };
  // It has ended since, and was recorded elsewhere.
  const outcome = (await store.run(runId))?.outcome;
  return outcome === undefined ? { kind: "open" } : { kind: "ended", outcome };
}

/** A call or process, and the lookup of its end. */
interface Target<Id, End> {
  readonly id: Id;
  readonly session: SessionId;
  /** Whether it is known here that it has not ended. */
  readonly isLive: () => boolean;
  readonly lookUp: () => Promise<End | undefined>;
}

export type CallTarget = Target<CallId, Outcome>;
export type ProcessTarget = Target<ProcessId, ProcessResult>;

interface Ends {
  readonly waiters: Waiters;
  readonly remote: RemoteEnds;
}

/** Resolves with the end of a call or process, once it is durable. Undefined: `signal` aborted, or Belay closes. */
export async function awaitedEnd(target: CallTarget, ends: Ends, signal: AbortSignal): Promise<Outcome | undefined>;
export async function awaitedEnd(
  target: ProcessTarget,
  ends: Ends,
  signal: AbortSignal,
): Promise<ProcessResult | undefined>;
export async function awaitedEnd(
  target: CallTarget | ProcessTarget,
  ends: Ends,
  signal: AbortSignal,
): Promise<Outcome | ProcessResult | undefined> {
  for (;;) {
    const ended = target.isLive() ? undefined : await target.lookUp();
    if (ended !== undefined || signal.aborted) return ended;
    const wait = new Wait(target, ends, signal);
    try {
      if (!target.isLive()) {
        await wait.ready;
        const since = await target.lookUp();
        if (since !== undefined) return since;
      }
      const end = await wait.end;
      if (end !== "again") return end;
    } finally {
      wait.dispose();
    }
  }
}

class Wait {
  readonly end: Promise<Outcome | ProcessResult | "again" | undefined>;
  readonly ready: Promise<unknown>;
  readonly #disposers: (() => void)[];

  constructor({ id, session }: CallTarget | ProcessTarget, { waiters, remote }: Ends, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome | ProcessResult | "again" | undefined>();
    this.end = promise;
    // It may fail while the target is still being looked up.
    promise.catch(ignore);
    const onAbort = (): void => resolve(undefined);
    const { ready, leave } = remote.join(session, { again: () => resolve("again"), fail: reject });
    this.ready = ready;
    const forget = waiters.wait(id, (end) => resolve(end === "absent" ? undefined : end));
    signal.addEventListener("abort", onAbort);
    this.#disposers = [forget, leave, () => signal.removeEventListener("abort", onAbort)];
  }

  dispose(): void {
    for (const dispose of this.#disposers) dispose();
  }
}

const ignore = (): void => {};
