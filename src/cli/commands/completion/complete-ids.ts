// `belay complete-ids`: prints ids for shell completion. Fast, and silent on errors, since it runs at a key press.

import type { Explanation } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { openControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { kindOf } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

/** The time limit for one completion. */
const COMPLETE_MS_MAX = 1_000;

/** Shells do not show more than this. */
const IDS_MAX = 500;

/** The newest sessions are included, since idle ones can be followed and explained too. */
const SESSIONS_MAX = 100;

export async function completeIds(kinds: readonly string[], flags: ConnectionOptions): Promise<number> {
  const limit = new Promise<readonly string[]>((resolve) => {
    systemClock.after(COMPLETE_MS_MAX, () => resolve([]), "idle");
  });
  const ids = await Promise.race([limit, candidates(flags).catch(() => [])]);
  const matching = ids.filter((id) => kinds.length === 0 || kinds.includes(kindOf(id) ?? ""));
  for (const id of matching.slice(0, IDS_MAX)) print(id);
  return EXIT_OK;
}

async function candidates(flags: ConnectionOptions): Promise<readonly string[]> {
  const { control, close } = await openControl(flags);
  try {
    const live = (await control.live()).flatMap(liveIds);
    const sessions = await control.sessions({ order: "newest", limit: SESSIONS_MAX });
    return [...new Set([...live, ...sessions.map(({ id }) => id)])];
  } finally {
    await close();
  }
}

const liveIds = ({ sessionId, live, queue, steers, processes }: Explanation): readonly string[] => [
  sessionId,
  ...(live === undefined ? [] : [live.runId]),
  ...(live?.calls ?? []).map(({ callId }) => callId),
  ...[...(live?.questions ?? []), ...processes].map(({ id }) => id),
  ...[...queue, ...steers].map(({ runId }) => runId),
];
