// The answers to the routes about the whole house.
import { type HOUSE_ROUTES, METRICS_TYPE } from "../api/house-routes.ts";
import type { BelayControl, CoveredSession } from "../control.ts";
import { ControlError } from "../core/control-error.ts";
import { runOf, tenantPrefix } from "../core/ids.ts";
import type { SessionRow } from "../ports.ts";
import { keyed, reasonBy, within } from "./asker.ts";
import { type Doings, reply } from "./doing.ts";
import { allPieces } from "./event-pieces.ts";
import type { EventTexts } from "./event-text.ts";
import { KeptAnswers } from "./kept-answers.ts";
import { ROWS_DEFAULT } from "./limits.ts";
import type { ServerAudit, ServerMetrics } from "./observer.ts";
import type { Waiting } from "./waiting.ts";

export interface HouseParts {
  readonly control: BelayControl;
  readonly texts: EventTexts;
  readonly waiting: Waiting;
  /** The document. Made when it is first asked for. */
  readonly openApi: () => string;
  readonly now: () => number;
  readonly audit: ServerAudit | undefined;
  readonly metrics: ServerMetrics | undefined;
}

export function houseDoings(parts: HouseParts): Doings<keyof typeof HOUSE_ROUTES> {
  return { ...aboutItself(parts), ...aboutAll(parts), ...beginnings(parts) };
}

/** How the server is. */
function aboutItself({ control, waiting, openApi, audit, metrics }: HouseParts) {
  return {
    health: async () => reply(200, { status: "ok" }),
    ready: async () => {
      if (waiting.closing) return reply(503, { status: "closing" });
      try {
        const { phase, trouble } = await control.status();
        if (phase !== "open") return reply(503, { status: "closing" });
        return trouble === undefined ? reply(200, { status: "ready" }) : reply(503, { status: "trouble" });
      } catch {
        return reply(503, { status: "trouble" });
      }
    },
    openapi: async () => ({ kind: "text", status: 200, type: "application/json; charset=utf-8", text: openApi() }),
    metrics: async () => {
      if (metrics === undefined) throw new ControlError("not_found", "This server keeps no metrics.");
      return { kind: "text", status: 200, type: METRICS_TYPE, text: metrics.text() };
    },
    status: async () => reply(200, await control.status()),
    audit: async ({ actor, query }) => {
      if (audit === undefined) throw new ControlError("not_found", "This server keeps no audit trail.");
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const { records, next } = await audit.read({ ...rest, limit, ...within(actor) });
      return reply(200, { records, next: next ?? null });
    },
  } satisfies Partial<Doings>;
}

/** What goes on in it. */
function aboutAll({ control, texts }: HouseParts) {
  const kept = new KeptAnswers<readonly CoveredSession[]>();
  return {
    live: async ({ actor }) => reply(200, { sessions: await control.live(within(actor)) }),
    // Sent again because its answer was lost, it must not stop what has begun since.
    cancelAll: async ({ actor, body, key }) => {
      const { reason, ...rest } = body;
      const options = { ...rest, ...within(actor), reason: reasonBy(actor, reason) };
      return reply(200, { sessions: await kept.once(actor, key, body, () => control.cancelAll(options)) });
    },
    listSessions: async ({ actor, query }) => {
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const sessions = await control.sessions({ ...rest, limit, ...within(actor) });
      return reply(200, { sessions, next: sessions.length < limit ? null : (sessions.at(-1)?.id ?? null) });
    },
    allEvents: async ({ actor, query, request }) => {
      const header = request.header("last-event-id");
      const after = header === undefined || header === "" ? query.after : header;
      const from = after === undefined ? {} : { after };
      return {
        kind: "events",
        status: 200,
        source: (signal) => allPieces(control.events({ ...from, ...within(actor), signal }), texts),
      };
    },
    allQuestions: async ({ actor }) => {
      const explanations = await control.live(within(actor));
      const questions = explanations.flatMap(({ sessionId, live }) =>
        (live?.questions ?? []).map((one) => ({ ...one, sessionId, runId: runOf(one.id) })),
      );
      return reply(200, { questions });
    },
  } satisfies Partial<Doings>;
}

function beginnings({ control, now }: HouseParts) {
  return {
    createSession: async ({ actor, body, key }) => {
      const { tenant } = actor;
      if (tenant !== undefined && body.id !== undefined && !body.id.startsWith(tenantPrefix(tenant))) {
        throw new ControlError("invalid", `The ids of your sessions begin with "${tenantPrefix(tenant)}".`);
      }
      const existed = body.id !== undefined && (await exists(control, body.id));
      const from = now();
      const session = await control.createSession({ ...body, ...keyed(key), ...within(actor) });
      const row = await session.row();
      return existed || (key !== undefined && !isNew(row, from)) ? reply(200, row) : reply(201, row);
    },
    beginRun: async ({ actor, body, key }) => {
      const { prompt, ...rest } = body;
      const run = control.prompt(prompt, { ...rest, ...keyed(key), ...within(actor) });
      return reply(202, { ...(await run.accepted), sessionId: run.sessionId });
    },
  } satisfies Partial<Doings>;
}

/** Whether it was made by this request, as far as a key leaves that to be told: the first to come made it. */
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
