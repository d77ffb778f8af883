// `belay runs [SESSION]`: lists the runs of a session, newest first; without one, those of the newest sessions.

import type { RunRow } from "../../../core/model/rows.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { withControl } from "../../shared/connect.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { formatOutcome } from "../../shared/format/format-outcome.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";
import { type ListFlags, limitOf } from "../sessions/sessions.ts";

export interface RunsFlags extends ListFlags {
  readonly before?: string;
}

/** How many sessions are included if none is named. */
const RECENT_SESSIONS = 20;

export function printRuns(typed: string | undefined, flags: RunsFlags): Promise<number> {
  const limit = limitOf(flags.limit);
  const before =
    flags.before === undefined
      ? {}
      : { before: wholeNumber(flags.before, "--before", { from: 0, to: Number.MAX_SAFE_INTEGER }) };
  return withControl(flags, async ({ control }) => {
    const runs =
      typed === undefined
        ? await recentRuns(control, limit)
        : await control.session(await resolveSession(control, typed)).runs({ limit, ...before });
    const next = typed === undefined || runs.length < limit ? null : (runs.at(-1)?.acceptedAt ?? null);
    if (flags.json) print(JSON.stringify({ runs, next }));
    else if (runs.length === 0) print("There are no runs.");
    else for (const line of lines(runs)) print(line);
    if (next !== null && !flags.json) {
      process.stderr.write(`There may be more: belay runs ${typed} --before ${next}${connectionArguments(flags)}\n`);
    }
    return EXIT_OK;
  });
}

async function recentRuns(control: BelayControl, limit: number): Promise<readonly RunRow[]> {
  const sessions = await control.sessions({ order: "newest", limit: RECENT_SESSIONS });
  const runs = await Promise.all(sessions.map(({ id }) => control.session(id).runs({ limit })));
  return runs.flat().slice(0, limit);
}

const COLUMNS = [
  { title: "ID" },
  { title: "PHASE" },
  { title: "OUTCOME", widthMin: 10 },
  { title: "SESSION", widthMin: 7 },
] as const;

const lines = (runs: readonly RunRow[]): readonly string[] =>
  table(
    COLUMNS,
    runs.map(({ id, phase, outcome, session }) => [
      ...[id, phase, outcome === undefined ? "" : formatOutcome(outcome), session],
    ]),
    styleOf(process.stdout),
  );
