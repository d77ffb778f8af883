// All methods that stop something, in one table. Each is accepted as a request and as a notification, in each version
// that has it, so that a stop is not lost because of its form.
import * as acp from "@agentclientprotocol/sdk";
import type * as v2 from "@agentclientprotocol/sdk/experimental/v2";
import { messageOf } from "../../../../core/errors.ts";
import type { AcpSessions } from "../acp-sessions.ts";
import { invalidParams } from "../rpc-error.ts";
import { callStopParams, fieldsOf, runStopParams, text } from "./extension-params.ts";
import {
  CANCEL_CALL,
  CANCEL_CALL_ALIAS,
  CANCEL_RUN,
  stopCall,
  stopCallAlias,
  stopRun,
  withRpcErrors,
} from "./extensions.ts";
import { runNamed } from "./request-meta.ts";

export type Version = 1 | 2;

interface StopMethod {
  readonly versions: readonly Version[];
  /** The form that the protocol defines. */
  readonly native?: "request" | "notification";
  /** Checks its own parameters, so that a request is answered with the validation error. */
  stop(context: AcpSessions, params: unknown, version: Version): Promise<object>;
}

const BOTH = [1, 2] as const;

export const STOPS: Readonly<Record<string, StopMethod>> = {
  "session/cancel": { versions: BOTH, native: "notification", stop: stopSession },
  "session/close": { versions: BOTH, native: "request", stop: ended("close") },
  "session/delete": { versions: BOTH, native: "request", stop: ended("remove") },
  [CANCEL_RUN]: { versions: BOTH, stop: async (context, params) => stopRun(context, runStopParams(params)) },
  [CANCEL_CALL]: { versions: BOTH, stop: async (context, params) => stopCall(context, callStopParams(params)) },
  [CANCEL_CALL_ALIAS]: {
    versions: BOTH,
    stop: async (context, params) => stopCallAlias(context, callStopParams(params)),
  },
  "tool_call/cancel": {
    versions: [2],
    native: "request",
    stop: async (context, params) => stopCall(context, callStopParams(params)),
  },
  "terminal/cancel": { versions: [2], native: "request", stop: stopTerminal },
};

/** The methods that an app of either version has. "*" handles what no other handler takes. */
interface App {
  onRequest(method: string, act: (received: Received) => Promise<object>): unknown;
  onNotification(method: string, act: (received: Received) => Promise<void>): unknown;
}

interface Received {
  readonly method: string;
  readonly params: unknown;
}

/** Registers the stop methods. "*" receives methods in a form that the SDK does not support. */
export function onStops(app: acp.AgentApp | v2.AgentApp, context: AcpSessions, version: Version): void {
  const stop = async ({ method, params }: Received): Promise<object> => {
    const one = Object.hasOwn(STOPS, method) ? STOPS[method] : undefined;
    if (one === undefined || !one.versions.includes(version)) throw acp.RequestError.methodNotFound(method);
    return one.stop(context, params, version);
  };
  // A notification has no answer that could carry a refusal.
  const stopSilently = async (received: Received): Promise<void> => {
    try {
      await stop(received);
    } catch (error) {
      if (Object.hasOwn(STOPS, received.method)) context.notice(`${received.method} was refused: ${messageOf(error)}`);
    }
  };
  // The SDK's types know each method only in its own form.
  const here = app as App;
  for (const [method, { versions, native }] of Object.entries(STOPS)) {
    if (!versions.includes(version)) continue;
    if (native === "request") here.onRequest(method, stop);
    if (native === "notification") here.onNotification(method, stopSilently);
  }
  here.onRequest("*", stop);
  here.onNotification("*", stopSilently);
}

/** In version 2 background processes keep running. */
async function stopSession(context: AcpSessions, params: unknown, version: Version): Promise<object> {
  const fields = fieldsOf(params);
  const background = version === 1 ? "stop" : "keep";
  // @fault cancel-covers-what-is-behind
  const receipt = await withRpcErrors(
    context.cancel(text(fields, "sessionId"), { run: runNamed(fields._meta), background }),
  );
  return { receipt };
}

/** Stops everything in a session and ends it: for this client (`close`) or permanently (`remove`). */
function ended(how: "close" | "remove"): StopMethod["stop"] {
  return async (client, params) => {
    await withRpcErrors(client[how](text(fieldsOf(params), "sessionId")));
    return {};
  };
}

async function stopTerminal(context: AcpSessions, params: unknown): Promise<object> {
  const fields = fieldsOf(params);
  const terminal = text(fields, "terminalId");
  const { kind } = await withRpcErrors(context.cancelProcess(text(fields, "sessionId"), terminal));
  if (kind === "unknown") throw invalidParams(`There is no terminal ${terminal.slice(0, 128)}.`);
  if (kind === "settled") throw invalidParams("That terminal has ended already.");
  return {};
}
