// A client that speaks the second version of the protocol.
import type {
  AgentContext,
  ClientCapabilities,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/experimental/v2";
import { isCallId, type SessionId } from "../core/ids.ts";
import type { Question } from "../core/question.ts";
import { answerOf, formOf } from "./elicitation.ts";
import type { Choice, Heard, Peer } from "./peer.ts";
import { askedText, choiceOf, optionsOf, unaskable } from "./permission-options.ts";
import type { Telling } from "./telling.ts";
import { toolWords } from "./tool-words.ts";
import { v2Updates } from "./v2-update.ts";

export class V2Peer implements Peer {
  readonly #client: AgentContext;
  readonly #can: ClientCapabilities;
  readonly #directories: ReadonlyMap<string, string>;

  constructor(client: AgentContext, can: ClientCapabilities, directories: ReadonlyMap<string, string>) {
    this.#client = client;
    this.#can = can;
    this.#directories = directories;
  }

  async tell(sessionId: SessionId, telling: Telling, heard: Heard): Promise<void> {
    const updates = v2Updates(telling, heard, this.#directories.get(sessionId));
    await Promise.all(updates.map((update) => this.#client.notify("session/update", { sessionId, update })));
  }

  /** What the session is doing, for whoever has just come. */
  async state(sessionId: SessionId, state: "idle" | "running" | "waiting"): Promise<void> {
    await this.#client.notify("session/update", { sessionId, update: STATES[state] });
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
      ...{ sessionId, title: askedText(question), options: [...options] },
      ...this.#subject(sessionId, question),
    };
    const { outcome } = await this.#client.request("session/request_permission", request, waiting);
    if (outcome.outcome !== "selected" || !("optionId" in outcome)) return { kind: "dismissed" };
    return choiceOf(question, String(outcome.optionId));
  }

  #subject(sessionId: string, { about, owner }: Question): Pick<RequestPermissionRequest, "subject"> {
    if (about.kind !== "approval" || !isCallId(owner)) return {};
    const { title, kind } = toolWords(about.name, about.input, this.#directories.get(sessionId));
    const toolCall = { toolCallId: owner, name: about.name, title, kind, rawInput: about.input };
    return { subject: { type: "tool_call", toolCall } };
  }
}

const STATES = {
  idle: { sessionUpdate: "state_update", state: "idle" },
  running: { sessionUpdate: "state_update", state: "running" },
  waiting: { sessionUpdate: "state_update", state: "requires_action" },
} as const;
