// The schemas of recorded events, of live deltas, and of the feed of all sessions.
import { z } from "zod";
import { at, callId, count, processId, questionId, runId, seq, sessionId, turnId } from "./id.ts";
import { cancelReason, outcome } from "./outcome.ts";
import { exit, feedback, outputNote } from "./process.ts";
import { about, ending } from "./question.ts";
import { delivery, item, json, prompt } from "./value.ts";

/** Every recorded event has a type, its position, and the time at which it was recorded. */
const event = <const T extends string, const Shape extends z.core.$ZodLooseShape>(type: T, shape: Shape) =>
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
  event("session.created", { sessionId, title: z.string().optional(), cwd: z.string().optional() }),
  event("session.cancel_requested", { reason: cancelReason, covers: z.array(runId) }),
  event("session.closed", { reason: cancelReason }),
  event("session.mode_set", { mode: z.string(), by: z.string().optional() }),
  event("session.compacted", { turnId, summary: z.string() }),
  event("inbox.added", {
    item,
    processId: processId.optional(),
    heldBy: work.optional(),
    alsoHeldBy: z.array(work).optional(),
    wake: yes,
  }),
  event("request.answered", { key: z.string(), content: z.string(), answer: json }),
] as const;

const ofQueue = [
  event("run.accepted", {
    runId,
    prompt,
    delivery,
    key: z.string().optional(),
    content: z.string().optional(),
    wake: yes,
  }),
  event("run.edited", { runId, prompt }),
  event("run.moved", { runId, index: count }),

  event("run.steered", { runId }),
  event("run.requeued", { runId }),
  event("run.taken", { runId, into: runId, turnId }),
] as const;

const ofRun = [
  event("run.started", { runId }),
  event("run.cancel_requested", { runId, reason: cancelReason }),
  event("run.parked", { runId }),
  event("run.recovered", { runId, attempt: count }),
  event("run.settled", {
    runId,
    outcome,
    key: z.string().optional(),
    turnId: turnId.optional(),
    text: z.string().optional(),
    truncated: yes,
  }),
] as const;

const ofTurn = [
  event("turn.requested", { runId, turnId }),
  event("inbox.taken", { runId, turnId, items: z.array(item) }),
  event("turn.extended", { runId, turnId, text: z.string(), usage: usage.optional(), model: modelName.optional() }),
  event("turn.settled", {
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
  event("call.requested", {
    runId,
    callId,
    name: z.string(),
    input: json,
    idempotent: yes,
    interruptible: z.literal(false).optional(),
    provider: providerCall.optional(),
  }),
  event("call.cancel_requested", { runId, callId, reason: cancelReason, remind: yes, begun: no }),
  event("call.settled", {
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
  event("question.asked", {
    runId,
    questionId,
    owner: work,
    about,
    deadlineMs: z.number().optional(),
  }),
  event("question.settled", { runId, questionId, ending }),
] as const;

const ofProcess = [
  event("process.requested", {
    processId,
    owner: z.union([callId, sessionId]),
    command: z.union([z.string(), z.array(z.string())]),
    cwd: z.string().optional(),
    feedback,
    lasting: z.literal(true).optional(),
  }),
  event("process.started", { processId, pid: z.number(), tier: z.string(), profile: z.string() }),
  event("process.detached", { processId, owner: sessionId, feedback, dying: cancelReason.optional() }),
  event("process.cancel_requested", { processId, reason: cancelReason }),
  event("process.settled", {
    processId,
    outcome,
    exit: exit.optional(),
    durationMs: z.number().optional(),
    output: outputNote.optional(),
    escaped: z.array(z.number()).optional(),
    dropped: yes,
  }),
] as const;

/** An event of the log. */
export const recorded = z.discriminatedUnion("type", [
  ...ofSession,
  ...ofQueue,
  ...ofRun,
  ...ofTurn,
  ...ofCall,
  ...ofQuestion,
  ...ofProcess,
]);

/** A live event without a position. It may be dropped. */
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

/** Replaces events that retention has removed. */
export const gap = z.object({ type: z.literal("gap"), from: seq, to: seq });

/** An event in the feed of all sessions. */
export const feedEvent = z.object({ cursor: z.string(), sessionId, event: recorded });
/** The position in the feed of all sessions, without an event. */
export const feedCursor = z.object({ cursor: z.string() });

const streamHead = z.object({ status: z.int(), headers: z.record(z.string(), z.string()) });
const streamId = z.string();
/** A message of the server on a shared stream. */
export const streamDown = z.discriminatedUnion("type", [
  z.object({ type: z.literal("open"), stream: z.string() }),
  z.object({ type: z.literal("received"), id: streamId }),
  z.object({ type: z.literal("answer"), id: streamId, head: streamHead, text: z.string() }),
  z.object({ type: z.literal("head"), id: streamId, head: streamHead }),
  z.object({ type: z.literal("piece"), id: streamId, text: z.string() }),
  z.object({ type: z.literal("end"), id: streamId }),
  z.object({ type: z.literal("heartbeat") }),
]);

/** The last event of a stream that the server ends. */
export const bye = z.object({ reason: z.string() });
