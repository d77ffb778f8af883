// The handlers of the routes for runs, calls and questions.

import { Bug } from "../../core/bug.ts";
import type { CancelReceipt } from "../../core/model/cancel.ts";
import type { AnswerReceipt } from "../../core/model/question.ts";
import type { AwaitedOutcome, BelayControl, CancelOptions } from "../../ports/control.ts";
import { runBatches } from "../transport/event-batches.ts";
import type { EventTexts } from "../transport/event-text.ts";
import { processHandlers } from "./process-handlers.ts";
import { keyed, reasonBy } from "./request-context.ts";
import { checkCursor } from "./request-headers.ts";
import { type RouteHandlers, type RouteRequest, reply } from "./route-handler.ts";
import { idsIn, outcomesOf, outcomesReply } from "./run-outcomes.ts";
import type { RUN_ROUTES } from "./run-routes.ts";
import { requireWithin } from "./session-handlers.ts";
import type { Waits } from "./wait-or-disconnect.ts";

export interface RunHandlerParts {
  readonly control: BelayControl;
  readonly texts: EventTexts;
  readonly waiting: Waits;
}

export function runHandlers(parts: RunHandlerParts): RouteHandlers<keyof typeof RUN_ROUTES> {
  return { ...views(parts), ...streams(parts), ...stops(parts), ...answers(parts), ...processHandlers(parts) };
}

function views({ control, waiting }: RunHandlerParts) {
  return {
    getRun: async ({ params }) => reply(200, await (await control.run(params.run)).view()),
    getCall: async ({ params }) => reply(200, await control.call(params.call)),
    runOutcome: async ({ params, query, request }) => {
      const run = await control.run(params.run);
      const before = await run.row();
      if (before.outcome !== undefined) return reply(200, { runId: before.id, outcome: before.outcome });
      const { outcome, waitedMs } = await waiting.outcome(run, query.waitMs ?? 0, request.signal);
      if (outcome !== undefined) return reply(200, { runId: before.id, outcome });
      const { phase, outcome: late, id: runId } = await run.row();
      if (late !== undefined) return reply(200, { runId, outcome: late });
      return reply(202, { runId, phase: phase === "settled" ? "live" : phase, waitedMs });
    },
    runOutcomes: async ({ actor, query, request }) => {
      const ids = idsIn(query.runs);
      const now = await outcomesOf(control, actor, ids);
      if (now.outcomes.length + now.failed.length > 0) return reply(200, outcomesReply(now));
      await waiting.anyOf(now.live, query.waitMs ?? 0, request.signal);
      return reply(200, outcomesReply(await outcomesOf(control, actor, ids)));
    },
  } satisfies Partial<RouteHandlers>;
}

function streams({ control, texts }: RunHandlerParts) {
  return {
    runEvents: async ({ params, query, request }) => {
      const run = await control.run(params.run);
      const { session, acceptedAt, settledAt, id } = await run.row();
      const cursor = checkCursor(request.header("last-event-id"), query.after);
      const log = control.session(session);
      if (cursor !== undefined) await requireWithin(log, cursor);
      if (cursor !== undefined && settledAt !== undefined && cursor >= settledAt) return { kind: "empty", status: 204 };
      const after = Math.max(cursor ?? 0, acceptedAt - 1);
      const { deltas = "without" } = query;
      const settledNow = async (): Promise<number | undefined> => (await run.row()).settledAt;
      return {
        kind: "events",
        status: 200,
        source: (signal) => runBatches(log.pages({ after, deltas, signal }), texts, { id, settledAt: settledNow }),
      };
    },
  } satisfies Partial<RouteHandlers>;
}

function stops({ control }: RunHandlerParts) {
  const cancel = async (target: string, options: CancelOptions): Promise<CancelReceipt & AwaitedOutcome> => {
    const receipt = await control.cancel(target, options);
    if (receipt.kind === "idle" || "runs" in receipt)
      throw new Bug(`a cancel of ${target} returned the receipt of a session`);
    return receipt;
  };
  return {
    cancelRun: async ({ actor, params, body, key }) =>
      reply(200, await cancel(params.run, { ...body, ...keyed(key), reason: reasonBy(actor, body.reason) })),
    cancelCall: async ({ actor, params, body, key }) =>
      reply(200, await cancel(params.call, { ...body, ...keyed(key), reason: reasonBy(actor, body.reason) })),
    cancelProcess: async ({ actor, params, body, key }) =>
      reply(200, await cancel(params.process, { ...body, ...keyed(key), reason: reasonBy(actor, body.reason) })),
    cancelQuestion: async ({ actor, params, body, key }) =>
      reply(200, await cancel(params.question, { ...keyed(key), reason: reasonBy(actor, body.reason) })),
  } satisfies Partial<RouteHandlers>;
}

function answers({ control }: RunHandlerParts) {
  return {
    answerQuestion: async (request) => reply(200, await answer(control, request)),
  } satisfies Partial<RouteHandlers>;
}

function answer(
  { questions }: BelayControl,
  { actor, params, body, key }: RouteRequest<(typeof RUN_ROUTES)["answerQuestion"]>,
): Promise<AnswerReceipt> {
  const { question } = params;
  switch (body.kind) {
    case "allowed": {
      const { kind: _, ...rest } = body;
      return questions.allow(question, { by: actor.name, ...rest, ...keyed(key) });
    }
    case "denied": {
      const { kind: _, ...rest } = body;
      return questions.deny(question, { by: actor.name, ...rest, ...keyed(key) });
    }
    case "answered":
      return questions.answer(question, body.value, { by: body.by ?? actor.name, ...keyed(key) });
  }
}
