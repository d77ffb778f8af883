// The schemas of cancel reasons, cancel receipts and outcomes.
import { z } from "zod";
import { callId, count, processId, runId, seq, sessionId, turnId } from "./id.ts";

export const cancelReason = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("user"), note: z.string().optional(), by: z.string().optional() }),
  z.object({ kind: z.literal("policy"), note: z.string() }),
  z.object({ kind: z.literal("timeout"), limitMs: z.number() }),
  z.object({ kind: z.literal("superseded"), by: runId }),
  z.object({ kind: z.literal("parent"), id: z.union([sessionId, runId, turnId, callId]) }),
  z.object({ kind: z.literal("closed") }),
  z.object({ kind: z.literal("shutdown") }),
]);

/** An error that was thrown while something was being stopped. */
export const failure = z.object({ code: z.string(), message: z.string() });

export const outcome = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("completed"),
    into: runId.optional(),
    finish: z.enum(["length", "refusal", "other"]).optional(),
  }),
  z.object({ kind: z.literal("failed"), code: z.string(), message: z.string() }),
  z.object({
    kind: z.literal("cancelled"),
    reason: cancelReason,
    abandoned: z.array(z.string()).optional(),
    dying: z.array(processId).optional(),
    error: failure.optional(),
  }),
  z.object({ kind: z.literal("lost") }),
]);

const ended = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("settled"), outcome }),
  z.object({ kind: z.literal("limit"), waitMs: count }),
]);

/** The result of waiting for the settlement, and the tool of a call. */
const more = { ended: ended.optional(), tool: z.string().optional(), callId: callId.optional() };

/** The receipt for cancelling one run, call, process or question. */
export const cancelReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("withdrawn"), ...more }),
  z.object({ kind: z.literal("stopping"), since: seq, first: z.boolean(), ...more }),
  z.object({ kind: z.literal("settled"), outcome, ...more }),
  z.object({ kind: z.literal("unknown"), ...more }),
]);

const run = { runId: runId.optional() };

/** The receipt for cancelling by the key of a prompt. */
export const promptCancelReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("withdrawn"), ...run }),
  z.object({ kind: z.literal("stopping"), since: seq, first: z.boolean(), ...run }),
  z.object({ kind: z.literal("settled"), outcome, ...run }),
  z.object({ kind: z.literal("unknown"), ...run }),
]);

/** The receipt for cancelling a whole session. If the request waited, it includes the outcomes of what it covers. */
export const sessionReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.enum(["idle", "unknown"]), runs: z.array(z.never()).max(0) }),
  z.object({
    kind: z.enum(["stopping", "withdrawn"]),
    runs: z.array(z.object({ runId, receipt: cancelReceipt })),
    processes: z.array(z.object({ processId, receipt: cancelReceipt })).optional(),
    prompts: z.array(z.string()).optional(),
  }),
]);

export const coveredSessions = z.object({
  sessions: z.array(z.object({ sessionId, receipt: sessionReceipt })),
});
