// The handlers of the routes for the whole server.

import { ControlError } from "../../core/errors.ts";
import { runOf, tenantPrefix } from "../../core/model/ids.ts";
import type { BelayControl } from "../../ports/control.ts";
import type { SessionRow } from "../../ports/store.ts";
import type { StreamUp } from "../../wire/stream-message.ts";
import { ROWS_DEFAULT } from "../limits.ts";
import type { ServerAudit, ServerMetrics } from "../observer.ts";
import { streamMessage } from "../schemas/request.ts";
import { allBatches } from "../transport/event-batches.ts";
import type { EventTexts } from "../transport/event-text.ts";
import type { SharedStreams } from "../transport/shared-streams.ts";
import { checkBody } from "./check-request.ts";
import { keyed, ownKeyed, ownKeys, reasonBy, within } from "./request-context.ts";
import { type RouteHandlers, reply } from "./route-handler.ts";
import { METRICS_TYPE, type SERVER_ROUTES } from "./server-routes.ts";
import type { Waits } from "./wait-or-disconnect.ts";

export interface ServerHandlerParts {
  readonly control: BelayControl;
  readonly texts: EventTexts;
  readonly waiting: Waits;
  readonly shared: SharedStreams;
  /** The OpenAPI document. Generated on the first call. */
  readonly openApi: () => string;
  readonly now: () => number;
  readonly audit: ServerAudit | undefined;
  readonly metrics: ServerMetrics | undefined;
}

export function serverHandlers(parts: ServerHandlerParts): RouteHandlers<keyof typeof SERVER_ROUTES> {
  return { ...serverState(parts), ...allSessions(parts), ...newSessions(parts) };
}

function serverState({ control, waiting, openApi, audit, metrics }: ServerHandlerParts) {
  return {
    health: async () => reply(200, { status: "ok" }),
    ready: async () => {
      if (waiting.closing) return reply(503, { status: "closing" });
      try {
        const { phase, trouble } = await control.status();
        if (phase !== "open") return reply(503, { status: "closing" });
        if (trouble !== undefined) return reply(503, { status: "trouble" });
        return metrics?.isShortOfFiles?.() === true ? reply(503, { status: "files" }) : reply(200, { status: "ready" });
      } catch {
        return reply(503, { status: "trouble" });
      }
    },
    openapi: async () => ({ kind: "text", status: 200, type: "application/json; charset=utf-8", text: openApi() }),
    metrics: async () => {
      if (metrics === undefined) throw new ControlError("not_found", "This server has no metrics.");
      return { kind: "text", status: 200, type: METRICS_TYPE, text: await metrics.text() };
    },
    status: async () => reply(200, await control.status()),
    audit: async ({ actor, query }) => {
      if (audit === undefined) throw new ControlError("not_found", "This server has no audit trail.");
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const { records, next } = await audit.read({ ...rest, limit, ...within(actor) });
      return reply(200, { records, next: next ?? null });
    },
  } satisfies Partial<RouteHandlers>;
}

function allSessions({ control, texts, shared }: ServerHandlerParts) {
  return {
    live: async ({ actor }) => reply(200, { sessions: await control.live(within(actor)) }),
    // Idempotent by its key: a retry after a lost response must not stop what has begun since.
    cancelAll: async ({ actor, body, key }) => {
      const { reason, ...rest } = body;
      const sender = { ...within(actor), ...ownKeys(actor), actor: actor.name };
      const options = { ...rest, ...sender, ...keyed(key), reason: reasonBy(actor, reason) };
      return reply(200, { sessions: await control.cancelAll(options) });
    },
    listSessions: async ({ actor, query }) => {
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const sessions = await control.sessions({ ...rest, limit, ...within(actor) });
      return reply(200, { sessions, next: sessions.length < limit ? null : (sessions.at(-1)?.id ?? null) });
    },
    findIds: async ({ actor, query }) => {
      const { prefix, ...rest } = query;
      return reply(200, await control.ids(prefix, { ...rest, ...within(actor) }));
    },
    allEvents: async ({ actor, query, request }) => {
      const header = request.header("last-event-id");
      const after = header === undefined || header === "" ? query.after : header;
      const from = after === undefined ? {} : { after };
      return {
        kind: "events",
        status: 200,
        source: (signal) => allBatches(control.events({ ...from, ...within(actor), signal }), texts),
      };
    },
    stream: async ({ actor, request }) => {
      const stream = shared.make(actor, request);
      return {
        kind: "events",
        status: 200,
        source: (signal) => shared.frames(stream, signal),
        receive: (text) => stream.receive(checkBody(streamMessage, text) as StreamUp),
      };
    },
    sendToStream: async ({ actor, body }) => {
      const stream = shared.find(body.stream, actor);
      for (const message of body.messages) stream.receive(message);
      return reply(202, {});
    },
    allQuestions: async ({ actor }) => {
      const explanations = await control.live(within(actor));
      const questions = explanations.flatMap(({ sessionId, live }) =>
        (live?.questions ?? []).map((one) => ({ ...one, sessionId, runId: runOf(one.id) })),
      );
      return reply(200, { questions });
    },
  } satisfies Partial<RouteHandlers>;
}

function newSessions({ control, now }: ServerHandlerParts) {
  return {
    createSession: async ({ actor, body, key }) => {
      const { tenant } = actor;
      if (tenant !== undefined && body.id !== undefined && !body.id.startsWith(tenantPrefix(tenant))) {
        throw new ControlError("invalid", `The id of the session must begin with "${tenantPrefix(tenant)}".`);
      }
      const existed = body.id !== undefined && (await exists(control, body.id));
      const from = now();
      const session = await control.createSession({ ...body, ...ownKeyed(actor, key), ...within(actor) });
      const row = await session.row();
      return existed || (key !== undefined && !isNew(row, from)) ? reply(200, row) : reply(201, row);
    },
    beginRun: async ({ actor, body, key }) => {
      const { prompt, ...rest } = body;
      const named = { ...ownKeyed(actor, key), ...within(actor), actor: actor.name };
      const run = control.prompt(prompt, { ...rest, ...named });
      return reply(202, { ...(await run.accepted), sessionId: run.sessionId });
    },
    cancelBegun: async ({ actor, params, body, key }) => {
      const options = { ...body, reason: reasonBy(actor, body.reason), ...keyed(key), actor: actor.name };
      return reply(200, await control.cancelPrompt(params.key, { ...options, ...ownKeys(actor), ...within(actor) }));
    },
  } satisfies Partial<RouteHandlers>;
}

/** Whether this request has created the session. With a key that is a guess: it is new and has one event. */
const isNew = ({ createdAt, head }: SessionRow, from: number): boolean => createdAt >= from && head === 1;

async function exists(control: BelayControl, id: string): Promise<boolean> {
  try {
    await control.session(id).row();
    return true;
  } catch (error) {
    if (error instanceof ControlError && error.code === "not_found") return false;
    throw error;
  }
}
