// `belay verify FILE`: checks every log in a store against Belay's guarantees. It only reads, and may be run while a
// server uses the file.
import { existsSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { ControlError } from "../../../core/errors.ts";
import { PAGE_EVENTS_MAX } from "../../../core/limits.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import { type Finding, verify } from "../../../core/read/verify.ts";
import { type Database, openReadOnly } from "../../../store/sqlite/database.ts";
import { eventsOf } from "../../../store/sqlite/decode.ts";
import { requireOurs } from "../../../store/sqlite/file/inspect.ts";
import { queries } from "../../../store/sqlite/log-reader.ts";
import { MIGRATIONS } from "../../../store/sqlite/schema.ts";
import { storeError } from "../../../store/sqlite/sqlite-errors.ts";
import { EXIT_FOUND, EXIT_OK } from "../../shared/exit-code.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface VerifyOptions {
  readonly file: string;
  readonly json: boolean;
}

interface SessionFinding extends Finding {
  readonly session: SessionId;
}

interface Checked {
  sessions: number;
  runs: number;
  events: number;
  /** Sessions whose oldest events were removed. */
  trimmed: number;
  readonly findings: SessionFinding[];
}

/** The text report shows this many findings. `--json` has all of them. */
const SHOWN_MAX = 20;

/** Counts the content of a file, and checks it. */
export function checkFile(file: string): Readonly<Checked> {
  requireFile(file);
  return check(file);
}

export function verifyFile({ file, json }: VerifyOptions): number {
  const checked = checkFile(file);
  const { sessions, runs, events, findings } = checked;
  if (json) print(JSON.stringify({ verify: file, sessions, runs, events, findings }));
  else for (const line of report(file, checked)) print(line);
  return findings.length === 0 ? EXIT_OK : EXIT_FOUND;
}

function requireFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile()) return;
  const message = found === undefined ? `There is no file ${file}.` : `${file} is not a file.`;
  throw new ControlError("not_found", message, {
    hint: "Give the file that Belay was opened with: belay verify FILE.",
  });
}

/** Reads a file that no program has open without creating files. If a server opens it meanwhile, reads it again. */
function check(file: string): Checked {
  try {
    requireOurs(file, MIGRATIONS);
    const checked = inUse(file) ? undefined : checkAll(openReadOnly(atRest(file)));
    return checked === undefined || inUse(file) ? checkAll(openReadOnly(file)) : checked;
  } catch (error) {
    const { code, message } = storeError(error, file);
    throw code === "unavailable" ? new ControlError(code, message, { hint: UNREADABLE }) : storeError(error, file);
  }
}

const UNREADABLE = "Check that you may read the file, and, while a server has it open, the folder it is in.";

/** A program that has a store open keeps its write-ahead log beside it. */
const inUse = (file: string): boolean => existsSync(`${file}-wal`);

/** Opens the file as immutable, so that SQLite creates no files beside it and needs no write permission. */
function atRest(file: string): string {
  const url = pathToFileURL(file);
  url.searchParams.set("immutable", "1");
  return url.href;
}

function checkAll(database: Database): Checked {
  const checked: Checked = { sessions: 0, runs: 0, events: 0, trimmed: 0, findings: [] };
  try {
    const { sessions, read } = queries(database);
    let after: SessionId | undefined;
    for (;;) {
      const page: readonly { readonly id: SessionId }[] = sessions({
        after,
        limit: PAGE_EVENTS_MAX,
      });
      for (const { id } of page) checkSession(id, read, checked);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_EVENTS_MAX) return checked;
      after = last.id;
    }
  } finally {
    database.close();
  }
}

type Read = ReturnType<typeof queries>["read"];

function checkSession(session: SessionId, read: Read, checked: Checked): void {
  checked.sessions += 1;
  const findings = verify(counted(eventsIn(session, read), checked));
  checked.findings.push(...findings.map((finding) => ({ session, ...finding })));
}

/** The kept events of a log, a page at a time: a large log is never in memory as a whole. */
function* eventsIn(session: SessionId, read: Read): Generator<Recorded, void> {
  let after = 0;
  for (;;) {
    const page = read({ session, after, limit: PAGE_EVENTS_MAX });
    if (page === null) return;
    const events = eventsOf(page.rows, Math.max(after, page.keptFrom - 1), PAGE_EVENTS_MAX);
    yield* events;
    const last = events.at(-1);
    if (last === undefined) return;
    after = last.seq;
  }
}

function* counted(events: Iterable<Recorded>, checked: Checked): Generator<Recorded, void> {
  let first = true;
  for (const event of events) {
    checked.events += 1;
    if (event.type === "run.accepted") checked.runs += 1;
    if (first && event.seq > 1) checked.trimmed += 1;
    first = false;
    yield event;
  }
}

function report(file: string, checked: Checked): readonly string[] {
  const { sessions, runs, events, trimmed, findings } = checked;
  const lines = [`${file}: ${count(sessions, "session")}, ${count(runs, "run")}, ${count(events, "event")} read.`];
  if (trimmed > 0) lines.push(`${count(trimmed, "session")} had older events removed; only what is kept was checked.`);
  if (findings.length === 0) {
    lines.push("Every log is in order: each run was accepted before anything happened to it, ran alone, ended once");
    lines.push("at most, and ended as cancelled only where a cancel stands before its end. Nothing was found.");
    return lines;
  }
  lines.push(`${count(findings.length, "finding")}:`);
  for (const { session, guarantee, seq, message } of findings.slice(0, SHOWN_MAX)) {
    lines.push(`  ${guarantee}  ${session} at ${seq}: ${message}`);
  }
  if (findings.length > SHOWN_MAX) lines.push(`  and ${findings.length - SHOWN_MAX} more; --json lists all of them.`);
  lines.push("This should not happen: keep the file as it is, and report what you see here.");
  return lines;
}
