// The outcomes of several runs, for a client that waits for all of them with one request.
//
// Invariants
// 1. An error of one run does not withhold the outcome of another.
// 2. A run of another tenant is reported as not found, as in every other route.

import { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { BelayControl, RunControl } from "../../ports/control.ts";
import { checkKinds, isOwn, notFoundIn } from "../auth/tenancy.ts";
import { OUTCOMES_TOGETHER_MAX } from "../limits.ts";
import type { Actor } from "../transport/http-exchange.ts";
import { publicError } from "./status-code.ts";

interface RunOutcomes {
  readonly outcomes: { readonly runId: RunId; readonly outcome: Outcome }[];
  readonly failed: { readonly runId: string; readonly error: ControlError }[];
  /** The runs that have not settled. */
  readonly live: RunControl[];
}

/** The ids in a query, without duplicates. */
export function idsIn(runs: string): readonly string[] {
  const ids = [...new Set(runs.split(","))];
  if (ids.length <= OUTCOMES_TOGETHER_MAX) return ids;
  throw new ControlError("invalid", `\`runs\` must have at most ${OUTCOMES_TOGETHER_MAX} ids (got ${ids.length}).`);
}

/** Reads the outcomes. Throws a retryable error only if all runs have one, so that it delays no other run. */
export async function outcomesOf(control: BelayControl, actor: Actor, ids: readonly string[]): Promise<RunOutcomes> {
  const found: RunOutcomes = { outcomes: [], failed: [], live: [] };
  let retryable: ControlError | undefined;
  const read = async (runId: string): Promise<void> => {
    try {
      checkKinds({ run: runId });
      if (!(await isOwn(control, actor, { run: runId }))) throw notFoundIn({ run: runId });
      const run = await control.run(runId);
      const { id, outcome } = await run.row();
      if (outcome === undefined) found.live.push(run);
      else found.outcomes.push({ runId: id, outcome });
    } catch (thrown) {
      if (!(thrown instanceof ControlError)) throw thrown;
      if (thrown.retryable) retryable = thrown;
      else found.failed.push({ runId, error: publicError(thrown) });
    }
  };
  await Promise.all(ids.map(read));
  const { outcomes, failed, live } = found;
  if (retryable !== undefined && outcomes.length + failed.length + live.length === 0) throw retryable;
  return found;
}

export const outcomesReply = ({ outcomes, failed }: RunOutcomes) => ({
  outcomes,
  failed: failed.map(({ runId, error: { code, message, hint, retryable } }) => ({
    ...{ runId, error: { code, message, hint, retryable } },
  })),
});
