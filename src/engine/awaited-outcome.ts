// The outcome of a run, for whoever waits for it.
//
// Invariants
// 1. Registered first, looked up second: an outcome that is recorded in between is not missed.
// 2. Whoever waits is known by the lane of the run, and is told if that lane is let go of; else nothing stays of it.
import type { Outcome } from "../core/cancel.ts";
import type { ControlError } from "../core/control-error.ts";
import type { RunId, SessionId } from "../core/ids.ts";
import type { Lane } from "../core/lane.ts";
import type { Store } from "../ports.ts";
import { isOpen, type Lanes } from "./lanes.ts";
import type { Outcomes } from "./outcomes.ts";

interface Parts {
  readonly store: Store;
  readonly lanes: Lanes;
  readonly outcomes: Outcomes;
  /** Everything decided so far of a session, durable; undefined if there is none. */
  readonly loaded: (session: SessionId) => Promise<{ readonly durable: Lane } | undefined>;
  /** Why nobody here will learn how it ends. */
  readonly letGo: (runId: RunId) => ControlError;
}

/** Resolves with the run's own outcome, once it is durable. Undefined: no such run. */
export async function awaitedOutcome(runId: RunId, parts: Parts): Promise<Outcome | undefined> {
  let takeBack = ignore;
  const coming = new Promise<Outcome | undefined>((resolve, reject) => {
    takeBack = parts.outcomes.wait(runId, (outcome) => {
      if (outcome === undefined) reject(parts.letGo(runId));
      else resolve(outcome === "absent" ? undefined : outcome);
    });
  });
  // It may be let go while we still look it up.
  coming.catch(ignore); // @fault rejection-unheard
  if (parts.lanes.home(runId) !== undefined) return coming;
  try {
    const ended = await lookUp(runId, parts);
    if (ended.kind === "open") return coming;
    takeBack();
    return ended.outcome;
  } catch (error) {
    takeBack(); // @fault wait-kept-after-trouble
    throw error;
  }
}

type Found = { readonly kind: "open" } | { readonly kind: "ended"; readonly outcome: Outcome | undefined };

async function lookUp(runId: RunId, { store, loaded }: Parts): Promise<Found> {
  const row = await store.run(runId);
  if (row === undefined || row.outcome !== undefined) return { kind: "ended", outcome: row?.outcome };
  const lane = (await loaded(row.session))?.durable;
  if (lane !== undefined && isOpen(lane, runId)) return { kind: "open" };
  // It has ended since, and nobody here was told.
  const outcome = (await store.run(runId))?.outcome;
  return outcome === undefined ? { kind: "open" } : { kind: "ended", outcome };
}

const ignore = (): void => {};
