// Version 2 of the protocol, method by method. It is a draft and may change with any release of the SDK.
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { isSessionId } from "../../../../core/model/ids.ts";
import type { AcpSessions } from "../acp-sessions.ts";
import { aboutBelay, begin, list, resourcesOf, STEERABLE } from "../client-requests.ts";
import { sessionParams, steerParams } from "../methods/extension-params.ts";
import * as extension from "../methods/extensions.ts";
import { awaitPrompt, withRpcErrors } from "../methods/extensions.ts";
import { onWithdrawal } from "../methods/request-meta.ts";
import { onStops } from "../methods/stops.ts";
import { modeAsked, v2Menus, v2Options } from "../mode-choice.ts";
import type { OwnPrompt } from "../own-prompt.ts";
import { invalidParams, requestCancelled } from "../rpc-error.ts";
import { V2Peer } from "./v2-peer.ts";

export function v2App(context: AcpSessions, version: string): acp.AgentApp {
  const app = acp.agent({ name: "belay" });
  let peer: V2Peer | undefined;
  app.onRequest("initialize", ({ params, client }) => {
    peer = new V2Peer(client, params.capabilities ?? {});
    context.usePeer(peer);
    return about(version);
  });
  app.onRequest("session/new", async ({ params }) => {
    const sessionId = await withRpcErrors(context.create(resourcesOf(params)));
    return { sessionId, ...v2Menus(context.choice(sessionId)) };
  });
  app.onRequest("session/resume", async ({ params }) => {
    const { sessionId, replayFrom } = params;
    if (replayFrom != null && replayFrom.type !== "start") throw invalidParams("`replayFrom` can only be the start.");
    const from = replayFrom == null ? "now" : "start";
    const attached = await withRpcErrors(context.open(sessionId, from, resourcesOf(params)));
    if (isSessionId(sessionId)) await peer?.state(sessionId, attached.state);
    return v2Menus(attached.choice);
  });
  app.onRequest("session/set_config_option", async ({ params }) => {
    await withRpcErrors(context.setMode(params.sessionId, modeAsked(params)));
    return { configOptions: v2Options(context.choice(params.sessionId)) };
  });
  app.onRequest("session/list", ({ params }) => list(context, params));
  // Synchronous up to the first await: nothing may overtake the prompt.
  app.onRequest("session/prompt", ({ params, signal }) => inserted(context, begin(context, params), signal));
  onStops(app, context, 2);
  app.onRequest(extension.STEER, steerParams, ({ params }) => extension.steer(context, params));
  app.onRequest(extension.EXPLAIN, sessionParams, ({ params }) => extension.explain(context, params.sessionId));
  return app;
}

const about = (version: string): acp.InitializeResponse => ({
  protocolVersion: acp.PROTOCOL_VERSION,
  info: { name: "belay", title: "Belay", version },
  capabilities: {
    session: { prompt: { image: {}, embeddedContext: {} }, delete: {} },
    _meta: aboutBelay(version),
  },
  _meta: STEERABLE,
});

/** Answers a prompt when its run begins. A prompt that was stopped before is answered as a cancelled request. */
async function inserted(context: AcpSessions, own: OwnPrompt, signal: AbortSignal): Promise<acp.PromptResponse> {
  onWithdrawal(signal, () => void context.withdraw(own));
  const begun = await awaitPrompt(own, own.begun);
  if (typeof begun === "string") return { messageId: begun, _meta: { belay: { runId: begun } } };
  throw requestCancelled(begun.runId); // @fault held-prompt-called-inserted
}
