// `belay logs`: what a process has said, what happened in a run or a session, or who asked for what.
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
import { eventLine } from "../../shared/format/event-line.ts";
import { plainText } from "../../shared/format/plain-text.ts";
import { resolveId } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";
import { auditLine } from "./logs-audit.ts";

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

/** From the beginning to where it stands, or, if it is followed, to its end. */
async function output(control: BelayControl, id: `proc_${string}`, options: LogsOptions): Promise<void> {
  const child = await control.session(sessionOf(id)).processes.get(id);
  const wish = { stream: options.stream ?? "all" } as const;
  if (options.follow === true) {
    for await (const page of child.follow(wish)) showPage(page, options);
    return;
  }
  let offset = 0;
  for (;;) {
    const page = await child.read({ ...wish, offset });
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
    // On a terminal it must not be able to do anything; a file gets every byte of it.
    process.stdout.write(process.stdout.isTTY === true ? plainText(page.text) : page.text);
  }
}

const nothingKept = (id: string): ControlError =>
  new ControlError("not_found", `Of ${id} no output is kept.`, {
    hint: "Output is kept beside the store, for as long as the store keeps the process.",
  });

interface EventsFlags extends LogsOptions {
  /** Undefined: everything in the session. */
  readonly run: RunId | undefined;
}

/** What is recorded by now; followed, also what comes, to the end of the run. */
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

/** They are held until the oldest of them is known. */
const RECORDS_MAX = 10_000;

/** Newest last, as people read. */
async function auditTrail({ json, ...options }: LogsOptions): Promise<number> {
  const limit = wholeNumber(options.limit, "--limit", { from: 1, to: RECORDS_MAX });
  if (options.url !== undefined || options.socket !== undefined || options.store !== undefined) throw notHere();
  const home = openDataDir({ home: options.home, env: process.env });
  const records: AuditRecord[] = [];
  let before: string | undefined;
  // A home that no server has used yet has no trail.
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
  if (records.length === 0 && !json) print("Nobody has asked for anything yet.");
  return EXIT_OK;
}

const notHere = (): ControlError =>
  new ControlError("invalid", "The audit trail is read from the home, not from a server or a store.", {
    hint: "Leave --url, --socket and --store away; from afar it is GET /v1/audit, with a token that has admin.",
  });
