// A client of protocol version 2.
import type {
  AgentContext,
  ClientCapabilities,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/experimental/v2";
import { isCallId, type SessionId } from "../../../../core/model/ids.ts";
import type { Question } from "../../../../core/model/question.ts";
import { askClient } from "../ask-client.ts";
import type { Choice, Origin, Peer, SessionLocation } from "../peer.ts";
import { askedText, NO_RUN } from "../permission-options.ts";
import { toolTitle } from "../updates/tool-title.ts";
import type { Update } from "../updates/update.ts";
import { v2Updates } from "../updates/v2-update.ts";

export class V2Peer implements Peer {
  readonly #client: AgentContext;
  readonly #can: ClientCapabilities;

  constructor(client: AgentContext, can: ClientCapabilities) {
    this.#client = client;
    this.#can = can;
  }

  async send({ sessionId, cwd }: SessionLocation, given: Update, origin: Origin): Promise<void> {
    const updates = v2Updates(given, origin, cwd);
    await Promise.all(updates.map((update) => this.#client.notify("session/update", { sessionId, update })));
  }

  /** Sends the session's state to a client that has just opened it. */
  async state(sessionId: SessionId, state: "idle" | "running" | "waiting"): Promise<void> {
    await this.#client.notify("session/update", { sessionId, update: STATES[state] });
  }

  ask(place: SessionLocation, question: Question, signal: AbortSignal): Promise<Choice | undefined> {
    const { sessionId } = place;
    const waiting = { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
    const hasForms = this.#can.elicitation?.form != null;
    return askClient(sessionId, question, {
      form: hasForms ? (form) => this.#client.request("elicitation/create", form, waiting) : undefined,
      choose: async (options) => {
        const about = { title: askedText(question), ...subjectOf(place, question) };
        const request: RequestPermissionRequest = { sessionId, options, ...about };
        const { outcome } = await this.#client.request("session/request_permission", request, waiting);
        return outcome.outcome === "selected" && "optionId" in outcome ? String(outcome.optionId) : undefined;
      },
      send: (given) => this.send(place, given, NO_RUN),
    });
  }
}

function subjectOf({ cwd }: SessionLocation, { about, owner }: Question): Pick<RequestPermissionRequest, "subject"> {
  if (about.kind !== "approval" || !isCallId(owner)) return {};
  const { title, kind } = toolTitle(about.name, about.input, cwd);
  const toolCall = { toolCallId: owner, name: about.name, title, kind, rawInput: about.input };
  return { subject: { type: "tool_call", toolCall } };
}

const STATES = {
  idle: { sessionUpdate: "state_update", state: "idle" },
  running: { sessionUpdate: "state_update", state: "running" },
  waiting: { sessionUpdate: "state_update", state: "requires_action" },
} as const;
