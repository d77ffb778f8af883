// `belay complete-ids`: the ids a person may mean next, for a shell. Quick, and silent whatever happens: a key press
// is no place for an error.

import type { Explanation } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { openControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { kindOf } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

/** Longer than this nobody waits for a shell to complete a word. */
const COMPLETE_MS_MAX = 1_000;

/** More than this no shell shows. */
const IDS_MAX = 500;

/** The newest sessions, for whoever follows or explains one that is idle. */
const SESSIONS_MAX = 100;

export async function completeIds(kinds: readonly string[], flags: ConnectionOptions): Promise<number> {
  const limit = new Promise<readonly string[]>((resolve) => {
    systemClock.after(COMPLETE_MS_MAX, () => resolve([]), "idle");
  });
  const ids = await Promise.race([limit, candidates(flags).catch(() => [])]);
  const wanted = ids.filter((id) => kinds.length === 0 || kinds.includes(kindOf(id) ?? ""));
  for (const id of wanted.slice(0, IDS_MAX)) print(id);
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
