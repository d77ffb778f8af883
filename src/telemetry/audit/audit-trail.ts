// The audit trail: a record of every control request with its actor and its response. And an implementation in memory.
import { ControlError } from "../../core/errors.ts";
import { AUDIT_MEMORY_MAX, AUDIT_PAGE_MAX } from "../limits.ts";
import type { Redact } from "../redactor.ts";
import { type AuditRecord, keptRecord } from "./audit-record.ts";

export interface AuditTrail {
  /**
   * Resolves once the record survives a crash of this process, though not of the machine. It never rejects and has a
   * timeout: a request is answered even if its record cannot be kept. Such records are counted in `missed`.
   */
  note(record: AuditRecord): Promise<void>;
  /** Returns a page, newest record first. An empty page with a `next` means that older records are not searched yet. */
  read(query: AuditQuery): Promise<AuditPage>;
  /** Records that could not be kept. */
  readonly missed: number;
  close(): Promise<void>;
}

export interface AuditQuery {
  /** The `next` of the previous page. */
  readonly before?: string;
  readonly limit: number;
  readonly tenant?: string;
  readonly target?: string;
  readonly actor?: string;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** The cursor for older records. Undefined: there are none. */
  readonly next?: string;
}

/** Whether a record matches the filters of a query. */
export function matches(record: AuditRecord, { tenant, target, actor }: AuditQuery): boolean {
  return (
    (tenant === undefined || record.tenant === tenant) &&
    (target === undefined || record.target === target) &&
    (actor === undefined || record.actor === actor)
  );
}

/** The requested number of records, limited to AUDIT_PAGE_MAX. */
export function pageSize({ limit }: AuditQuery): number {
  if (Number.isSafeInteger(limit) && limit > 0) return Math.min(limit, AUDIT_PAGE_MAX);
  throw new ControlError("invalid", `\`limit\` must be a whole number from 1 to ${AUDIT_PAGE_MAX} (got ${limit}).`);
}

export const badCursor = (before: string): ControlError =>
  new ControlError("invalid", `${JSON.stringify(before.slice(0, 40))} is not a cursor of the audit trail.`, {
    hint: "Pass the `next` of an earlier page unchanged, or leave it out to start with the newest record.",
  });

/** An audit trail in memory, for tests and for a server without a database file. It evicts the oldest records. */
export function memoryAuditTrail(redact: Redact): AuditTrail {
  let records: AuditRecord[] = [];
  /** The number of evicted records. */
  let evicted = 0;
  return {
    missed: 0,
    async note(record) {
      records.push(keptRecord(record, redact));
      // Evicts half at a time: moving all records for each new one would take quadratic time.
      if (records.length < AUDIT_MEMORY_MAX * 2) return;
      evicted += AUDIT_MEMORY_MAX;
      records = records.slice(AUDIT_MEMORY_MAX);
    },
    async read(query) {
      const size = pageSize(query);
      if (query.before !== undefined && !/^\d{1,15}$/.test(query.before)) throw badCursor(query.before);
      const found: AuditRecord[] = [];
      let index = Math.min(query.before === undefined ? Infinity : Number(query.before), evicted + records.length);
      const first = Math.max(evicted, evicted + records.length - AUDIT_MEMORY_MAX);
      while (index > first && found.length < size) {
        index -= 1;
        const record = records[index - evicted];
        if (record !== undefined && matches(record, query)) found.push(record);
      }
      return { records: found, ...(index > first ? { next: String(index) } : {}) };
    },
    async close() {},
  };
}
