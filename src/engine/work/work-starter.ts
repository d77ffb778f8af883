// Creates live turns and calls: it calls the agent and runs tools. Their ends are recorded as commands.

import { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import { type CallId, runOf, type TurnId, type Work } from "../../core/model/ids.ts";
import type { Run } from "../../core/model/run.ts";
import type { CallRequest } from "../../ports/agent.ts";
import { readCall } from "../log/replay.ts";
import type { SessionState } from "../log/session-state.ts";
import type { WorkStarter } from "./driver.ts";
import { LiveCall } from "./live-call.ts";
import { LiveTurn } from "./live-turn.ts";
import type { WorkHost } from "./run-work.ts";

export function makeWorkStarter(host: WorkHost, begins: WorkStarter["begins"]): WorkStarter {
  return {
    begins,
    handle(lane, id) {
      const known = lane.work(id);
      const run = lane.decided.live;
      if (known !== undefined || run === undefined) return known;
      const made = isTurn(id)
        ? run.turn === id && new LiveTurn(host, lane, run, id)
        : survives(run, id) && resumed(host, lane, run, id);
      if (made === false) return undefined;
      lane.works.push(made);
      return made;
    },
    unbegun(lane, id) {
      if (isTurn(id)) return;
      // Refused only if another worker has taken over the lane, which then settles the call.
      host.commit.submit(lane, { type: "settle-call", end: { callId: id, outcome: UNBEGUN } }).catch(() => {});
    },
    hasProcesses: (lane, call) => host.handles.processes.hasPending(lane, call),
  };
}

const UNBEGUN: Outcome = {
  kind: "failed",
  code: "unavailable",
  message: "It was never begun: the store did not say in time that it was recorded.",
};

const isTurn = (id: Work): id is TurnId => id.startsWith("turn_");

/** A call that this worker has not requested is begun only if an earlier worker requested it at the end of a turn. */
function survives(run: Run, id: CallId): boolean {
  // @fault survivors-not-begun-again
  return run.recoveries > 0 && run.live.some((call) => call.id === id && call.byEnd === true);
}

function resumed(host: WorkHost, lane: SessionState, run: Run, id: CallId): LiveCall {
  const call = run.live.find((one) => one.id === id);
  // A call that is not idempotent was kept because it waited for an approval: it has not begun.
  const mayHaveBegun = call?.idempotent === true;
  return new LiveCall(host, lane, id, call?.name ?? id, () => resume(host, lane, id), mayHaveBegun);
}

/** Looks up a call that an earlier worker requested: the log has its input, and the agent its function. */
async function resume({ store, agent }: WorkHost, lane: SessionState, callId: CallId): Promise<CallRequest> {
  const row = await store.run(runOf(callId));
  const asked = row === undefined ? undefined : await readCall(store, lane.id, callId, row.acceptedAt);
  const request = asked === undefined ? undefined : agent.resume?.(asked);
  if (request !== undefined) return request;
  throw new ControlError("unavailable", "It cannot be executed any more: the agent does not know this call.");
}
