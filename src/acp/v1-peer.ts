// A client that speaks the first version of the protocol.
import type { AgentContext, ClientCapabilities, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { isCallId, type SessionId } from "../core/ids.ts";
import type { Question } from "../core/question.ts";
import { answerOf, formOf } from "./elicitation.ts";
import type { Choice, Heard, Peer } from "./peer.ts";
import { askedText, choiceOf, optionsOf, unaskable } from "./permission-options.ts";
import type { Telling } from "./telling.ts";
import { toolWords } from "./tool-words.ts";
import { v1Updates } from "./v1-update.ts";

export class V1Peer implements Peer {
  readonly #client: AgentContext;
  readonly #can: ClientCapabilities;
  readonly #directories: ReadonlyMap<string, string>;

  /** `directories`: where each session works. */
  constructor(client: AgentContext, can: ClientCapabilities, directories: ReadonlyMap<string, string>) {
    this.#client = client;
    this.#can = can;
    this.#directories = directories;
  }

  async tell(sessionId: SessionId, telling: Telling, heard: Heard): Promise<void> {
    const updates = v1Updates(telling, heard, this.#directories.get(sessionId));
    await Promise.all(updates.map((update) => this.#client.notify("session/update", { sessionId, update })));
  }

  async ask(sessionId: SessionId, question: Question, signal: AbortSignal): Promise<Choice | undefined> {
    const waiting = { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
    const form = this.#can.elicitation?.form == null ? undefined : formOf(sessionId, question);
    if (form !== undefined) return answerOf(await this.#client.request("elicitation/create", form, waiting));
    const options = optionsOf(question);
    if (options.length === 0) {
      await this.tell(sessionId, unaskable(question), { when: "live", whose: "other" });
      return undefined;
    }
    const request: RequestPermissionRequest = {
      ...{ sessionId, toolCall: this.#subject(sessionId, question), options: [...options] },
    };
    const { outcome } = await this.#client.request("session/request_permission", request, waiting);
    return outcome.outcome === "selected" ? choiceOf(question, outcome.optionId) : { kind: "dismissed" };
  }

  /** What it is about: a call the client knows, or, for a question of the turn itself, the question. */
  #subject(sessionId: string, question: Question): RequestPermissionRequest["toolCall"] {
    const { about, owner } = question;
    const toolCallId = isCallId(owner) ? owner : question.id;
    if (about.kind === "question") return { toolCallId, title: askedText(question), status: "pending" };
    const { title } = toolWords(about.name, about.input, this.#directories.get(sessionId));
    return { toolCallId, title, rawInput: about.input, status: "pending" };
  }
}
