// `belay logs`: prints the output of a process, the events of a run or a session, or the audit trail.
import { existsSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import type { Recorded } from "../../../core/model/event.ts";
import { isProcessId, isRunId, isSessionId, type RunId, type SessionId, sessionOf } from "../../../core/model/ids.ts";
import type { BelayControl } from "../../../ports/control.ts";
import type { OutputPage, Stream } from "../../../ports/spawner.ts";
import { openDataDir } from "../../../sdk/data-dir.ts";
import { auditPage } from "../../../telemetry/audit/audit-page.ts";
import type { AuditRecord } from "../../../telemetry/audit/audit-record.ts";
import { AUDIT_PAGE_MAX } from "../../../telemetry/limits.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { eventLine } from "../../shared/format/event-line.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { resolveId } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";

export interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean;
  readonly stream?: Stream;
  readonly limit: string;
  readonly json?: boolean;
}

export async function showLogs(typed: string | undefined, options: LogsOptions): Promise<number> {
  if (typed === undefined) return auditTrail(options);
  return withControl(options, async ({ control }) => {
    const id = await resolveId(control, typed, ["session", "run", "process"]);
    if (isProcessId(id)) await output(control, id, options);
    else if (isRunId(id)) await events(control, (await control.run(id)).sessionId, { ...options, run: id });
    else if (isSessionId(id)) await events(control, id, { ...options, run: undefined });
    return EXIT_OK;
  });
}

/** Prints the output from its beginning to its current end, or with --follow until the process has ended. */
async function output(control: BelayControl, id: `proc_${string}`, options: LogsOptions): Promise<void> {
  const child = await control.session(sessionOf(id)).processes.get(id);
  const request = { stream: options.stream ?? "all" } as const;
  if (options.follow === true) {
    for await (const page of child.follow(request)) showPage(page, options);
    return;
  }
  let offset = 0;
  for (;;) {
    const page = await child.read({ ...request, offset });
    if (page === undefined) throw nothingKept(id);
    showPage(page, options);
    if (page.end || page.to === offset) return;
    offset = page.to;
  }
}

function showPage(page: OutputPage, { json }: LogsOptions): void {
  if (json) print(JSON.stringify(page));
  else {
    if (page.missing > 0) process.stderr.write(`belay: ${page.missing} bytes before this are not kept any more\n`);
    // Sanitised on a terminal; a file gets every byte.
    process.stdout.write(process.stdout.isTTY === true ? plainText(page.text) : page.text);
  }
}

const nothingKept = (id: string): ControlError =>
  new ControlError("not_found", `No output of ${id} is kept.`, {
    hint: "Output is kept beside the store, for as long as the store keeps the process.",
  });

interface EventsFlags extends LogsOptions {
  /** Undefined: all events of the session. */
  readonly run: RunId | undefined;
}

/** Prints the recorded events, and with --follow the new ones until the run has ended. */
async function events(control: BelayControl, id: SessionId, options: EventsFlags): Promise<void> {
  const session = control.session(id);
  const { head } = await session.row();
  const row = options.run === undefined ? undefined : await (await control.run(options.run)).row();
  const after = (row?.acceptedAt ?? 1) - 1;
  const last = row?.settledAt ?? (options.follow === true ? Number.POSITIVE_INFINITY : head);
  if (after >= last) return;
  for await (const event of session.events({ after, deltas: "without" })) {
    if (event.type === "gap") {
      process.stderr.write(`belay: events up to position ${event.to} are not kept any more\n`);
      if (event.to >= last) return;
    }
    if (!("seq" in event)) continue;
    if (belongs(event, options.run)) print(options.json ? JSON.stringify(event) : eventLine(event));
    if (event.seq >= last || (event.type === "run.settled" && event.runId === options.run)) return;
  }
}

const belongs = (event: Recorded, run: RunId | undefined): boolean =>
  run === undefined || ("runId" in event && event.runId === run);

/** One record as a line: time, actor, action, target and answer. */
function auditLine({ at, actor, via, action, target, answer, code, note, tenant }: AuditRecord): string {
  const parts = [
    ...[dayAndTime(at), `${actor} (${via})`, action, target, "->", answer, code],
    ...[tenant === undefined ? undefined : `tenant ${tenant}`, note === undefined ? undefined : `“${note}”`],
  ];
  return plainLine(parts.filter((part) => part !== undefined).join(" "));
}

/** Records are kept in memory until the oldest one is read. */
const RECORDS_MAX = 10_000;

/** Prints the newest records, in ascending order. */
async function auditTrail({ json, ...options }: LogsOptions): Promise<number> {
  const limit = wholeNumber(options.limit, "--limit", { from: 1, to: RECORDS_MAX });
  if (options.url !== undefined || options.socket !== undefined || options.store !== undefined) throw notHere();
  const home = openDataDir({ home: options.home, env: process.env });
  const records: AuditRecord[] = [];
  let before: string | undefined;
  // A new data directory has no audit trail.
  while (existsSync(home.auditDir) && records.length < limit) {
    const page = await auditPage(home.auditDir, {
      limit: Math.min(limit - records.length, AUDIT_PAGE_MAX),
      ...(before === undefined ? {} : { before }),
    });
    records.push(...page.records);
    before = page.next;
    if (before === undefined) break;
  }
  for (const record of records.toReversed()) print(json ? JSON.stringify(record) : auditLine(record));
  if (records.length === 0 && !json) print("The audit trail is empty.");
  return EXIT_OK;
}

const notHere = (): ControlError =>
  new ControlError("invalid", "The audit trail is read from the home, not from a server or a store.", {
    hint: "Leave out --url, --socket and --store. Remotely, use GET /v1/audit with a token of scope admin.",
  });
