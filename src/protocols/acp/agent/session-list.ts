// Lists sessions, newest first, for an editor.

import { toControlError } from "../../../core/errors.ts";
import { isSessionId, tenantOf } from "../../../core/model/ids.ts";
import type { BelayControl, SessionControl } from "../../../ports/control.ts";
import type { SessionRow } from "../../../ports/store.ts";
import type { AcpClientInfo } from "./acp-client-info.ts";
import { FIRST_PROMPTS_MAX, LIST_PAGE, LIST_SCAN_MAX, LIST_STEP } from "./limits.ts";
import { realPath } from "./real-path.ts";
import { invalidParams } from "./rpc-error.ts";
import { shownLine } from "./updates/shown-text.ts";

export interface ListOptions {
  readonly cwd: string | undefined;
  readonly cursor: string | undefined;
}

export interface ListedSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly updatedAt: string;
}

export interface ListPage {
  readonly sessions: readonly ListedSession[];
  readonly nextCursor: string | undefined;
}

/** `directory`: the working directory of sessions that were created without one. */
export async function listSessions(
  control: BelayControl,
  client: AcpClientInfo,
  directory: string,
  { cwd, cursor }: ListOptions,
): Promise<ListPage> {
  const wanted = cwd === undefined ? undefined : realPath(cwd);
  const isWanted = (row: SessionRow): boolean => wanted === undefined || (row.cwd ?? directory) === wanted;
  if (cursor !== undefined) await requireCursor(control, client, cursor);
  const { rows, next } = await openRows(control, client, cursor, isWanted);
  const sessions: ListedSession[] = [];
  // One at a time: over a network, each session without a title opens a stream.
  for (const row of rows) sessions.push(await listed(control, row, directory));
  return { sessions, nextCursor: next };
}

interface OpenRows {
  readonly rows: readonly SessionRow[];
  /** The last session that was scanned; undefined if there are no more. */
  readonly next: string | undefined;
}

/** Open sessions that match: up to one page, or up to the scan limit. */
async function openRows(
  control: BelayControl,
  { tenant }: AcpClientInfo,
  cursor: string | undefined,
  isWanted: (row: SessionRow) => boolean,
): Promise<OpenRows> {
  const found: SessionRow[] = [];
  let before = cursor;
  for (let looked = 0; looked < LIST_SCAN_MAX; looked += LIST_STEP) {
    const within = { ...(tenant === undefined ? {} : { tenant }), ...(before === undefined ? {} : { before }) };
    const rows = await control.sessions({ order: "newest", limit: LIST_STEP, ...within });
    for (const row of rows) {
      if (found.length === LIST_PAGE) return { rows: found, next: before };
      before = row.id;
      if (row.phase === "open" && isWanted(row)) found.push(row);
    }
    if (rows.length < LIST_STEP) return { rows: found, next: undefined };
  }
  return { rows: found, next: before };
}

/** Checks the cursor: an unknown one would give an empty page, as if the list ended there. */
async function requireCursor(control: BelayControl, { tenant }: AcpClientInfo, cursor: string): Promise<void> {
  const isOwn = isSessionId(cursor) && (tenant === undefined || tenantOf(cursor) === tenant);
  const row = isOwn ? await control.session(cursor).row().catch(orAbsent) : undefined;
  if (row === undefined)
    throw invalidParams("`cursor` is not a session of this list.", "Start again without a cursor.");
}

function orAbsent(error: unknown): undefined {
  if (toControlError(error).code !== "not_found") throw error;
}

async function listed(control: BelayControl, row: SessionRow, directory: string): Promise<ListedSession> {
  return {
    sessionId: row.id,
    cwd: row.cwd ?? directory,
    title: row.title ?? (await firstPromptOf(control, row)) ?? null,
    updatedAt: new Date(row.updatedAt).toISOString(),
  };
}

/** Cache of first prompts of sessions without a title. They never change, so each is read once. */
const FIRST_PROMPTS = new WeakMap<BelayControl, Map<string, string>>();

async function firstPromptOf(control: BelayControl, row: SessionRow): Promise<string | undefined> {
  const kept = FIRST_PROMPTS.get(control) ?? new Map<string, string>();
  FIRST_PROMPTS.set(control, kept);
  // A session that was deleted and created again is another one.
  const key = `${row.id} ${row.createdAt}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const found = await firstPrompt(control.session(row.id), row);
  if (found === undefined) return undefined;
  const [oldest] = kept.keys();
  if (oldest !== undefined && kept.size >= FIRST_PROMPTS_MAX) kept.delete(oldest);
  kept.set(key, found);
  return found;
}

/** Users recognise a session by their first prompt. */
async function firstPrompt(session: SessionControl, { head }: SessionRow): Promise<string | undefined> {
  for await (const event of session.events()) {
    if (event.type === "run.accepted") return shownLine(event.prompt.text);
    if (!("seq" in event) || event.seq >= head) return undefined;
  }
  return undefined;
}
