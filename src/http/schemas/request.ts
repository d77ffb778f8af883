// The schemas of bodies and queries. Unknown fields are refused: a typing error must not change the meaning.
import { z } from "zod";
import {
  DIRECTORY_CHARS_MAX,
  KEY_CHARS_MAX,
  MODE_CHARS_MAX,
  PAGE_ROWS_MAX,
  TERMINAL_CELLS_MAX,
  WAIT_MS_MAX,
} from "../../core/limits.ts";
import { ID_CHARS_MAX } from "../../core/model/ids.ts";
import { runId, sessionId } from "./id.ts";
import { stream } from "./process.ts";
import { delivery, json, note, promptGiven } from "./value.ts";

/** A title is a line of a list. */
const TITLE_CHARS_MAX = 1_024;

/** Input of one request to a process: enough for a paste, not for a file. */
const INPUT_CHARS_MAX = 1024 * 1024;

/** One page of output. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Any length: a reason that is too long is truncated and marked, so that the stop is not refused. */
const anyText = z.string();
const reason = z.union(
  [anyText, z.strictObject({ kind: z.enum(["user", "policy"]), note: anyText.optional(), by: anyText.optional() })],
  { error: 'a reason must be a note, or { kind: "user" | "policy", note, by }' },
);

const waitMs = z.int().min(0).max(WAIT_MS_MAX);
const title = z.string().max(TITLE_CHARS_MAX);
const cwd = z.string().min(1).max(DIRECTORY_CHARS_MAX);
const position = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const background = z.enum(["keep", "stop"]);

export const createBody = z.strictObject({ id: z.string().optional(), title: title.optional(), cwd: cwd.optional() });
export const modeBody = z.strictObject({ mode: z.string().min(1).max(MODE_CHARS_MAX), by: note.optional() });
export const promptBody = z.strictObject({ prompt: promptGiven, delivery: delivery.optional() });
export const beginBody = z.strictObject({ prompt: promptGiven, title: title.optional(), cwd: cwd.optional() });

export const reasonBody = z.strictObject({ reason: reason.optional() });
export const cancelBody = z.strictObject({ reason: reason.optional(), waitMs: waitMs.optional() });
export const callCancelBody = z.strictObject({ ...cancelBody.shape, remind: z.boolean().optional() });
const stopBody = z.strictObject({ ...cancelBody.shape, background: background.optional() });
const promptKey = z.string().min(1).max(KEY_CHARS_MAX);
/**
 * `prompts` are the keys of prompts without a response. They are stopped even if they arrive later. The size of the
 * body is the only limit: a list longer than the user's maximum of memos stops what has arrived, and then fails.
 */
export const sessionCancelBody = z.strictObject({
  ...stopBody.shape,
  only: z.enum(["queue"]).optional(),
  prompts: z.array(promptKey).optional(),
});
export const cancelAllBody = z.strictObject({
  ...stopBody.shape,
  prompts: z.array(z.strictObject({ sessionId: sessionId.optional(), key: promptKey })).optional(),
});
/** `early`: the prompt may not have arrived. If so, it is withdrawn when it does. */
export const promptCancelBody = z.strictObject({ ...reasonBody.shape, early: z.boolean().optional() });

export const queueBody = z.union(
  [
    z.strictObject({ prompt: promptGiven }),
    z.strictObject({ move: z.union([z.enum(["front", "back"]), z.strictObject({ before: runId })]) }),
    z.strictObject({ steer: z.literal(true) }),
  ],
  { error: 'send one of { prompt }, { move: "front" | "back" | { before: runId } } and { steer: true }' },
);

const by = note.optional();
export const answerBody = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("allowed"),
    remember: z.literal("session").optional(),
    note: note.optional(),
    digest: note.optional(),
    by,
  }),
  z.strictObject({ kind: z.literal("denied"), note: note.optional(), digest: note.optional(), by }),
  z.strictObject({ kind: z.literal("answered"), value: json, by }),
]);

export const trimBody = z.strictObject({ before: z.int().min(1).max(Number.MAX_SAFE_INTEGER) });

export const inputBody = z.strictObject({
  data: z.string().max(INPUT_CHARS_MAX).optional(),
  base64: z.base64().max(INPUT_CHARS_MAX).optional(),
  end: z.literal(true).optional(),
});

const cells = z.int().min(1).max(TERMINAL_CELLS_MAX);
export const resizeBody = z.strictObject({ columns: cells, rows: cells });

const limit = z.int().min(1).max(PAGE_ROWS_MAX).optional();
const before = position.optional();

export const noQuery = z.strictObject({});
export const rowsQuery = z.strictObject({ before, limit });
export const sessionsQuery = z.strictObject({
  order: z.enum(["oldest", "newest"]).optional(),
  after: z.string().optional(),
  before: z.string().optional(),
  limit,
});
export const idsQuery = z.strictObject({ prefix: z.string().max(ID_CHARS_MAX), limit });
export const auditQuery = z.strictObject({
  before: z.string().max(KEY_CHARS_MAX).optional(),
  limit,
  target: z.string().max(KEY_CHARS_MAX).optional(),
  actor: z.string().max(KEY_CHARS_MAX).optional(),
});
export const waitQuery = z.strictObject({ waitMs: waitMs.optional() });
/** `runs` are comma-separated ids. */
export const outcomesQuery = z.strictObject({ runs: z.string().min(1), waitMs: waitMs.optional() });
export const eventsQuery = z.strictObject({
  after: position.optional(),
  deltas: z.enum(["with", "without"]).optional(),
});
export const allEventsQuery = z.strictObject({ after: z.string().max(KEY_CHARS_MAX).optional() });

const streamRequestId = z.string().regex(/^[\w:.-]{1,128}$/);
/** A message of the client on a shared stream. */
export const streamMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("request"),
    id: streamRequestId,
    method: z.enum(["GET", "POST", "DELETE"]),
    path: z.string().startsWith("/"),
    lastEventId: z.string().max(KEY_CHARS_MAX).optional(),
    key: z.string().max(KEY_CHARS_MAX).optional(),
    body: z.record(z.string(), json).optional(),
  }),
  z.strictObject({ type: z.literal("read"), id: streamRequestId, chars: position }),
  z.strictObject({ type: z.literal("leave"), id: streamRequestId }),
]);
export const streamBody = z.strictObject({ stream: z.string(), messages: z.array(streamMessage) });

const output = { stream: stream.optional(), offset: position.optional(), plain: z.boolean().optional() };
export const outputQuery = z.strictObject({ ...output, bytesMax: z.int().min(1).max(OUTPUT_BYTES_MAX).optional() });
export const followQuery = z.strictObject(output);
