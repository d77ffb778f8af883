// The schemas of questions, answers and their receipts.
import { z } from "zod";
import { callId, questionId, runId, sessionId, turnId } from "./id.ts";
import { cancelReason } from "./outcome.ts";
import { json } from "./value.ts";

export const about = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("approval"),
    name: z.string(),
    input: json,
    digest: z.string(),
    scope: z.string(),
    note: z.string().optional(),
  }),
  z.object({
    kind: z.literal("question"),
    text: z.string(),
    options: z.array(z.string()).optional(),
    only: z.literal(true).optional(),
    data: json.optional(),
  }),
]);

const fields = {
  id: questionId,
  owner: z.union([turnId, callId]),
  about,
  deadlineMs: z.number().optional(),
};

export const question = z.object(fields);

/** An open question with its session and run. */
export const openQuestion = z.object({ ...fields, sessionId, runId });

export const questions = z.object({ questions: z.array(openQuestion) });

export const ending = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("allowed"),
    remember: z.literal("session").optional(),
    by: z.string().optional(),
    note: z.string().optional(),
  }),
  z.object({ kind: z.literal("denied"), by: z.string().optional(), note: z.string().optional() }),
  z.object({ kind: z.literal("answered"), value: json, by: z.string().optional() }),
  z.object({ kind: z.literal("expired"), limitMs: z.number() }),
  z.object({ kind: z.literal("withdrawn"), reason: cancelReason }),
]);

export const answerReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("recorded"), questionId }),
  z.object({ kind: z.literal("settled"), ending }),
  z.object({ kind: z.literal("refused"), code: z.enum(["invalid", "conflict"]), message: z.string() }),
  z.object({ kind: z.literal("unknown") }),
]);
