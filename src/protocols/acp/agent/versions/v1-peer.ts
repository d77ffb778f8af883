// A client of protocol version 1.
import type { AgentContext, ClientCapabilities, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { isCallId } from "../../../../core/model/ids.ts";
import type { Json } from "../../../../core/model/prompt.ts";
import type { Question } from "../../../../core/model/question.ts";
import { askClient } from "../ask-client.ts";
import type { Choice, Origin, Peer, SessionLocation } from "../peer.ts";
import { askedText, NO_RUN } from "../permission-options.ts";
import { toolTitle } from "../updates/tool-title.ts";
import type { Update } from "../updates/update.ts";
import { v1Updates } from "../updates/v1-update.ts";

export class V1Peer implements Peer {
  readonly #client: AgentContext;
  readonly #can: ClientCapabilities;

  constructor(client: AgentContext, can: ClientCapabilities) {
    this.#client = client;
    this.#can = can;
  }

  async send({ sessionId, cwd }: SessionLocation, given: Update, origin: Origin): Promise<void> {
    const updates = v1Updates(given, origin, cwd);
    await Promise.all(updates.map((update) => this.#client.notify("session/update", { sessionId, update })));
  }

  passOn({ sessionId }: SessionLocation, update: { readonly [key: string]: Json }): Promise<void> {
    // The SDK may not know this kind of update.
    return this.#client.notify("session/update", { sessionId, update: update as never });
  }

  ask(place: SessionLocation, question: Question, signal: AbortSignal): Promise<Choice | undefined> {
    const { sessionId } = place;
    const waiting = { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
    const hasForms = this.#can.elicitation?.form != null;
    return askClient(sessionId, question, {
      form: hasForms ? (form) => this.#client.request("elicitation/create", form, waiting) : undefined,
      choose: async (options) => {
        const request: RequestPermissionRequest = { sessionId, toolCall: subjectOf(place, question), options };
        const { outcome } = await this.#client.request("session/request_permission", request, waiting);
        return outcome.outcome === "selected" ? outcome.optionId : undefined;
      },
      send: (given) => this.send(place, given, NO_RUN),
    });
  }
}

/** The subject of a question: a call that the client knows or, for a question of the turn itself, the question. */
function subjectOf({ cwd }: SessionLocation, question: Question): RequestPermissionRequest["toolCall"] {
  const { about, owner } = question;
  const toolCallId = isCallId(owner) ? owner : question.id;
  if (about.kind === "question") return { toolCallId, title: askedText(question), status: "pending" };
  const { title } = toolTitle(about.name, about.input, cwd);
  return { toolCallId, title, rawInput: about.input, status: "pending" };
}
