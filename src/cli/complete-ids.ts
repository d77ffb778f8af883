// `belay complete-ids`: the ids a person may mean next, for a shell. Quick, and silent whatever happens: a key press
// is no place for an error.
import { systemClock } from "../engine/system-clock.ts";
import { openControl } from "./control-door.ts";
import type { DoorOptions } from "./door-options.ts";
import { EXIT_OK } from "./exit-code.ts";
import { allSessions, KINDS, liveNames } from "./id-prefix.ts";
import { print } from "./terminal.ts";

/** Longer than this nobody waits for a shell to complete a word. */
const COMPLETE_MS_MAX = 1_000;

/** More than this no shell shows. */
const IDS_MAX = 500;

/** Recent sessions, for whoever follows or explains one that is idle. */
const SESSIONS_MAX = 100;

export async function completeIds(kinds: readonly string[], flags: DoorOptions): Promise<number> {
  const limit = new Promise<readonly string[]>((resolve) => {
    systemClock.after(COMPLETE_MS_MAX, () => resolve([]), "idle");
  });
  const ids = await Promise.race([limit, namesOf(kinds, flags).catch(() => [])]);
  for (const id of ids.slice(0, IDS_MAX)) print(id);
  return EXIT_OK;
}

async function namesOf(kinds: readonly string[], flags: DoorOptions): Promise<readonly string[]> {
  const wanted = kinds.length === 0 ? KINDS : KINDS.filter((kind) => kinds.includes(kind));
  const { control, close } = await openControl(flags);
  try {
    const live = (await liveNames(control)).filter(({ kind }) => wanted.includes(kind)).map(({ id }) => id);
    const rest = wanted.includes("session") ? (await allSessions(control)).slice(-SESSIONS_MAX) : [];
    return [...new Set([...live, ...rest.map(({ id }) => id)])];
  } finally {
    await close();
  }
}
