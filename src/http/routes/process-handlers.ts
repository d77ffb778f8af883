// The handlers of the routes for processes.

import { ControlError } from "../../core/errors.ts";
import { PAGE_ROWS_MAX } from "../../core/limits.ts";
import { isProcessId, type ProcessId, sessionOf } from "../../core/model/ids.ts";
import { utf8Bytes } from "../../core/model/prompt.ts";
import type { ProcessRow } from "../../core/model/rows.ts";
import type { BelayControl, ProcessControl, SessionControl } from "../../ports/control.ts";
import { notFound } from "../auth/tenancy.ts";
import { ROW_PAGES_MAX } from "../limits.ts";
import { outputBatches } from "../transport/event-batches.ts";
import { type EventTexts, withoutDirectory } from "../transport/event-text.ts";
import { checkCursor } from "./request-headers.ts";
import { type RouteHandlers, reply } from "./route-handler.ts";

interface ProcessParts {
  readonly control: BelayControl;
  readonly texts: EventTexts;
}

export function processHandlers(parts: ProcessParts) {
  return { ...views(parts), ...output(parts), ...input(parts) };
}

function views({ control }: ProcessParts) {
  return {
    getProcess: async ({ params }) => {
      const { id, sessionId, info } = await find(control, params.process);
      const row = await rowOf(control.session(sessionId), id);
      const found = { ...(info === undefined ? {} : { info }), ...(row === undefined ? {} : { row }) };
      return reply(200, { id, sessionId, ...found });
    },
    processResult: async ({ params, query, request }) => {
      const { waitMs = 0 } = query;
      const process = await find(control, params.process);
      const result = await process.wait({ limitMs: waitMs, signal: request.signal });
      if (result === undefined) return reply(202, { processId: process.id, waitedMs: waitMs });
      return reply(200, withoutDirectory(result));
    },
  } satisfies Partial<RouteHandlers>;
}

function output({ control, texts }: ProcessParts) {
  return {
    processOutput: async ({ params, query }) => {
      const page = await (await find(control, params.process)).read(query);
      if (page === undefined) throw noOutput(params.process);
      return reply(200, page);
    },
    followOutput: async ({ params, query, request }) => {
      const process = await find(control, params.process);
      const { offset: given, ...rest } = query;
      const resumed = request.header("last-event-id");
      const offset = checkCursor(resumed, given) ?? 0;
      const first = await process.read({ ...rest, offset });
      if (first === undefined) throw noOutput(params.process);
      // A browser that reconnects after the end gets 204, so that it does not reconnect again.
      if (resumed !== undefined && first.end && first.from === first.to) return { kind: "empty", status: 204 };
      return {
        kind: "events",
        status: 200,
        source: (signal) => outputBatches(process.follow({ ...rest, offset, signal }), texts),
      };
    },
  } satisfies Partial<RouteHandlers>;
}

function input({ control }: ProcessParts) {
  return {
    processInput: async ({ params, body }) => {
      const { data, base64, end } = body;
      if (data !== undefined && base64 !== undefined) throw invalid("Send `data` or `base64`, not both.");
      if (data === undefined && base64 === undefined && end === undefined) {
        throw invalid("Nothing to write: send `data`, `base64` or `end`.");
      }
      const process = await find(control, params.process);
      const bytes = base64 === undefined ? data : Buffer.from(base64, "base64");
      if (bytes !== undefined) await process.write(bytes);
      if (end === true) await process.endInput();
      return reply(200, { written: typeof bytes === "string" ? utf8Bytes(bytes) : (bytes?.length ?? 0) });
    },
    resizeProcess: async ({ params, body }) => {
      await (await find(control, params.process)).resize(body);
      return reply(200, {});
    },
  } satisfies Partial<RouteHandlers>;
}

/** Throws the same error for an unknown process and for another tenant's. */
async function find(control: BelayControl, id: string): Promise<ProcessControl> {
  if (!isProcessId(id)) throw notFound("process", id);
  try {
    return await control.session(sessionOf(id)).processes.get(id);
  } catch (error) {
    throw error instanceof ControlError && error.code === "not_found" ? notFound("process", id) : error;
  }
}

/** Searches newest first: usually it is the last row, or among the last thousand. */
async function rowOf(session: SessionControl, id: ProcessId): Promise<ProcessRow | undefined> {
  let before: number | undefined;
  for (let page = 0; page < ROW_PAGES_MAX; page += 1) {
    const limit = page === 0 ? 1 : PAGE_ROWS_MAX;
    const rows = await session.processes.history({ limit, ...(before === undefined ? {} : { before }) });
    const row = rows.find((one) => one.id === id);
    const last = rows.at(-1);
    if (row !== undefined || last === undefined) return row;
    before = last.requestedAt;
  }
  return undefined;
}

const noOutput = (id: string): ControlError =>
  new ControlError("not_found", `There is no output of ${id}.`, {
    hint: "Output is kept on the machine on which the process ran, as long as its session exists.",
  });

const invalid = (message: string): ControlError => new ControlError("invalid", message);
