// How several runs stand, for a client that waits for all of them with one request.
//
// Invariants
// 1. An error of one run keeps the outcome of no other back.
// 2. A run of another tenant is not there, as in every other route.

import { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { BelayControl, RunControl } from "../../ports/control.ts";
import { checkKinds, isOwn, missing } from "../auth/tenancy.ts";
import { OUTCOMES_TOGETHER_MAX } from "../limits.ts";
import type { Actor } from "../transport/http-exchange.ts";
import { seenOf } from "./status-code.ts";

interface Standing {
  readonly outcomes: { readonly runId: RunId; readonly outcome: Outcome }[];
  readonly failed: { readonly runId: string; readonly error: ControlError }[];
  /** Those that have not ended. */
  readonly live: RunControl[];
}

/** The ids in a query, each once. */
export function idsIn(runs: string): readonly string[] {
  const ids = [...new Set(runs.split(","))];
  if (ids.length <= OUTCOMES_TOGETHER_MAX) return ids;
  throw new ControlError("invalid", `\`runs\` has ${ids.length} ids, and one request takes ${OUTCOMES_TOGETHER_MAX}.`);
}

/** An error that passes is thrown, and tried again, only if all have one: it holds up no other run. */
export async function standingOf(control: BelayControl, actor: Actor, ids: readonly string[]): Promise<Standing> {
  const standing: Standing = { outcomes: [], failed: [], live: [] };
  let passing: ControlError | undefined;
  const look = async (runId: string): Promise<void> => {
    try {
      checkKinds({ run: runId });
      if (!(await isOwn(control, actor, { run: runId }))) throw missing({ run: runId });
      const run = await control.run(runId);
      const { id, outcome } = await run.row();
      if (outcome === undefined) standing.live.push(run);
      else standing.outcomes.push({ runId: id, outcome });
    } catch (thrown) {
      if (!(thrown instanceof ControlError)) throw thrown;
      if (thrown.retryable) passing = thrown;
      else standing.failed.push({ runId, error: seenOf(thrown) });
    }
  };
  await Promise.all(ids.map(look));
  const { outcomes, failed, live } = standing;
  if (passing !== undefined && outcomes.length + failed.length + live.length === 0) throw passing;
  return standing;
}

/** As it is sent. */
export const found = ({ outcomes, failed }: Standing) => ({
  outcomes,
  failed: failed.map(({ runId, error: { code, message, hint, retryable } }) => ({
    ...{ runId, error: { code, message, hint, retryable } },
  })),
});
