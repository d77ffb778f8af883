// Composes a server: opens its parts in order, and closes them in the reverse order.
//
// Invariants
// 1. The store's lock comes first. Its holder listens before it resumes any run, so that every live run can be stopped.
// 2. Until everything is open, every request is answered with 503 and Retry-After.
// 3. What was opened is closed, even if a later step of opening fails.

import type { ServerConfig } from "../../../config/config.ts";
import { ControlError } from "../../../core/errors.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { RetentionStatus } from "../../../core/model/upkeep.ts";
import { isMissing } from "../../../core/optional-package.ts";
import { Guard, type GuardOptions } from "../../../http/auth/guard.ts";
import { Denial } from "../../../http/auth/guard-denial.ts";
import { openTokens, type Tokens } from "../../../http/auth/tokens.ts";
import { type Handler, makeHandler } from "../../../http/handler.ts";
import type { ServerMetrics } from "../../../http/observer.ts";
import type { Handle } from "../../../http/transport/node-server.ts";
import type { Status } from "../../../ports/explanation.ts";
import type { Notice } from "../../../ports/hooks.ts";
import { isShortOfFiles } from "../../../process/launch/file-limit.ts";
import type { Belay } from "../../../sdk/belay.ts";
import { type DataLock, takeDataDirectory } from "../../../sdk/data-lock.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { openAuditTrail } from "../../../telemetry/audit/audit-file.ts";
import { type AuditTrail, memoryAuditTrail } from "../../../telemetry/audit/audit-trail.ts";
import { eventMetrics } from "../../../telemetry/event-counters.ts";
import type { Log } from "../../../telemetry/log.ts";
import { Metrics } from "../../../telemetry/metrics.ts";
import type { Redactor } from "../../../telemetry/redactor.ts";
import type { Telemetry, TelemetryOptions } from "../../../telemetry/telemetry.ts";
import { type RejectionGuard, surviveRejections, UNHANDLED_REJECTION } from "../unhandled-rejections.ts";
import { checkOpenFiles, FileWatch } from "./file-watch.ts";
import { type Listeners, openListeners } from "./listeners.ts";
import { checkPlan, type GivenAgent, makePrivate, openRuntime, type Runtime, type RuntimePlan } from "./runtime.ts";
import { StartRecord } from "./start-record.ts";

export interface ComposeOptions {
  readonly plan: RuntimePlan;
  readonly tcp: boolean;
  readonly log: Log;
  readonly redact: Redactor;
  readonly version: string;
  /** Replaces the agent that the configuration names. */
  readonly agent?: GivenAgent;
  /** `processes`: tests containment at the start, not when the first process is started. */
  readonly first?: "processes";
}

export interface ComposedServer {
  readonly runtime: Runtime;
  readonly audit: AuditTrail;
  readonly listeners: Listeners;
  readonly lock: DataLock;
  readonly tokenFile: string;
  /** Reads tokens and certificates from disk again. */
  reload(): void;
  /** Shuts down gracefully. Resolves with the sessions that did not come to rest in time. */
  close(how: { readonly mode: "park" | "cancel"; readonly limitMs: number }): Promise<readonly SessionId[]>;
}

export async function composeServer(options: ComposeOptions): Promise<ComposedServer> {
  const { plan } = options;
  checkPlan(plan, options.agent);
  checkOpenFiles();
  if (plan.store !== ":memory:") makePrivate(plan.store);
  const lock = await takeDataDirectory(plan.home, plan.store);
  try {
    return await openBehind(lock, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openBehind(lock: DataLock, options: ComposeOptions): Promise<ComposedServer> {
  const { plan, log } = options;
  const server = plan.config.server ?? {};
  const tokens = openTokens({
    dir: plan.home.dir,
    clock: systemClock,
    onTrouble: (error) => log.warn("the tokens cannot be read; none is valid until they can", { error }),
  });
  const { file: tokenFile } = tokens.ensureLocal();
  const names = { names: server.hosts ?? [], origins: server.origins ?? [] };
  const guard = new Guard({ tokens, clock: systemClock, ...names, ...rateLimitsOf(server) });
  let ready: Handle | undefined;
  const listeners = await openListeners(
    async (request) => (ready === undefined ? starting.answer(request.id) : ready(request)),
    {
      ...{ home: plan.home, server, tcp: options.tcp },
      onTrouble: (error, requestId) => log.error("a request has failed", { requestId, error }),
    },
  );
  if (listeners.served !== undefined) guard.serves(listeners.served);
  try {
    const inside = await openInside(options, { guard, socket: listeners.socket, store: lock.store });
    ready = inside.handler.handle;
    return composed(inside, { lock, listeners, tokens, tokenFile, log });
  } catch (error) {
    await listeners.close(0);
    tokens.close();
    throw error;
  }
}

/** The burst limit is twice the rate per second. */
function rateLimitsOf({ crowd = {} }: ServerConfig): Partial<GuardOptions> {
  const { changesPerSecond: rate, streamsPerToken } = crowd;
  return {
    ...(rate === undefined ? {} : { mutationsPerSecond: rate, mutationsBurst: 2 * rate }),
    ...(streamsPerToken === undefined ? {} : { streamsPerToken }),
  };
}

const starting = new Denial(503, "unavailable", "The server is starting.", {
  hint: "It opens its store and resumes its runs. Send the request again in a second, with the same idempotency key.",
  headers: { "retry-after": "1" },
});

interface Inside {
  readonly runtime: Runtime;
  readonly audit: AuditTrail;
  readonly telemetry: Telemetry | undefined;
  readonly handler: Handler;
  readonly rejections: RejectionGuard;
}

/** Access control, and the socket and the store of the server. */
interface ServerAccess {
  readonly guard: Guard;
  readonly socket: string;
  readonly store: DataLock["store"];
}

/** Opens the runtime, the audit trail, telemetry and the request handler. */
async function openInside(options: ComposeOptions, { guard, socket, store: opened }: ServerAccess): Promise<Inside> {
  const { plan, log, redact, version, agent, first } = options;
  const metrics = new Metrics();
  const measure = eventMetrics(metrics);
  const telemetry = await openTelemetry({ redact, version });
  const onRecorded = (session: SessionId, events: readonly Recorded[]): void => {
    measure(session, events);
    telemetry?.observe(session, events);
    startRecord.check();
  };
  const startRecord = new StartRecord();
  const onNotice = (notice: Notice): void => {
    if (notice.type === "process") startRecord.notice(notice.message);
    logNotice(log, notice);
  };
  const given = agent === undefined ? {} : { agent };
  const rejections = surviveRejections((error) => log.error(UNHANDLED_REJECTION, { error }));
  const loopWatch = log.form === "json" ? "json" : "text";
  const begin = { ...given, ...(first === undefined ? {} : { first }) };
  const runtime = await openRuntime(plan, { onNotice, onRecorded, loopWatch, socket, opened, ...begin }).catch(
    (error: unknown) => {
      rejections.dispose();
      throw error;
    },
  );
  try {
    // After the store: its lock prevents two servers from writing one trail.
    const audit =
      plan.store === ":memory:"
        ? memoryAuditTrail(redact)
        : await openAuditTrail({ folder: plan.home.auditDir, redact, clock: systemClock, log });
    await startRecord.begin(audit, () => runtime.belay.load.tier);
    const scrape: Scrape = { status: undefined };
    gauges(metrics, runtime, audit, scrape);
    const about = { name: "belay_rejections_stray", help: "Unhandled promise rejections." };
    metrics.gauge(about, () => rejections.count);
    const parts = { control: runtime.belay, guard, clock: systemClock, version, log, audit };
    return {
      runtime,
      audit,
      telemetry,
      rejections,
      handler: makeHandler({ ...parts, metrics: serverMetrics(metrics, runtime.belay, scrape) }),
    };
  } catch (error) {
    await runtime.belay.close({ limitMs: 0 });
    rejections.dispose();
    throw error;
  }
}

/** Undefined without the `@opentelemetry/api` package: no SDK of OpenTelemetry can be registered then. */
async function openTelemetry(options: TelemetryOptions): Promise<Telemetry | undefined> {
  try {
    const { Telemetry } = await import("../../../telemetry/telemetry.ts");
    return new Telemetry(options);
  } catch (error) {
    if (isMissing(error, "@opentelemetry/api")) return undefined;
    throw error;
  }
}

function composed({ runtime, audit, telemetry, handler, rejections }: Inside, outside: Outside): ComposedServer {
  const { lock, listeners, tokens, tokenFile, log } = outside;
  const files = new FileWatch(systemClock, log);
  return {
    runtime,
    audit,
    listeners,
    lock,
    tokenFile,
    reload: () => {
      tokens.reload();
      listeners.reload();
    },
    close: async ({ mode, limitMs }) => {
      // Prompts are refused from this tick on. Waiting and following clients are disconnected only after the runs have
      // ended, so that they get the outcomes; cancels are answered until then.
      // If the store was removed, closing the Belay rejects; everything else is closed nevertheless.
      const closed = runtime.belay.close({ mode, limitMs });
      await inTurn([
        () => closed,
        () => handler.drain(),
        () => listeners.close(ANSWERS_MS),
        () => lock.release(),
        () => files.close(),
        () => tokens.close(),
        () => telemetry?.close(),
        () => audit.close(),
        () => rejections.dispose(),
      ]);
      return (await closed).unfinished;
    },
  };
}

/** Runs every step, even after one has failed. Rejects with the first error. */
async function inTurn(steps: readonly (() => unknown)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

interface Outside {
  readonly lock: DataLock;
  readonly listeners: Listeners;
  readonly tokens: Tokens;
  readonly tokenFile: string;
  readonly log: Log;
}

/** Time to write the last responses, which takes milliseconds once everything has ended. */
const ANSWERS_MS = 1_000;

function logNotice(log: Log, notice: Notice): void {
  switch (notice.type) {
    case "late":
      log.warn("abandoned work has ended late; its result was dropped", { ...notice });
      break;
    case "store":
      log.warn("the store fails; writes that cannot be refused are retried", { ...notice });
      break;
    case "hook":
      log.warn("a hook has failed", { ...notice });
      break;
    case "process":
      if (notice.warning === true) log.warn(notice.message);
      else log.info(notice.message);
      break;
    case "directory":
      log.warn(notice.message);
      break;
    case "blocked":
      log.error("code of an agent or a tool held up the event loop; nothing could be stopped meanwhile", { ...notice });
      break;
    case "bug":
      log.error("a fault in Belay", { session: notice.session, error: notice.error });
      break;
  }
}

/** The status read for the current scrape: gauges are read synchronously. */
interface Scrape {
  status: Status | undefined;
}

function gauges(metrics: Metrics, { belay }: Runtime, audit: AuditTrail, scrape: Scrape): void {
  const gauge = (name: string, help: string, read: () => number): void => metrics.gauge({ name, help }, read);
  gauge("belay_runs_live", "Runs that are live.", () => belay.load.live);
  gauge("belay_sessions_waiting", "Sessions that wait for a place among the live runs.", () => belay.load.waiting);
  gauge("belay_processes_live", "Processes that are running.", () => belay.load.processes);
  gauge("belay_results_late", "Results of abandoned work that were dropped.", () => belay.load.late);
  sizes(gauge, belay, scrape);
  gauge("belay_audit_records_missed", "Records that could not be kept.", () => audit.missed);
}

/** Gauges that reveal slow growth: the size of the store, and the resources of the process. */
function sizes(gauge: (name: string, help: string, read: () => number) => void, belay: Belay, scrape: Scrape): void {
  const known = <V>(value: V | undefined): V => {
    if (value === undefined) throw new ControlError("unavailable", "It is not known.");
    return value;
  };
  gauge("belay_store_bytes", "Size of the store, including its write-ahead log.", () => known(belay.size?.bytes));
  gauge("belay_store_free_bytes", "Unused part of the store's size.", () => known(belay.size?.freeBytes));
  gauge("belay_store_sessions", "Sessions in the store.", () => known(belay.size?.sessions));
  gauge("belay_store_events", "Events in the store.", () => known(belay.size?.events));
  const removed = (): RetentionStatus => known(scrape.status?.retention);
  gauge("belay_retention_removed_events", "Events that retention has removed.", () => removed().removedEvents);
  gauge("belay_retention_deleted_sessions", "Sessions that retention has deleted.", () => removed().deletedSessions);
  gauge("belay_process_memory_bytes", "Resident memory.", () => belay.resources.memoryBytes);
  gauge("belay_process_heap_bytes", "JavaScript heap in use.", () => belay.resources.heapBytes);
  gauge("belay_process_open_files", "Open files and sockets.", () => known(belay.resources.descriptors));
  gauge(
    "belay_loop_delay_seconds",
    "The worst delay of the event loop in the last minute or two.",
    () => known(belay.resources.loopDelayMs) / 1_000,
  );
}

function serverMetrics(metrics: Metrics, belay: Belay, scrape: Scrape): ServerMetrics {
  let open = 0;
  let acp = 0;
  const requests = metrics.counter<"route" | "status">({
    name: "belay_http_requests_total",
    help: "Requests by route and status.",
    labels: ["route", "status"],
    // Both sets are bounded: some fifty routes, and a dozen statuses. Unknown paths are counted without a route.
    seriesMax: 1_000,
  });
  metrics.gauge({ name: "belay_acp_connections", help: "Connections that speak ACP." }, () => acp);
  metrics.gauge({ name: "belay_http_streams_open", help: "Streams of events that are open." }, () => open);
  return {
    isShortOfFiles: () => isShortOfFiles(),
    answered: (route, status) => requests.add(1, { route, status: String(status) }),
    streams: (count) => {
      open = count;
    },
    acp: (count) => {
      acp = count;
    },
    text: async () => {
      // Refreshed, unless it was read recently.
      scrape.status = await belay.status().catch(() => undefined);
      return metrics.text();
    },
  };
}
