// The server without its sockets: a function from a request to a response. It translates between HTTP and the control.
//
// Invariants
// 1. A request that is not admitted changes nothing and learns nothing, not even whether something exists.
// 2. Once its body is read, a prompt is registered in the same tick: the order of arrival is the order of acceptance.
// 3. When the client disconnects, only the response ends.
// 4. A control request is recorded in the audit trail before it is answered. Internal errors are logged, not sent.

import { ControlError, messageOf } from "../core/errors.ts";
import { withPackage } from "../core/optional-package.ts";
import type { Clock } from "../ports/clock.ts";
import type { BelayControl } from "../ports/control.ts";
import type { AcpConnections } from "./acp/acp-connections.ts";
import { ACP_PATH } from "./acp/acp-http.ts";
import { AuditLog } from "./audit-log.ts";
import type { Gatekeeper } from "./auth/guard.ts";
import { Denial } from "./auth/guard-denial.ts";
import { checkKinds, isOwn, notFoundIn } from "./auth/tenancy.ts";
import { BODY_BYTES_MAX } from "./limits.ts";
import { NO_LOG, type ServerAudit, type ServerLog, type ServerMetrics } from "./observer.ts";
import { openApiText } from "./openapi.ts";
import { checkBody, checkQuery } from "./routes/check-request.ts";
import { checkKey } from "./routes/request-headers.ts";
import { isMutation, type Route } from "./routes/route.ts";
import type { Reply, RouteHandlers } from "./routes/route-handler.ts";
import { type Match, matchRoute } from "./routes/route-match.ts";
import { runHandlers } from "./routes/run-handlers.ts";
import { serverHandlers } from "./routes/server-handlers.ts";
import { sessionHandlers } from "./routes/session-handlers.ts";
import { errorResponse } from "./routes/status-code.ts";
import { Waits } from "./routes/wait-or-disconnect.ts";
import { EventTexts } from "./transport/event-text.ts";
import {
  type Actor,
  type HttpAnswer,
  type HttpRequest,
  type ResponseStream,
  SWITCHED,
  type Upgrade,
} from "./transport/http-exchange.ts";
import { OpenStreams } from "./transport/open-streams.ts";
import { SharedStreams } from "./transport/shared-streams.ts";
import { streamToSocket } from "./transport/stream-socket.ts";

export interface HandlerOptions {
  readonly control: BelayControl;
  readonly guard: Gatekeeper;
  readonly clock: Clock;
  /** The version of this program, for the OpenAPI document. */
  readonly version: string;
  readonly log?: ServerLog;
  readonly audit?: ServerAudit;
  readonly metrics?: ServerMetrics;
}

export function makeHandler(options: HandlerOptions): Handler {
  return new Handler(options);
}

type Found = Extract<Match, { kind: "found" }>;

/** The route of ACP. It is not in the table: another protocol defines its messages and their permissions. */
type Acp = { readonly kind: "acp"; readonly route: Pick<Route, "method" | "scope" | "stop"> };

/** Exempt from the rate limit: each ACP message is counted separately, so that a stop is never refused. */
const ACP_ROUTE = { scope: "read", stop: true } as const;
const ACP_ALLOW = "GET, POST, DELETE, OPTIONS";

/** The state of a request while it is handled. */
interface Exchange {
  readonly request: HttpRequest;
  readonly match: Match | Acp;
  actor: Actor | undefined;
  body: unknown;
  /** Headers that the guard adds to the response. */
  headers: Readonly<Record<string, string>>;
}

interface Result {
  readonly answer: HttpAnswer;
  /** The result for the audit trail. `target` is set if the path does not contain it. */
  readonly audit: { readonly answer: string; readonly code?: string; readonly target?: string };
}

export class Handler {
  readonly #options: HandlerOptions;
  readonly #log: ServerLog;
  readonly #waiting: Waits;
  readonly #streams: OpenStreams;
  readonly #audit: AuditLog;
  readonly #handlers: RouteHandlers;
  #acp: Promise<AcpConnections> | undefined;

  constructor(options: HandlerOptions) {
    const { control, clock, guard, audit, metrics, version } = options;
    const texts = new EventTexts();
    this.#options = options;
    this.#log = options.log ?? NO_LOG;
    this.#waiting = new Waits(clock);
    this.#audit = new AuditLog(audit, clock, this.#log);
    this.#streams = new OpenStreams({
      clock,
      guard,
      onError: (error, { id }) => this.#log.warn("an event stream has failed", { requestId: id, error }),
      onCountChanged: (open) => metrics?.streams(open),
    });
    const shared = new SharedStreams(this.handle);
    const parts = { control, texts, shared, waiting: this.#waiting, audit, metrics, now: () => clock.now() };
    let document: string | undefined;
    const openApi = (): string => {
      document ??= openApiText(version);
      return document;
    };
    const server = serverHandlers({ ...parts, openApi });
    this.#handlers = { ...server, ...sessionHandlers(parts), ...runHandlers(parts) };
  }

  /** The number of open streams. */
  get streams(): number {
    return this.#streams.count;
  }

  /** Handles a request. Never rejects. */
  readonly handle = async (request: HttpRequest): Promise<HttpAnswer> => {
    const match = request.path === ACP_PATH ? acpMatch(request.method) : matchRoute(request.method, request.path);
    const exchange: Exchange = { request, match, actor: undefined, body: undefined, headers: {} };
    const { answer, audit } = await this.#respond(exchange);
    if (match.kind === "found" && isAudited(match.route, audit)) await this.#note(exchange, match, audit);
    if (match.kind === "acp" && audit.answer === "refused") await this.#noteAcp(exchange, match, audit);
    const { status } = answer;
    // All requests without a valid token share one label, so that they cannot create new ones.
    this.#options.metrics?.answered(exchange.actor === undefined ? "none" : nameOf(match), status);
    this.#log.debug("answered", { requestId: request.id, method: request.method, path: request.path, status });
    if (answer === SWITCHED) return answer;
    return { ...answer, headers: { ...exchange.headers, ...answer.headers, "x-request-id": request.id } };
  };

  /** Accepts no new streams, ends open ones with a `bye` event, and answers waiting requests. */
  async drain(): Promise<void> {
    this.#waiting.close();
    const acp = this.#acp;
    this.#acp ??= Promise.reject(new ControlError("shutting_down", "The server is shutting down."));
    this.#acp.catch(() => {});
    await Promise.all([this.#streams.drain(), acp?.then((context) => context.drain(), messageOf)]);
  }

  async #respond(exchange: Exchange): Promise<Result> {
    const { request, match } = exchange;
    try {
      const front = this.#options.guard.front(request);
      if (front.kind === "answered") return { answer: front.answer, audit: { answer: "answered" } };
      if (front.kind === "denied") throw front.denial;
      exchange.headers = front.headers;
      if (match.kind === "acp") {
        const actor = this.#admit(exchange, match.route);
        return { answer: await (await this.#acpConnections()).answer(request, actor), audit: { answer: "done" } };
      }
      const found = requireFound(match);
      const reply = await this.#handleRoute(exchange, found);
      return { answer: await this.#encoded(reply, exchange), audit: auditOf(reply) };
    } catch (thrown) {
      const { error, answer } = errorResponse(thrown, request.id);
      this.#logError(error, exchange);
      return { answer, audit: { answer: "refused", code: error.code } };
    }
  }

  async #handleRoute(exchange: Exchange, { name, route, params }: Found): Promise<Reply> {
    const { request } = exchange;
    const actor = this.#admit(exchange, route);
    checkKinds(params);
    const query = checkQuery(route, request.query);
    const key = keyOf(route, request);
    const { body } = route;
    if (body !== undefined) exchange.body = checkBody(body, await request.body(BODY_BYTES_MAX), route);
    const own = isOwn(this.#options.control, actor, params);
    // Awaited only if it is a promise: see the second invariant.
    if (own === false || (own !== true && !(await own))) throw notFoundIn(params);
    // Decoding: the schemas of this route have checked everything, which the compiler cannot follow through the table.
    const handler = this.#handlers[name] as (request: unknown) => Promise<Reply>;
    const reply = await handler({ actor, params, query, body: exchange.body, key, request });
    // The token may have been revoked while a read waited. The result of a mutation is sent anyway.
    if (!isMutation(route) && request.query.has("waitMs")) this.#admit(exchange, route);
    return reply;
  }

  #acpConnections(): Promise<AcpConnections> {
    const { control, guard, clock, version, audit, metrics } = this.#options;
    const parts = { control, guard, clock, version, log: this.#log, audit, metrics };
    const load = () => import("./acp/open-acp.ts");
    this.#acp ??= withPackage("@agentclientprotocol/sdk", "/acp", load).then(({ openAcp }) => openAcp(parts));
    return this.#acp;
  }

  #admit(exchange: Exchange, route: Pick<Route, "method" | "scope" | "stop" | "serverWide">): Actor {
    const { request } = exchange;
    const { scope, stop, serverWide } = route;
    const admission = this.#options.guard.admit(request, { scope, mutation: isMutation(route), stop, serverWide });
    exchange.actor = admission.actor;
    if (admission.kind === "denied") throw admission.denial;
    if (scope !== "public") request.onAdmitted?.();
    return admission.actor;
  }

  async #encoded(reply: Reply, { actor, request }: Exchange): Promise<HttpAnswer> {
    switch (reply.kind) {
      case "json":
        return { status: reply.status, headers: JSON_HEADERS, body: JSON.stringify(reply.body) };
      case "text":
        return { status: reply.status, headers: { "content-type": reply.type }, body: reply.text };
      case "events": {
        if (actor === undefined) throw new ControlError("internal", "A stream was opened without an actor.");
        const events = this.#streams.open(reply.source, actor, request);
        if (request.upgrade === undefined || reply.receive === undefined) {
          return { status: reply.status, headers: SSE_HEADERS, body: events };
        }
        return this.#switch(request.upgrade, events, reply.receive);
      }
      case "empty":
        return { status: reply.status, headers: {}, body: undefined };
    }
  }

  async #switch(upgrade: Upgrade, events: ResponseStream, receive: (text: string) => void): Promise<HttpAnswer> {
    try {
      void streamToSocket({ socket: await upgrade.accept({}), events, receive, clock: this.#options.clock });
      return SWITCHED;
    } catch (thrown) {
      void events.return?.();
      throw thrown;
    }
  }

  #logError(error: ControlError, { request, actor }: Exchange): void {
    const { id: requestId, method, path } = request;
    const fields = { requestId, method, path, actor: actor?.name, code: error.code };
    if (error.code === "internal") this.#log.error("a request has failed", { ...fields, error });
    else if (error.code === "disconnected") this.#log.debug("the client disconnected", fields);
    else this.#log.warn(error.message, fields);
  }

  /** Records denied ACP requests. The ACP agent itself records each message that is admitted. */
  async #noteAcp({ request, actor }: Exchange, { route }: Acp, { answer, code }: Result["audit"]): Promise<void> {
    if (!isMutation(route) && request.upgrade === undefined) return;
    await this.#audit.note({ request, actor, action: "acp", target: undefined, answer, code, note: undefined });
  }

  #note({ request, actor, body }: Exchange, { route, name, params }: Found, audit: Result["audit"]): Promise<void> {
    const { action = name, target } = route.audit ?? {};
    return this.#audit.note({
      request,
      actor,
      action,
      target: target === undefined ? audit.target : params[target],
      answer: audit.answer,
      code: audit.code,
      note: noteIn(body),
    });
  }
}

/** A carrier route is recorded only if it is denied: the requests that it carries are recorded separately. */
const isAudited = (route: Route, { answer }: Result["audit"]): boolean =>
  isMutation(route) && (route.carrier !== true || answer === "refused");

const nameOf = (match: Match | Acp): string =>
  match.kind === "found" ? match.name : match.kind === "acp" ? "acp" : "none";

function acpMatch(method: string): Match | Acp {
  switch (method) {
    case "GET":
    case "POST":
    case "DELETE":
      return { kind: "acp", route: { ...ACP_ROUTE, method } };
    default:
      return { kind: "method", allow: ACP_ALLOW };
  }
}

const JSON_HEADERS = { "content-type": "application/json; charset=utf-8" } as const;

const SSE_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
  // Tells proxies not to buffer the response, which would delay every event.
  "x-accel-buffering": "no",
} as const;

function requireFound(match: Match): Found {
  if (match.kind === "found") return match;
  if (match.kind === "none") {
    throw new ControlError("not_found", "There is no such route.", { hint: "GET /openapi.json lists all routes." });
  }
  throw new Denial(405, "invalid", "This route does not support this method.", {
    hint: `It supports ${match.allow}.`,
    headers: { allow: match.allow },
  });
}

function keyOf(route: Route, request: HttpRequest): string | undefined {
  if (!isMutation(route)) return undefined;
  const key = checkKey(request.header("idempotency-key"));
  if (key === undefined || route.keyed !== "no") return key;
  throw new ControlError("invalid", "This route is not idempotent, so it does not accept an Idempotency-Key.");
}

/** The kind of the receipt, or `done` if the reply has none. */
function auditOf(reply: Reply): Result["audit"] {
  if (reply.kind !== "json" || !isRecord(reply.body)) return { answer: "done" };
  const { kind, sessionId, id } = reply.body;
  const target = [sessionId, id].find((one) => typeof one === "string");
  const answer = typeof kind === "string" ? kind : reply.status === 201 ? "created" : "done";
  return typeof target === "string" ? { answer, target } : { answer };
}

/** The note of a reason or of an answer. */
function noteIn(body: unknown): string | undefined {
  if (!isRecord(body)) return undefined;
  const { reason, note } = body;
  const found = isRecord(reason) ? reason.note : (reason ?? note);
  return typeof found === "string" ? found : undefined;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
