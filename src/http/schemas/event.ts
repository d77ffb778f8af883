// The facts of a log, as they are stored and sent; what is heard between them; and what a watcher of all is told.
import { z } from "zod";
import { at, callId, count, processId, questionId, runId, seq, sessionId, turnId } from "./id.ts";
import { cancelReason, outcome } from "./outcome.ts";
import { exit, feedback, outputNote } from "./process.ts";
import { about, ending } from "./question.ts";
import { delivery, item, json, prompt } from "./value.ts";

/** Every fact has a type, its position, and when it was recorded. */
const fact = <const T extends string, const Shape extends z.core.$ZodLooseShape>(type: T, shape: Shape) =>
  z.object({ seq, at, type: z.literal(type), ...shape });

const yes = z.literal(true).optional();
const no = z.literal(false).optional();

export const usage = z.object({ inputTokens: z.number(), outputTokens: z.number(), estimated: z.boolean() });

export const modelName = z.object({ provider: z.string(), id: z.string() });

export const turnPart = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string(), provider: json.optional() }),
  z.object({ kind: z.literal("reasoning"), text: z.string(), provider: json.optional() }),
  z.object({ kind: z.literal("call"), index: count }),
  z.object({ kind: z.literal("provider"), provider: json }),
]);

export const providerCall = z.object({ id: z.string(), data: json.optional() });

const work = z.union([turnId, callId]);

const ofSession = [
  fact("session.created", { sessionId, title: z.string().optional(), cwd: z.string().optional() }),
  fact("session.cancel_requested", { reason: cancelReason, covers: z.array(runId) }),
  fact("session.closed", { reason: cancelReason }),
  fact("session.mode_set", { mode: z.string(), by: z.string().optional() }),
  fact("session.compacted", { turnId, summary: z.string() }),
  fact("inbox.added", {
    item,
    processId: processId.optional(),
    heldBy: work.optional(),
    alsoHeldBy: z.array(work).optional(),
    wake: yes,
  }),
  fact("request.answered", { key: z.string(), content: z.string(), answer: json }),
] as const;

const ofQueue = [
  fact("run.accepted", {
    runId,
    prompt,
    delivery,
    key: z.string().optional(),
    content: z.string().optional(),
    wake: yes,
  }),
  fact("run.edited", { runId, prompt }),
  fact("run.moved", { runId, index: count }),

  fact("run.steered", { runId }),
  fact("run.requeued", { runId }),
  fact("run.taken", { runId, into: runId, turnId }),
] as const;

const ofRun = [
  fact("run.started", { runId }),
  fact("run.cancel_requested", { runId, reason: cancelReason }),
  fact("run.parked", { runId }),
  fact("run.recovered", { runId, attempt: count }),
  fact("run.settled", {
    runId,
    outcome,
    key: z.string().optional(),
    turnId: turnId.optional(),
    text: z.string().optional(),
    truncated: yes,
  }),
] as const;

const ofTurn = [
  fact("turn.requested", { runId, turnId }),
  fact("inbox.taken", { runId, turnId, items: z.array(item) }),
  fact("turn.extended", { runId, turnId, text: z.string(), usage: usage.optional(), model: modelName.optional() }),
  fact("turn.settled", {
    runId,
    turnId,
    outcome,
    next: z.enum(["turn", "end"]),
    text: z.string().optional(),
    usage: usage.optional(),
    model: modelName.optional(),
    finish: z.enum(["stop", "calls", "length", "refusal", "other"]).optional(),
    parts: z.array(turnPart).optional(),
    heard: z.array(processId).optional(),
  }),
] as const;

const ofCall = [
  fact("call.requested", {
    runId,
    callId,
    name: z.string(),
    input: json,
    idempotent: yes,
    interruptible: z.literal(false).optional(),
    provider: providerCall.optional(),
  }),
  fact("call.cancel_requested", { runId, callId, reason: cancelReason, remind: yes, begun: no }),
  fact("call.settled", {
    runId,
    callId,
    outcome,
    begun: no,
    result: json.optional(),
    changes: z.array(z.string()).optional(),
    heard: z.array(processId).optional(),
  }),
] as const;

const ofQuestion = [
  fact("question.asked", {
    runId,
    questionId,
    owner: work,
    about,
    deadlineMs: z.number().optional(),
  }),
  fact("question.settled", { runId, questionId, ending }),
] as const;

const ofProcess = [
  fact("process.requested", {
    processId,
    owner: z.union([callId, sessionId]),
    command: z.union([z.string(), z.array(z.string())]),
    cwd: z.string().optional(),
    feedback,
    lasting: z.literal(true).optional(),
  }),
  fact("process.started", { processId, pid: z.number(), tier: z.string(), profile: z.string() }),
  fact("process.detached", { processId, owner: sessionId, feedback, dying: cancelReason.optional() }),
  fact("process.cancel_requested", { processId, reason: cancelReason }),
  fact("process.settled", {
    processId,
    outcome,
    exit: exit.optional(),
    durationMs: z.number().optional(),
    output: outputNote.optional(),
    escaped: z.array(z.number()).optional(),
    dropped: yes,
  }),
] as const;

/** An event as the log has it. */
export const recorded = z.discriminatedUnion("type", [
  ...ofSession,
  ...ofQueue,
  ...ofRun,
  ...ofTurn,
  ...ofCall,
  ...ofQuestion,
  ...ofProcess,
]);

/** What is heard live, may be dropped, and has no position. */
export const delta = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("delta"),
    runId,
    turnId,
    text: z.string(),
    from: count,
    kind: z.literal("reasoning").optional(),
  }),
  z.object({ type: z.literal("progress"), runId, callId, data: json }),
  z.object({
    type: z.literal("output"),
    processId,
    bytes: count,
    lines: count,
    silenceMs: z.number(),
    tail: z.string(),
  }),
]);

/** In place of events that are not kept any more. */
export const gap = z.object({ type: z.literal("gap"), from: seq, to: seq });

/** An event on the stream of all sessions. */
export const feedEvent = z.object({ cursor: z.string(), sessionId, event: recorded });

/** A message without an event on that stream: the position of the reader. */
export const feedCursor = z.object({ cursor: z.string() });

const streamHead = z.object({ status: z.int(), headers: z.record(z.string(), z.string()) });
const streamId = z.string();
/** What the server sends on a shared stream. */
export const streamDown = z.discriminatedUnion("type", [
  z.object({ type: z.literal("open"), stream: z.string() }),
  z.object({ type: z.literal("received"), id: streamId }),
  z.object({ type: z.literal("answer"), id: streamId, head: streamHead, text: z.string() }),
  z.object({ type: z.literal("head"), id: streamId, head: streamHead }),
  z.object({ type: z.literal("piece"), id: streamId, text: z.string() }),
  z.object({ type: z.literal("end"), id: streamId }),
  z.object({ type: z.literal("heartbeat") }),
]);

/** The last a stream says if the server ends it. */
export const bye = z.object({ reason: z.string() });
