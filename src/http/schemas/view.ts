// The schemas of views: rows, the queue, the transcript, the state of a session and of the worker.
import { z } from "zod";
import { modelName, providerCall, turnPart, usage } from "./event.ts";
import { at, callId, count, runId, seq, sessionId, turnId } from "./id.ts";
import { cancelReason, failure, outcome } from "./outcome.ts";
import { CONTROL_CODES, runProblem } from "./problem.ts";
import { processInfo, tier } from "./process.ts";
import { question } from "./question.ts";
import { delivery, item, json, prompt } from "./value.ts";

export const sessionRow = z.object({
  id: sessionId,
  head: seq,
  createdAt: at,
  updatedAt: at,
  title: z.string().optional(),
  cwd: z.string().optional(),
  phase: z.enum(["open", "closed"]),
});
export const idsFound = z.object({ ids: z.array(z.string()), complete: z.boolean() });

export const sessionRows = z.object({ sessions: z.array(sessionRow), next: sessionId.nullable() });

export const runRow = z.object({
  id: runId,
  session: sessionId,
  phase: z.enum(["waiting", "live", "settled"]),
  acceptedAt: seq,
  settledAt: seq.optional(),
  key: z.string().optional(),
  content: z.string().optional(),
  outcome: outcome.optional(),
});
export const runRows = z.object({ runs: z.array(runRow), next: seq.nullable() });

const moment = z.object({ seq, at });
const state = z.union([outcome, z.object({ kind: z.literal("running") })]);

export const runView = runRow.extend({
  prompt: prompt.optional(),
  delivery: delivery.optional(),
  accepted: moment.optional(),
  started: moment.optional(),
  settled: moment.optional(),
  reason: cancelReason.optional(),
  turnId: turnId.optional(),
  text: z.string().optional(),
  truncated: z.literal(true).optional(),
  turns: count,
  usage: z.array(usage.extend({ model: modelName.optional(), turns: count })),
  calls: z.array(
    z.object({
      callId,
      tool: z.string(),
      providerCallId: z.string().optional(),
      outcome: state,
      requested: moment,
      settled: moment.optional(),
    }),
  ),
  callsOmitted: count,
  incomplete: z.literal(true).optional(),
});

export const callView = z.object({
  id: callId,
  session: sessionId,
  run: runId,
  tool: z.string(),
  input: json,
  providerCallId: z.string().optional(),
  phase: z.enum(["waiting", "running", "stopping", "settled"]),
  waits: z.enum(["hook", "approval", "slot"]).optional(),
  since: moment,
  requested: moment,
  settled: moment.optional(),
  reason: cancelReason.optional(),
  outcome: outcome.optional(),
  begun: z.literal(false).optional(),
  result: json.optional(),
  changes: z.array(z.string()).optional(),
});

/** The receipt of a prompt, with its session. */
export const accepted = z.object({
  kind: z.literal("accepted"),
  runId,
  seq,
  joined: z.enum(["queue", "steer"]),
  ahead: count,
  repeated: z.boolean(),
  sessionId,
});
export const runOutcome = z.object({ runId, outcome });
/** `failed`: runs whose outcome cannot be read. Both are empty if no run ended before the timeout. */
export const runOutcomes = z.object({ outcomes: z.array(runOutcome), failed: z.array(runProblem) });
export const runWaits = z.object({ runId, phase: z.enum(["waiting", "live"]), waitedMs: count });

export const queuedRun = z.object({ runId, prompt, joined: z.enum(["queue", "steer"]) });
export const queue = z.object({ queue: z.array(queuedRun) });

/** The result of a change of the queue. A refusal is an error. */
export const queueReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("changed"), seq }),
  z.object({ kind: z.literal("unchanged") }),
  z.object({ kind: z.literal("started") }),
  z.object({ kind: z.literal("unknown") }),
]);

/** The result of a change of the mode. */
export const modeReceipt = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("changed"), mode: z.string(), seq }),
  z.object({ kind: z.literal("unchanged"), mode: z.string() }),
]);

export const posted = z.object({ kind: z.literal("posted"), seq });
export const trimmed = z.object({
  kept: seq,
  removed: count,
  limit: z.enum(["summary", "run", "process"]).optional(),
});
export const sessionDeleted = z.object({ kind: z.literal("deleted"), sessionId, events: count });

const finish = z.discriminatedUnion("kind", [
  z.object({ kind: z.enum(["end", "calls", "length", "refusal", "other", "lost", "live"]) }),
  z.object({ kind: z.literal("cancelled"), reason: cancelReason, error: failure.optional() }),
  z.object({ kind: z.literal("failed"), code: z.string(), message: z.string() }),
]);

export const message = z.discriminatedUnion("role", [
  z.object({
    role: z.literal("user"),
    runId,
    text: z.string(),
    data: json.optional(),
    withdrawn: z.literal(true).optional(),
  }),
  z.object({ role: z.literal("note"), runId, item }),
  z.object({ role: z.literal("summary"), runId, text: z.string(), request: z.string() }),
  z.object({
    role: z.literal("assistant"),
    runId,
    turnId: turnId.optional(),
    text: z.string(),
    parts: z.array(turnPart).optional(),
    calls: z.array(z.object({ callId, name: z.string(), input: json, provider: providerCall.optional() })),
    finish,
    usage: usage.optional(),
    model: modelName.optional(),
    again: z.literal(true).optional(),
  }),
  z.object({
    role: z.literal("tool"),
    runId,
    results: z.array(
      z.object({
        callId,
        name: z.string(),
        outcome: state,
        result: json.optional(),
        begun: z.literal(false).optional(),
        changes: z.array(z.string()).optional(),
      }),
    ),
  }),
]);
export const messages = z.object({ messages: z.array(message) });

const waitingRun = z.object({ runId, text: z.string() });

const callExplained = z.object({
  callId,
  name: z.string(),
  phase: z.enum(["running", "stopping"]),
  waits: z.enum(["hook", "approval", "slot"]).optional(),
  since: at.optional(),
});

export const explanation = z.object({
  sessionId,
  asOf: seq,
  busy: z.boolean(),
  live: z
    .object({
      runId,
      phase: z.enum(["running", "ending", "stopping", "parked"]),
      reason: cancelReason.optional(),
      attempt: count,
      turn: turnId.optional(),
      calls: z.array(callExplained),
      questions: z.array(question),
      since: at.optional(),
      blocked: z.object({ work: z.string(), ms: z.number(), at }).optional(),
    })
    .optional(),
  queue: z.array(waitingRun),
  steers: z.array(waitingRun),
  processes: z.array(processInfo),
  mode: z.string().optional(),
  driver: z.string().optional(),
  summary: z.string(),
});
export const explanations = z.object({ sessions: z.array(explanation) });

const agentMode = z.object({ id: z.string(), name: z.string(), description: z.string().optional() });

export const status = z.object({
  phase: z.enum(["open", "closing", "closed"]),
  worker: z.string(),
  startedAt: at,
  load: z.object({
    live: count,
    waiting: count,
    max: count,
    late: count,
    processes: count,
    dropped: count,
    tier: tier.optional(),
  }),
  trouble: z.enum(CONTROL_CODES).optional(),
  store: z.object({ bytes: count, freeBytes: count, sessions: count, events: count }).optional(),
  retention: z
    .object({ removedEvents: count, deletedSessions: count, trouble: z.enum(CONTROL_CODES).optional() })
    .optional(),
  resources: z.object({
    memoryBytes: count,
    heapBytes: count,
    loopDelayMs: z.number().optional(),
    descriptors: count.optional(),
  }),
  modes: z.array(agentMode),
  mode: z.string().optional(),
});

export const health = z.object({ status: z.literal("ok") });
export const readiness = z.object({ status: z.enum(["ready", "closing", "trouble", "files"]) });

/** The audit record of one control request. */
export const auditRecord = z.object({
  id: z.string(),
  at,
  actor: z.string(),
  via: z.string(),
  action: z.string(),
  target: z.string().optional(),
  answer: z.string(),
  code: z.string().optional(),
  note: z.string().optional(),
  tenant: z.string().optional(),
});
