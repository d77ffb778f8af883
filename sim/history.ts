// What the clients of a simulation requested and received, in the form of the model in test/oracle.
import type { RunId, SessionId } from "../src/core/model/ids.ts";
import type { Answer, CallerHistory, CallerRequest, FollowerSlice } from "../test/oracle/caller-history.ts";
import type { LabelOf } from "../test/oracle/log-index.ts";
import type { AskedRecord, CancelRecord, ChangeRecord, Follower } from "./records.ts";

type Requested = Pick<CallerRequest, "name" | "params">;

/** A prompt with a key is the same prompt whenever it is sent with that key. */
const promptLabel = (session: SessionId, keyOrRun: string): string => `${session} ${keyOrRun}`;

export const labelOf: LabelOf = ({ runId, key }, session) => promptLabel(session, key ?? runId);

/** `life`: the present one. What was requested of an earlier one need not be answered. */
export function historyOf(asked: readonly AskedRecord[], followers: readonly Follower[], life: number): CallerHistory {
  return {
    requests: asked.map((record) => requestOf(record, life)),
    slices: followers.map(({ session: sessionId, from: after, received, positions, ...follower }): FollowerSlice => {
      const stays = follower.life === life && !follower.ended;
      return { sessionId, after, received, positions, ...(stays ? { untilRest: true } : {}) };
    }),
  };
}

function requestOf(record: AskedRecord, life: number): CallerRequest {
  const { answered, ticket, session: sessionId } = record;
  // The edge: each kind of record has the receipt of its request.
  return {
    ...requestedBy(record),
    ...{ sessionId, sentAt: ticket, life: record.life, answer: answerOf(record, life) },
    // Between two tickets.
    answeredAt: answered === undefined ? Number.POSITIVE_INFINITY : answered.ticket + 0.5,
    ...(answered === undefined ? {} : { moment: answered.moment }),
  } as CallerRequest;
}

function answerOf(record: AskedRecord, life: number): Answer<unknown> {
  const { refused: code, error, receipt } = record;
  if (receipt !== undefined) return { kind: "returned", value: returnedValue(record) };
  if (error !== undefined) return { kind: "error", error };
  // A stop that a worker could not record ends with that worker.
  const isOwed = record.kind === "cancel" && record.carriedOut === true && record.life === life;
  if (code !== undefined && isOwed) return { kind: "refused", code, carriedOut: record.stops };
  if (code !== undefined) return { kind: code === "unavailable" ? "unknown" : "refused", code };
  return record.life === life ? { kind: "pending" } : { kind: "unknown", code: "crashed" };
}

/** A receipt that can be undefined is kept in a box. */
function returnedValue(record: AskedRecord): unknown {
  if (record.kind === "wait") return record.receipt?.outcome;
  return record.kind === "end" ? record.receipt?.result : record.receipt;
}

function requestedBy(record: AskedRecord): Requested {
  const { session } = record;
  switch (record.kind) {
    case "prompt": {
      const { runId, text, delivery, key } = record;
      return { name: "prompt", params: { label: promptLabel(session, key ?? runId), runId, text, delivery } };
    }
    case "cancel":
      return cancelRequestedBy(record);
    case "change":
      return { name: "change", params: changeParams(record) };
    case "wait":
      return { name: "outcome", params: { runId: record.runId } };
    case "answer": {
      const { questionId, reply, digest } = record;
      const event = { type: "question.settled", like: { questionId, ending: reply }, unique: true } as const;
      return { name: "answer", params: { questionId, event, reply, ...(digest === undefined ? {} : { digest }) } };
    }
    case "post": {
      const event = { type: "inbox.added", like: { item: { text: record.text } }, unique: true } as const;
      return { name: "change", params: { event } };
    }
    case "start":
      return { name: "start-process", params: { command: record.command } };
    case "end":
      return { name: "process-result", params: { processId: record.processId } };
  }
}

function cancelRequestedBy({ scope, session, target, note, keep, remind, early }: CancelRecord): Requested {
  switch (scope) {
    case "session":
    case "close":
      return { name: "cancel-session", params: { note, ...(keep ? { keep } : {}) } };
    case "run":
      return { name: "cancel-run", params: { runId: target as RunId, note } };
    case "key":
      return {
        name: "cancel-prompt",
        params: { label: promptLabel(session, target), note, ...(early ? { early } : {}) },
      };
    case "call":
      return { name: "cancel-call", params: { callId: target as `call_${string}`, note, remind } };
    case "process":
      return { name: "cancel-process", params: { processId: target as `proc_${string}`, note } };
    case "question":
      return { name: "cancel-question", params: { questionId: target as `ask_${string}`, note } };
  }
}

function changeParams({
  verb,
  runId,
  text,
  ticket,
}: ChangeRecord): Extract<CallerRequest, { name: "change" }>["params"] {
  switch (verb) {
    case "edit":
      return { runId, event: { type: "run.edited", like: { runId, prompt: { text } }, unique: true } };
    case "move":
      return { runId, event: { type: "run.moved", like: { runId }, unique: false } };
    case "steer":
      return { runId, event: { type: "run.steered", like: { runId }, unique: false } };
    case "withdraw": {
      const note = withdrawNote(ticket);
      const outcome = { kind: "cancelled", reason: { note } };
      return { runId, note, event: { type: "run.settled", like: { runId, outcome }, unique: true } };
    }
  }
}

/** The note of the reason of a withdrawal: its own. */
export const withdrawNote = (ticket: number): string => `w${ticket}`;
