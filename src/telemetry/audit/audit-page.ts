// One page of an audit trail that is kept in files: across all of them, newest first.
import { type FileHandle, open } from "node:fs/promises";
import { AUDIT_SCAN_BYTES_MAX } from "../limits.ts";
import { auditFile, auditNumbers } from "./audit-folder.ts";
import { type AuditRecord, parseRecord } from "./audit-record.ts";
import { linesBefore, type ScannedLine } from "./audit-scan.ts";
import { type AuditPage, type AuditQuery, badCursor, isAskedFor, pageSize } from "./audit-trail.ts";

/** A place in the trail: the number of a file, and where in it. */
interface PagePosition {
  readonly number: number;
  readonly at: number;
}

/** Reads only: for whoever looks at the trail of a server from outside as well. */
export async function auditPage(folder: string, query: AuditQuery): Promise<AuditPage> {
  const size = pageSize(query);
  const before = query.before === undefined ? undefined : placeOf(query.before);
  const numbers = (await auditNumbers(folder)).filter((one) => before === undefined || one <= before.number);
  const found: AuditRecord[] = [];
  let budget = AUDIT_SCAN_BYTES_MAX;
  for (const [index, number] of numbers.toReversed().entries()) {
    const hasOlder = index < numbers.length - 1;
    const end = before?.number === number ? before.at : Infinity;
    for await (const { text, at, bytes } of linesOf(auditFile(folder, number), end)) {
      const record = parseRecord(text);
      if (record !== undefined && isAskedFor(record, query)) found.push(record);
      budget -= bytes;
      if (found.length >= size || budget <= 0) {
        return { records: found, ...(at > 0 || hasOlder ? { next: `${number}.${at}` } : {}) };
      }
    }
  }
  return { records: found };
}

/** `bytes`: how much of the file was passed to come here from the line below. */
async function* linesOf(path: string, end: number): AsyncGenerator<ScannedLine & { readonly bytes: number }, void> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch {
    // It was the oldest, and made room between the look and now.
    return;
  }
  try {
    const { size } = await file.stat();
    let below = Math.min(end, size);
    for await (const line of linesBefore(file, below)) {
      yield { ...line, bytes: below - line.at };
      below = line.at;
    }
  } finally {
    await file.close();
  }
}

function placeOf(cursor: string): PagePosition {
  const [, number, at] = /^(\d{1,12})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (number === undefined || at === undefined) throw badCursor(cursor);
  return { number: Number(number), at: Number(at) };
}
