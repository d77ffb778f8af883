// Reads one page of an audit trail in files: across all files, newest record first.
import { type FileHandle, open } from "node:fs/promises";
import { AUDIT_SCAN_BYTES_MAX } from "../limits.ts";
import { auditFile, auditNumbers } from "./audit-folder.ts";
import { type AuditRecord, parseRecord } from "./audit-record.ts";
import { linesBefore, type ScannedLine } from "./audit-scan.ts";
import { type AuditPage, type AuditQuery, badCursor, matches, pageSize } from "./audit-trail.ts";

/** A position in the trail: the number of a file, and an offset in it. */
interface PagePosition {
  readonly number: number;
  readonly at: number;
}

/** Returns one page. It writes nothing, so another process can read the trail of a running server. */
export async function auditPage(folder: string, query: AuditQuery): Promise<AuditPage> {
  const size = pageSize(query);
  const before = query.before === undefined ? undefined : positionOf(query.before);
  const numbers = (await auditNumbers(folder)).filter((one) => before === undefined || one <= before.number);
  const found: AuditRecord[] = [];
  let budget = AUDIT_SCAN_BYTES_MAX;
  for (const [index, number] of numbers.toReversed().entries()) {
    const hasOlder = index < numbers.length - 1;
    const end = before?.number === number ? before.at : Infinity;
    for await (const { text, at, bytes } of linesOf(auditFile(folder, number), end)) {
      const record = parseRecord(text);
      if (record !== undefined && matches(record, query)) found.push(record);
      budget -= bytes;
      if (found.length >= size || budget <= 0) {
        return { records: found, ...(at > 0 || hasOlder ? { next: `${number}.${at}` } : {}) };
      }
    }
  }
  return { records: found };
}

/** `bytes`: how many bytes of the file were read since the previous line. */
async function* linesOf(path: string, end: number): AsyncGenerator<ScannedLine & { readonly bytes: number }, void> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch {
    // It was the oldest file, and was deleted after the directory was listed.
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

function positionOf(cursor: string): PagePosition {
  const [, number, at] = /^(\d{1,12})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (number === undefined || at === undefined) throw badCursor(cursor);
  return { number: Number(number), at: Number(at) };
}
