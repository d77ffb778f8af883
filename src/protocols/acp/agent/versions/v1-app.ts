// Version 1 of the protocol, method by method.
import * as acp from "@agentclientprotocol/sdk";
import type { Outcome } from "../../../../core/model/cancel.ts";
import type { AcpSessions } from "../acp-sessions.ts";
import { aboutBelay, begin, list, resourcesOf, STEERABLE } from "../client-requests.ts";
import { LOST } from "../format-end.ts";
import { modelParams, sessionParams, steerParams } from "../methods/extension-params.ts";
import * as extension from "../methods/extensions.ts";
import { awaitPrompt, withRpcErrors } from "../methods/extensions.ts";
import { onWithdrawal } from "../methods/request-meta.ts";
import { onStops } from "../methods/stops.ts";
import { modeAsked, v1Menus, v1Options } from "../mode-choice.ts";
import type { OwnPrompt, PromptEnd } from "../own-prompt.ts";
import { runFailed } from "../rpc-error.ts";
import { V1Peer } from "./v1-peer.ts";

export function v1App(context: AcpSessions, version: string): acp.AgentApp {
  const app = acp.agent({ name: "belay" });
  const { agent } = context;
  const menus = (id: string): object => agent?.menus(id) ?? v1Menus(context.choice(id));
  app.onRequest("initialize", ({ params, client }) => {
    context.usePeer(new V1Peer(client, params.clientCapabilities ?? {}));
    return about(version, agent !== undefined);
  });
  app.onRequest("session/new", async ({ params }) => {
    const sessionId = await withRpcErrors(context.create(resourcesOf(params)));
    return { sessionId, ...menus(sessionId) };
  });
  const open = async (params: acp.ResumeSessionRequest, from: "start" | "now"): Promise<acp.LoadSessionResponse> => {
    await withRpcErrors(context.open(params.sessionId, from, resourcesOf(params)));
    return menus(params.sessionId);
  };
  app.onRequest("session/load", ({ params }) => open(params, "start"));
  app.onRequest("session/resume", ({ params }) => open(params, "now"));
  app.onRequest("session/set_mode", async ({ params }) => {
    if (agent !== undefined) return agent.set("session/set_mode", params);
    await withRpcErrors(context.setMode(params.sessionId, params.modeId));
    return {};
  });
  app.onRequest("session/set_config_option", async ({ params }) => {
    if (agent !== undefined) return agent.setOption(params);
    await withRpcErrors(context.setMode(params.sessionId, modeAsked(params)));
    return { configOptions: v1Options(context.choice(params.sessionId)) };
  });
  // Not a stable method, but other agents have it.
  if (agent !== undefined) app.onRequest(SET_MODEL, modelParams, ({ params }) => agent.set(SET_MODEL, params));
  app.onRequest("session/list", ({ params }) => list(context, params));
  // Synchronous up to the first await: nothing may overtake the prompt.
  // @fault cancel-overtakes-the-prompt
  app.onRequest("session/prompt", ({ params, signal }) => answer(context, begin(context, params), signal));
  onStops(app, context, 1);
  app.onRequest(extension.STEER, steerParams, ({ params }) => extension.steer(context, params));
  app.onRequest(extension.EXPLAIN, sessionParams, ({ params }) => extension.explain(context, params.sessionId));
  return app;
}

const SET_MODEL = "session/set_model";

/** `isFront`: MCP servers are passed to the agent behind Belay, which reports those that it does not support. */
const about = (version: string, isFront: boolean): acp.InitializeResponse => ({
  protocolVersion: acp.PROTOCOL_VERSION,
  agentInfo: { name: "belay", title: "Belay", version },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    ...(isFront ? { mcpCapabilities: { http: true, sse: true } } : {}),
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    _meta: aboutBelay(version),
  },
  authMethods: [],
  _meta: STEERABLE,
});

/** Answers a prompt. A cancel is a result. A closed connection does not cancel; only a cancelled request does. */
async function answer(context: AcpSessions, own: OwnPrompt, signal: AbortSignal): Promise<acp.PromptResponse> {
  onWithdrawal(signal, () => void context.withdraw(own));
  const end = await awaitPrompt(own, own.ended);
  return { stopReason: stopReason(end), _meta: { belay: endOf(end) } };
}

function stopReason({ runId, outcome }: PromptEnd): acp.StopReason {
  switch (outcome.kind) {
    case "completed":
      return outcome.finish === "length" ? "max_tokens" : outcome.finish === "refusal" ? "refusal" : "end_turn";
    case "cancelled":
      return "cancelled"; // @fault cancelled-as-an-error
    case "failed":
      throw runFailed(runId, outcome.code, outcome.message);
    case "lost":
      throw runFailed(runId, "lost", LOST); // @fault cancelled-as-an-error:error
  }
}

function endOf({ runId, outcome, usage }: PromptEnd): object {
  return { runId, outcome: outcome satisfies Outcome, ...(usage === undefined ? {} : { usage }) };
}
