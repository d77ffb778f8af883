// The routes for the whole server: its state, all sessions, and stopping everything.
import { z } from "zod";
import { feedCursor, feedEvent, recorded, streamDown } from "../schemas/event.ts";
import { coveredSessions, promptCancelReceipt } from "../schemas/outcome.ts";
import { questions } from "../schemas/question.ts";
import {
  allEventsQuery,
  auditQuery,
  beginBody,
  cancelAllBody,
  createBody,
  idsQuery,
  promptCancelBody,
  sessionsQuery,
  streamBody,
} from "../schemas/request.ts";
import {
  accepted,
  auditRecord,
  explanations,
  health,
  idsFound,
  readiness,
  sessionRow,
  sessionRows,
  status,
} from "../schemas/view.ts";
import { events, json, type Route, text } from "./route.ts";

/** The exposition format of the metrics. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The reply to messages on a stream. */
export const received = z.strictObject({});

export const auditRecords = z.object({ records: z.array(auditRecord), next: z.string().nullable() });

export const SERVER_ROUTES = {
  health: {
    method: "GET",
    path: "/healthz",
    scope: "public",
    summary: "Liveness: whether the server responds.",
    answers: { 200: json(health) },
  },
  ready: {
    method: "GET",
    path: "/readyz",
    scope: "public",
    summary: "Readiness: not ready while the server shuts down, cannot record prompts, or is short of open files.",
    answers: { 200: json(readiness), 503: json(readiness) },
  },
  openapi: {
    method: "GET",
    path: "/openapi.json",
    scope: "public",
    summary: "This document.",
    answers: { 200: text("application/json; charset=utf-8") },
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    scope: "read",
    serverWide: true,
    summary: "Counters and gauges for Prometheus.",
    answers: { 200: text(METRICS_TYPE) },
  },
  status: {
    method: "GET",
    path: "/v1/status",
    scope: "read",
    serverWide: true,
    summary: "The state and load of the worker.",
    answers: { 200: json(status) },
  },
  live: {
    method: "GET",
    path: "/v1/live",
    scope: "read",
    summary: "All sessions that are busy or have processes, with the reason.",
    answers: { 200: json(explanations) },
  },
  audit: {
    method: "GET",
    path: "/v1/audit",
    scope: "admin",
    summary: "The audit trail: actor, action and result of control requests, newest first.",
    query: auditQuery,
    answers: { 200: json(auditRecords) },
  },
  cancelAll: {
    method: "POST",
    path: "/v1/cancel",
    scope: "cancel",
    stop: true,
    summary: "Stops everything that was accepted before, in every session, and nothing that comes after.",
    body: cancelAllBody,
    answers: { 200: json(coveredSessions) },
    audit: { action: "cancel-all" },
  },
  cancelBegun: {
    method: "POST",
    path: "/v1/prompts/{key}/cancel",
    scope: "cancel",
    stop: true,
    summary: "Stops the run of the prompt that began a separate session with this idempotency key.",
    body: promptCancelBody,
    answers: { 200: json(promptCancelReceipt) },
    audit: { action: "cancel-prompt", target: "key" },
  },
  createSession: {
    method: "POST",
    path: "/v1/sessions",
    scope: "prompt",
    summary: "Creates a session, or returns the existing one if its id or key was used before.",
    body: createBody,
    answers: { 200: json(sessionRow), 201: json(sessionRow) },
    audit: { action: "create-session" },
  },
  listSessions: {
    method: "GET",
    path: "/v1/sessions",
    scope: "read",
    summary: "Sessions in order of creation, or newest first.",
    query: sessionsQuery,
    answers: { 200: json(sessionRows) },
  },
  findIds: {
    method: "GET",
    path: "/v1/ids",
    scope: "read",
    summary: "Ids that begin with a prefix, of live and settled objects. An exact match comes first.",
    query: idsQuery,
    answers: { 200: json(idsFound) },
  },
  beginRun: {
    method: "POST",
    path: "/v1/runs",
    scope: "prompt",
    summary: "A prompt in a new session.",
    body: beginBody,
    answers: { 202: json(accepted) },
    audit: { action: "prompt" },
  },
  allEvents: {
    method: "GET",
    path: "/v1/events",
    scope: "read",
    summary: "The events of all sessions as they are recorded.",
    query: allEventsQuery,
    answers: { 200: events(feedEvent, feedCursor, recorded) },
  },
  stream: {
    method: "GET",
    path: "/v1/stream",
    scope: "read",
    carrier: true,
    summary: "One connection for any number of requests that follow, wait or stop: a WebSocket, or an event stream.",
    answers: { 200: events(streamDown) },
  },
  sendToStream: {
    method: "POST",
    path: "/v1/stream",
    scope: "read",
    carrier: true,
    stop: true,
    keyed: "no",
    summary: "Sends messages to a stream that was opened as an event stream. The responses arrive there.",
    body: streamBody,
    answers: { 202: json(received) },
    audit: { action: "stream" },
  },
  allQuestions: {
    method: "GET",
    path: "/v1/questions",
    scope: "read",
    summary: "The open questions of all sessions.",
    answers: { 200: json(questions) },
  },
} as const satisfies Readonly<Record<string, Route>>;
