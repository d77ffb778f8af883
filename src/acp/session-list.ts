// The sessions there are, newest first, as an editor lists them.
import type { BelayControl, SessionControl } from "../control.ts";
import type { SessionRow } from "../ports.ts";
import type { Guest } from "./guest.ts";
import { LIST_PAGE, LIST_SCAN_MAX, LIST_STEP } from "./limits.ts";
import { realPath } from "./real-path.ts";
import { invalidParams } from "./rpc-error.ts";
import { shownLine } from "./shown-text.ts";

export interface ListWish {
  readonly cwd: string | undefined;
  readonly cursor: string | undefined;
}

export interface Listed {
  readonly sessionId: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly updatedAt: string;
}

export interface ListPage {
  readonly sessions: readonly Listed[];
  readonly nextCursor: string | undefined;
}

/** `directory`: where a session works that was made without one. */
export async function listSessions(
  control: BelayControl,
  guest: Guest,
  directory: string,
  { cwd, cursor }: ListWish,
): Promise<ListPage> {
  const wanted = cwd === undefined ? undefined : realPath(cwd);
  const isWanted = (row: SessionRow): boolean => wanted === undefined || (row.cwd ?? directory) === wanted;
  const rows = (await openRows(control, guest)).filter(isWanted);
  const at = cursor === undefined ? 0 : placeOf(rows, cursor);
  const page = rows.slice(at, at + LIST_PAGE);
  const sessions: Listed[] = [];
  // One after the other: over a network each of them opens a stream.
  for (const row of page) sessions.push(await listed(control.session(row.id), row, directory));
  return { sessions, nextCursor: at + LIST_PAGE < rows.length ? page.at(-1)?.id : undefined };
}

/** One that is not there any more would begin the list anew, and whoever pages through it would never be done. */
function placeOf(rows: readonly SessionRow[], cursor: string): number {
  const found = rows.findIndex(({ id }) => id === cursor);
  if (found === -1) throw invalidParams("`cursor` is not one of this list, or its session is gone.", "Begin anew.");
  return found + 1;
}

async function openRows(control: BelayControl, { tenant }: Guest): Promise<readonly SessionRow[]> {
  const rows: SessionRow[] = [];
  const within = tenant === undefined ? {} : { tenant };
  while (rows.length < LIST_SCAN_MAX) {
    const after = rows.at(-1)?.id;
    const more = await control.sessions({ limit: LIST_STEP, ...within, ...(after === undefined ? {} : { after }) });
    rows.push(...more);
    if (more.length < LIST_STEP) break;
  }
  return rows.filter((row) => row.phase === "open").toReversed();
}

async function listed(session: SessionControl, row: SessionRow, directory: string): Promise<Listed> {
  const at = await lastAt(session, row);
  return {
    sessionId: row.id,
    cwd: row.cwd ?? directory,
    title: row.title ?? (await firstPrompt(session, row)) ?? null,
    updatedAt: new Date(at).toISOString(),
  };
}

async function lastAt(session: SessionControl, { head, createdAt }: SessionRow): Promise<number> {
  for await (const event of session.events({ after: head - 1 })) return "at" in event ? event.at : createdAt;
  return createdAt;
}

/** What somebody asked first is what they remember it by. */
async function firstPrompt(session: SessionControl, { head }: SessionRow): Promise<string | undefined> {
  for await (const event of session.events()) {
    if (event.type === "run.accepted") return shownLine(event.prompt.text);
    if (!("seq" in event) || event.seq >= head) return undefined;
  }
  return undefined;
}
