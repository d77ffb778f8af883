// The handlers of the routes for one session.

import { ControlError } from "../../core/errors.ts";
import { beyondTheEnd } from "../../core/input.ts";
import type { QueueReceipt } from "../../core/model/command.ts";
import { runOf } from "../../core/model/ids.ts";
import type { BelayControl, SessionControl } from "../../ports/control.ts";
import { ROWS_DEFAULT } from "../limits.ts";
import { sessionBatches } from "../transport/event-batches.ts";
import type { EventTexts } from "../transport/event-text.ts";
import { keyed, reasonBy, requireScope } from "./request-context.ts";
import { checkCursor } from "./request-headers.ts";
import { type RouteHandlers, type RouteRequest, reply } from "./route-handler.ts";
import type { SESSION_ROUTES } from "./session-routes.ts";

export interface SessionHandlerParts {
  readonly control: BelayControl;
  readonly texts: EventTexts;
}

export function sessionHandlers(parts: SessionHandlerParts): RouteHandlers<keyof typeof SESSION_ROUTES> {
  return { ...prompts(parts), ...stops(parts), ...views(parts), ...log(parts) };
}

function prompts({ control }: SessionHandlerParts) {
  return {
    // Registered before anything is awaited: the order of arrival is the order of acceptance.
    promptSession: async ({ actor, params, body, key }) => {
      const { prompt, ...rest } = body;
      // It stops the live run, even another actor's.
      if (rest.delivery === "interrupt") requireScope(actor, "cancel", "A prompt that interrupts");
      const run = control.session(params.session).prompt(prompt, { ...rest, ...keyed(key), actor: actor.name });
      return reply(202, { ...(await run.accepted), sessionId: run.sessionId });
    },
    changeQueue: async (request) =>
      reply(200, requireDone(await change(control.session(request.params.session), request))),
    setMode: async ({ actor, params, body, key }) => {
      const { mode, by = actor.name } = body;
      return reply(200, await control.session(params.session).setMode(mode, { by, ...keyed(key) }));
    },
    post: async ({ params, body, key }) => reply(202, await control.session(params.session).post(body, keyed(key))),
  } satisfies Partial<RouteHandlers>;
}

function change(session: SessionControl, { params, body, key }: RouteRequest<(typeof SESSION_ROUTES)["changeQueue"]>) {
  const { queue } = session;
  if ("prompt" in body) return queue.edit(params.run, body.prompt, keyed(key));
  if ("move" in body) return queue.move(params.run, body.move, keyed(key));
  return queue.steer(params.run, keyed(key));
}

function stops({ control }: SessionHandlerParts) {
  return {
    cancelSession: async ({ actor, params, body, key }) => {
      const { reason, ...rest } = body;
      const options = { ...rest, ...keyed(key), actor: actor.name, reason: reasonBy(actor, reason) };
      return reply(200, await control.session(params.session).cancel(options));
    },
    // Without a reason, the reason is `closed`.
    closeSession: async ({ actor, params, body, key }) => {
      const { reason } = body;
      const why = reason === undefined ? {} : { reason: reasonBy(actor, reason) };
      return reply(200, await control.session(params.session).close({ ...why, ...keyed(key) }));
    },
    cancelPrompt: async ({ actor, params, body, key }) => {
      const options = { ...body, reason: reasonBy(actor, body.reason), ...keyed(key), actor: actor.name };
      return reply(200, await control.session(params.session).cancelPrompt(params.key, options));
    },
    cancelSessionCall: async ({ actor, params, body, key }) => {
      const options = { ...body, reason: reasonBy(actor, body.reason), ...keyed(key) };
      return reply(200, await control.session(params.session).cancelCall(params.name, options));
    },
    withdrawRun: async ({ actor, params, body, key }) => {
      const options = { reason: reasonBy(actor, body.reason), ...keyed(key) };
      return reply(200, requireDone(await control.session(params.session).queue.withdraw(params.run, options)));
    },
    deleteSession: async ({ actor, params, body }) => {
      const { reason } = body;
      const why = reason === undefined ? {} : { reason: reasonBy(actor, reason) };
      return reply(200, await control.session(params.session).delete(why));
    },
    trim: async ({ params, body }) => reply(200, await control.session(params.session).trim(body.before)),
  } satisfies Partial<RouteHandlers>;
}

function views({ control }: SessionHandlerParts) {
  return {
    getSession: async ({ params }) => reply(200, await control.session(params.session).row()),
    listRuns: async ({ params, query }) => {
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const runs = await control.session(params.session).runs({ ...rest, limit });
      return reply(200, { runs, next: runs.length < limit ? null : (runs.at(-1)?.acceptedAt ?? null) });
    },
    sessionCall: async ({ params }) => reply(200, await control.session(params.session).call(params.name)),
    findRun: async ({ params }) => reply(200, await (await control.session(params.session).findRun(params.key)).view()),
    getQueue: async ({ params }) => reply(200, { queue: await control.session(params.session).queue.list() }),
    transcript: async ({ params }) => reply(200, { messages: await control.session(params.session).transcript() }),
    explain: async ({ params }) => reply(200, await control.session(params.session).explain()),
    sessionQuestions: async ({ params }) => {
      const session = control.session(params.session);
      const open = await session.questions();
      return reply(200, { questions: open.map((one) => ({ ...one, sessionId: session.id, runId: runOf(one.id) })) });
    },
    sessionProcesses: async ({ params }) =>
      reply(200, { processes: await control.session(params.session).processes.list() }),
    processHistory: async ({ params, query }) => {
      const { limit = ROWS_DEFAULT, ...rest } = query;
      const processes = await control.session(params.session).processes.history({ ...rest, limit });
      const next = processes.length < limit ? null : (processes.at(-1)?.requestedAt ?? null);
      return reply(200, { processes, next });
    },
  } satisfies Partial<RouteHandlers>;
}

function log({ control, texts }: SessionHandlerParts) {
  return {
    sessionEvents: async ({ params, query, request }) => {
      const session = control.session(params.session);
      const after = checkCursor(request.header("last-event-id"), query.after) ?? 0;
      await requireWithin(session, after);
      const { deltas = "without" } = query;
      return {
        kind: "events",
        status: 200,
        source: (signal) => sessionBatches(session.pages({ after, deltas, signal }), texts),
      };
    },
  } satisfies Partial<RouteHandlers>;
}

/** Throws for a cursor beyond the end of the log: the log has never returned it. */
export async function requireWithin(session: SessionControl, after: number): Promise<void> {
  const { head } = await session.row();
  if (after > head) throw beyondTheEnd(after, head);
}

/** Throws a refusal, as the library does. */
function requireDone(receipt: QueueReceipt): Exclude<QueueReceipt, { kind: "refused" }> {
  if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
  return receipt;
}
