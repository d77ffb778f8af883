// The server without its sockets: a request in, an answer out. It translates between HTTP and the control, and decides
// nothing else.
//
// Invariants
// 1. Whoever is not let in changes nothing and learns nothing, not even what is there.
// 2. Once its body is read, a prompt is registered in the same tick: the order of arrival is the order of acceptance.
// 3. Whoever asked being gone ends the answering of the request, and nothing else.
// 4. A control request is written down before it is answered. A failure inside is told to the log, not to the client.

import { ControlError, messageOf } from "../core/errors.ts";
import { withPackage } from "../core/optional-package.ts";
import type { Clock } from "../ports/clock.ts";
import type { BelayControl } from "../ports/control.ts";
import type { AcpConnections } from "./acp/acp-connections.ts";
import { ACP_PATH } from "./acp/acp-http.ts";
import { AuditLog } from "./audit-log.ts";
import type { Gatekeeper } from "./auth/guard.ts";
import { Denial } from "./auth/guard-denial.ts";
import { checkKinds, isOwn, missing } from "./auth/tenancy.ts";
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
import { failed } from "./routes/status-code.ts";
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
  /** Of this program, for the document. */
  readonly version: string;
  readonly log?: ServerLog;
  readonly audit?: ServerAudit;
  readonly metrics?: ServerMetrics;
}

export function makeHandler(options: HandlerOptions): Handler {
  return new Handler(options);
}

type Found = Extract<Match, { kind: "found" }>;

/** Beside the table: what goes in and out there is another protocol's, and so is who may ask for what of it. */
type Acp = { readonly kind: "acp"; readonly route: Pick<Route, "method" | "scope" | "stop"> };

/** Its messages are counted one by one, so that a stop among them is never refused. */
const ACP_ROUTE = { scope: "read", stop: true } as const;
const ACP_ALLOW = "GET, POST, DELETE, OPTIONS";

/** What is known of a request by the time it is answered. */
interface Case {
  readonly request: HttpRequest;
  readonly match: Match | Acp;
  actor: Actor | undefined;
  body: unknown;
  /** Headers that the guard wants on the answer. */
  headers: Readonly<Record<string, string>>;
}

interface Answered {
  readonly answer: HttpAnswer;
  /** What the audit trail says was answered, and about what if the path does not tell. */
  readonly told: { readonly answer: string; readonly code?: string; readonly target?: string };
}

export class Handler {
  readonly #options: HandlerOptions;
  readonly #log: ServerLog;
  readonly #waiting: Waits;
  readonly #streams: OpenStreams;
  readonly #audit: AuditLog;
  readonly #doings: RouteHandlers;
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
      failed: (error, { id }) => this.#log.warn("a stream of events has failed", { requestId: id, error }),
      changed: (open) => metrics?.streams(open),
    });
    const shared = new SharedStreams(this.handle);
    const parts = { control, texts, shared, waiting: this.#waiting, audit, metrics, now: () => clock.now() };
    let document: string | undefined;
    const openApi = (): string => {
      document ??= openApiText(version);
      return document;
    };
    const server = serverHandlers({ ...parts, openApi });
    this.#doings = { ...server, ...sessionHandlers(parts), ...runHandlers(parts) };
  }

  /** Streams that are open now. */
  get streams(): number {
    return this.#streams.count;
  }

  /** Answers. Never rejects. */
  readonly handle = async (request: HttpRequest): Promise<HttpAnswer> => {
    const match = request.path === ACP_PATH ? acpMatch(request.method) : matchRoute(request.method, request.path);
    const one: Case = { request, match, actor: undefined, body: undefined, headers: {} };
    const { answer, told } = await this.#settle(one);
    if (match.kind === "found" && isNoted(match.route, told)) await this.#note(one, match, told);
    if (match.kind === "acp" && told.answer === "refused") await this.#noteAcp(one, match, told);
    const { status } = answer;
    // A stranger chooses no label: whoever was not let in is counted together.
    this.#options.metrics?.answered(one.actor === undefined ? "none" : nameOf(match), status);
    this.#log.debug("answered", { requestId: request.id, method: request.method, path: request.path, status });
    if (answer === SWITCHED) return answer;
    return { ...answer, headers: { ...one.headers, ...answer.headers, "x-request-id": request.id } };
  };

  /** Takes no more streams, ends those there are with a last word, and keeps nobody waiting. */
  async drain(): Promise<void> {
    this.#waiting.close();
    const acp = this.#acp;
    this.#acp ??= Promise.reject(new ControlError("shutting_down", "The server is shutting down."));
    this.#acp.catch(() => {});
    await Promise.all([this.#streams.drain(), acp?.then((context) => context.drain(), messageOf)]);
  }

  async #settle(one: Case): Promise<Answered> {
    try {
      const front = this.#options.guard.front(one.request);
      if (front.kind === "answered") return { answer: front.answer, told: { answer: "answered" } };
      if (front.kind === "denied") throw front.denial;
      one.headers = front.headers;
      if (one.match.kind === "acp") {
        const actor = this.#admit(one, one.match.route);
        return { answer: await (await this.#context()).answer(one.request, actor), told: { answer: "done" } };
      }
      const found = requireFound(one.match);
      const reply = await this.#do(one, found);
      return { answer: await this.#encoded(reply, one), told: toldOf(reply) };
    } catch (thrown) {
      const { error, answer } = failed(thrown, one.request.id);
      this.#tell(error, one);
      return { answer, told: { answer: "refused", code: error.code } };
    }
  }

  async #do(one: Case, { name, route, params }: Found): Promise<Reply> {
    const { request } = one;
    const actor = this.#admit(one, route);
    checkKinds(params);
    const query = checkQuery(route, request.query);
    const key = keyOf(route, request);
    const { body } = route;
    if (body !== undefined) one.body = checkBody(body, await request.body(BODY_BYTES_MAX), route);
    const own = isOwn(this.#options.control, actor, params);
    // Not awaited where the answer is at hand: see the second invariant.
    if (own === false || (own !== true && !(await own))) throw missing(params);
    // Everything was checked by the schemas of this very route, which the compiler cannot follow through the table.
    const doing = this.#doings[name] as (ask: unknown) => Promise<Reply>;
    const reply = await doing({ actor, params, query, body: one.body, key, request });
    // Whoever has waited may not be let in any more. What was changed is told all the same.
    if (!isMutation(route) && request.query.has("waitMs")) this.#admit(one, route);
    return reply;
  }

  #context(): Promise<AcpConnections> {
    const { control, guard, clock, version, audit, metrics } = this.#options;
    const parts = { control, guard, clock, version, log: this.#log, audit, metrics };
    const load = () => import("./acp/open-acp.ts");
    this.#acp ??= withPackage("@agentclientprotocol/sdk", "/acp", load).then(({ openAcp }) => openAcp(parts));
    return this.#acp;
  }

  #admit(one: Case, route: Pick<Route, "method" | "scope" | "stop" | "serverWide">): Actor {
    const { scope, stop, serverWide: house } = route;
    const admission = this.#options.guard.admit(one.request, { scope, mutation: isMutation(route), stop, house });
    one.actor = admission.actor;
    if (admission.kind === "denied") throw admission.denial;
    if (scope !== "public") one.request.onAdmitted?.();
    return admission.actor;
  }

  async #encoded(reply: Reply, { actor, request }: Case): Promise<HttpAnswer> {
    switch (reply.kind) {
      case "json":
        return { status: reply.status, headers: JSON_HEADERS, body: JSON.stringify(reply.body) };
      case "text":
        return { status: reply.status, headers: { "content-type": reply.type }, body: reply.text };
      case "events": {
        if (actor === undefined) throw new ControlError("internal", "A stream was opened for nobody.");
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

  #tell(error: ControlError, { request, actor }: Case): void {
    const { id: requestId, method, path } = request;
    const fields = { requestId, method, path, actor: actor?.name, code: error.code };
    if (error.code === "internal") this.#log.error("a request has failed", { ...fields, error });
    else if (error.code === "disconnected") this.#log.debug("whoever asked is gone", fields);
    else this.#log.warn(error.message, fields);
  }

  /** What is let in is written down by the door, message by message. */
  async #noteAcp({ request, actor }: Case, { route }: Acp, { answer, code }: Answered["told"]): Promise<void> {
    if (!isMutation(route) && request.upgrade === undefined) return;
    await this.#audit.note({ request, actor, action: "acp", target: undefined, answer, code, note: undefined });
  }

  #note({ request, actor, body }: Case, { route, name, params }: Found, told: Answered["told"]): Promise<void> {
    const { action = name, target } = route.audit ?? {};
    return this.#audit.note({
      request,
      actor,
      action,
      target: target === undefined ? told.target : params[target],
      answer: told.answer,
      code: told.code,
      note: noteIn(body),
    });
  }
}

/** What carries others is recorded if it is refused; what it carries is recorded by itself. */
const isNoted = (route: Route, { answer }: Answered["told"]): boolean =>
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
  // Proxies that collect an answer before they hand it on would hold back every event.
  "x-accel-buffering": "no",
} as const;

function requireFound(match: Match): Found {
  if (match.kind === "found") return match;
  if (match.kind === "none") {
    throw new ControlError("not_found", "There is nothing at this address.", { hint: "GET /openapi.json lists them." });
  }
  throw new Denial(405, "invalid", "This address does not take this method.", {
    hint: `It takes ${match.allow}.`,
    headers: { allow: match.allow },
  });
}

function keyOf(route: Route, request: HttpRequest): string | undefined {
  if (!isMutation(route)) return undefined;
  const key = checkKey(request.header("idempotency-key"));
  if (key === undefined || route.keyed !== "no") return key;
  throw new ControlError("invalid", "This cannot be sent twice and be done once, so it takes no Idempotency-Key.");
}

/** The kind of the receipt. What has none was done. */
function toldOf(reply: Reply): Answered["told"] {
  if (reply.kind !== "json" || !isRecord(reply.body)) return { answer: "done" };
  const { kind, sessionId, id } = reply.body;
  const target = [sessionId, id].find((one) => typeof one === "string");
  const answer = typeof kind === "string" ? kind : reply.status === 201 ? "created" : "done";
  return typeof target === "string" ? { answer, target } : { answer };
}

/** What the person said with it: the note of a reason or of an answer. */
function noteIn(body: unknown): string | undefined {
  if (!isRecord(body)) return undefined;
  const { reason, note } = body;
  const said = isRecord(reason) ? reason.note : (reason ?? note);
  return typeof said === "string" ? said : undefined;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
