// Who asked for what, and what they were told: the trail every control request leaves. And one that is kept in memory.
import { ControlError } from "../../core/errors.ts";
import { AUDIT_MEMORY_MAX, AUDIT_PAGE_MAX } from "../limits.ts";
import type { Redact } from "../redactor.ts";
import { type AuditRecord, keptRecord } from "./audit-record.ts";

export interface AuditTrail {
  /**
   * Resolves once the record survives the end of this program, also a sudden one; not that of the machine. Never
   * rejects, and waits only so long: a request is answered also if its record cannot be kept. That is counted.
   */
  note(record: AuditRecord): Promise<void>;
  /** Newest first. A page may be empty and still have a `next`: what was looked for is further back. */
  read(query: AuditQuery): Promise<AuditPage>;
  /** Records that could not be kept. */
  readonly missed: number;
  close(): Promise<void>;
}

export interface AuditQuery {
  /** The `next` of the page before. */
  readonly before?: string;
  readonly limit: number;
  readonly tenant?: string;
  readonly target?: string;
  readonly actor?: string;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** Where older ones are read from. Undefined: there are none. */
  readonly next?: string;
}

/** Whether a record is among those that are asked for. */
export function isAskedFor(record: AuditRecord, { tenant, target, actor }: AuditQuery): boolean {
  return (
    (tenant === undefined || record.tenant === tenant) &&
    (target === undefined || record.target === target) &&
    (actor === undefined || record.actor === actor)
  );
}

/** As many as were asked for, within reason. */
export function pageSize({ limit }: AuditQuery): number {
  if (Number.isSafeInteger(limit) && limit > 0) return Math.min(limit, AUDIT_PAGE_MAX);
  throw new ControlError("invalid", `A page of ${limit} records cannot be read. Ask for 1 to ${AUDIT_PAGE_MAX}.`);
}

export const badCursor = (before: string): ControlError =>
  new ControlError("invalid", `${JSON.stringify(before.slice(0, 40))} is not a place in the audit trail.`, {
    hint: "Give the `next` of an earlier page as it came, or leave it out to begin with the newest.",
  });

/** For tests, and for a server that keeps nothing. The oldest records make room for new ones. */
export function memoryAuditTrail(redact: Redact): AuditTrail {
  let records: AuditRecord[] = [];
  /** How many were here before the first that still is. */
  let gone = 0;
  return {
    missed: 0,
    async note(record) {
      records.push(keptRecord(record, redact));
      // Half at a time: moving them all for each new one would cost more the more there are.
      if (records.length < AUDIT_MEMORY_MAX * 2) return;
      gone += AUDIT_MEMORY_MAX;
      records = records.slice(AUDIT_MEMORY_MAX);
    },
    async read(query) {
      const size = pageSize(query);
      if (query.before !== undefined && !/^\d{1,15}$/.test(query.before)) throw badCursor(query.before);
      const found: AuditRecord[] = [];
      let index = Math.min(query.before === undefined ? Infinity : Number(query.before), gone + records.length);
      const first = Math.max(gone, gone + records.length - AUDIT_MEMORY_MAX);
      while (index > first && found.length < size) {
        index -= 1;
        const record = records[index - gone];
        if (record !== undefined && isAskedFor(record, query)) found.push(record);
      }
      return { records: found, ...(index > first ? { next: String(index) } : {}) };
    },
    async close() {},
  };
}
