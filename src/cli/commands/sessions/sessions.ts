// `belay sessions`: lists the sessions, newest first; with --after, oldest first.
import { PAGE_ROWS_MAX } from "../../../core/limits.ts";
import type { SessionRow } from "../../../ports/store.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { withControl } from "../../shared/connect.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { ageOf, dayAndTime } from "../../shared/format/age.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { resolveId } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";

export interface ListFlags extends ConnectionOptions {
  readonly limit?: string;
  readonly json?: true;
}

export interface SessionsFlags extends ListFlags {
  readonly after?: string;
  readonly before?: string;
}

const LIMIT = 100;

export const limitOf = (typed: string | undefined): number =>
  typed === undefined ? LIMIT : wholeNumber(typed, "--limit", { from: 1, to: PAGE_ROWS_MAX });

export function printSessions(flags: SessionsFlags): Promise<number> {
  const limit = limitOf(flags.limit);
  return withControl(flags, async ({ control }) => {
    const cursor = flags.after === undefined ? "before" : "after";
    const typed = flags[cursor];
    const from = typed === undefined ? {} : { [cursor]: await resolveId(control, typed, ["session"]) };
    const order = cursor === "after" ? "oldest" : "newest";
    const sessions = await control.sessions({ order, limit, ...from });
    const next = sessions.length < limit ? null : (sessions.at(-1)?.id ?? null);
    if (flags.json) print(JSON.stringify({ sessions, next }));
    else if (sessions.length === 0) print("There are no sessions.");
    else for (const line of lines(sessions)) print(line);
    if (next !== null && !flags.json)
      process.stderr.write(`There may be more: belay sessions --${cursor} ${next}${connectionArguments(flags)}\n`);
    return EXIT_OK;
  });
}

const COLUMNS = [
  { title: "ID" },
  { title: "PHASE" },
  { title: "AGE" },
  { title: "CREATED" },
  { title: "EVENTS" },
] as const;
const TITLE = { title: "TITLE", widthMin: 8 } as const;
const DIRECTORY = { title: "DIRECTORY", widthMin: 9 } as const;

function lines(sessions: readonly SessionRow[]): readonly string[] {
  const now = systemClock.now();
  // Most servers have one workspace, so that the column is usually not needed.
  const places = sessions.some(({ cwd }) => cwd !== undefined);
  const rows = sessions.map(({ id, phase, createdAt, head, title, cwd }) => [
    ...[id, phase, ageOf(createdAt, now), dayAndTime(createdAt)],
    ...[String(head), ...(places ? [cwd ?? ""] : []), title ?? ""],
  ]);
  return table([...COLUMNS, ...(places ? [DIRECTORY] : []), TITLE], rows, styleOf(process.stdout));
}
