// Removes old rows, like the database does.

import { RUN_ROWS_KEPT } from "../../core/limits.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { StoreTrimmed } from "../../core/model/upkeep.ts";
import type { Book, SessionPart } from "./projection.ts";

type Limit = StoreTrimmed["limit"];
interface Kept {
  readonly keptFrom: Seq;
  readonly snapshot: { readonly seq: Seq } | undefined;
}

/** The latest position up to `before` at which the log may be cut, and what prevents a later one. */
export function cutOf(book: Book, part: SessionPart, log: Kept, before: Seq): readonly [Seq, Limit] {
  let [cut, limit]: readonly [Seq, Limit] = [before, undefined];
  const bound = (at: Seq | undefined, name: Limit): void => {
    if (at !== undefined && at < cut) [cut, limit] = [at, name];
  };
  bound((log.snapshot?.seq ?? 0) + 1, "snapshot");
  for (const id of part.open) bound(book.runs.get(id)?.acceptedAt, "run");
  for (const id of part.openProcesses) bound(book.processes.get(id)?.requestedAt, "process");
  for (let last = Number.POSITIVE_INFINITY; cut < last; ) {
    last = cut;
    for (const id of part.runs) {
      const run = book.runs.get(id);
      if (run === undefined || run.acceptedAt < log.keptFrom) continue;
      if (run.acceptedAt < last && (run.settledAt ?? last) >= last) bound(run.acceptedAt, "run");
    }
  }
  return [cut, limit];
}

/** Removes the rows of runs whose events were removed, beyond the newest ones. */
export function forgetRows(book: Book, part: SessionPart, kept: Seq): void {
  const oldest = book.runs.get(part.runs.at(-RUN_ROWS_KEPT) ?? "run_")?.acceptedAt ?? 0;
  const before = part.runs.length < RUN_ROWS_KEPT ? 0 : Math.min(kept, oldest);
  if (before > 0) forget(book, part, before);
}

export function forgetSession(book: Book, session: SessionId): void {
  const part = book.sessions.get(session);
  if (part !== undefined) forget(book, part, Number.POSITIVE_INFINITY);
  for (const [id, call] of book.calls) if (call.session === session) book.calls.delete(id);
  book.sessions.delete(session);
}

function forget(book: Book, part: SessionPart, before: Seq): void {
  const session = book.runs.get(part.runs[0] ?? "run_")?.session;
  for (const [id, call] of book.calls) {
    if (call.session === session && call.settledAt < before) book.calls.delete(id);
  }
  const runs = part.runs.filter((id) => {
    const run = book.runs.get(id);
    if (run === undefined || run.acceptedAt >= before || (run.settledAt ?? before) >= before) return true;
    book.runs.delete(id);
    if (run.key !== undefined) part.keys.delete(run.key);
    return false;
  });
  part.runs.splice(0, part.runs.length, ...runs);
  const processes = part.processes.filter((id) => {
    const one = book.processes.get(id);
    if (one === undefined || one.requestedAt >= before || (one.settledAt ?? before) >= before) return true;
    book.processes.delete(id);
    return false;
  });
  part.processes.splice(0, part.processes.length, ...processes);
}
