// A record of the audit trail as one line for people: when, who, what, and what they were told.
import type { AuditRecord } from "../../../telemetry/audit/audit-record.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { plainLine } from "../../shared/format/plain-text.ts";

export function auditLine({ at, actor, via, action, target, answer, code, note, tenant }: AuditRecord): string {
  const words = [
    ...[dayAndTime(at), `${actor} (${via})`, action, target, "->", answer, code],
    ...[tenant === undefined ? undefined : `tenant ${tenant}`, note === undefined ? undefined : `“${note}”`],
  ];
  return plainLine(words.filter((word) => word !== undefined).join(" "));
}
