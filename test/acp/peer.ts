// An editor: the SDK's own client, in either version of the protocol, with a transcript of all messages.
import * as v1 from "@agentclientprotocol/sdk";
import * as v2 from "@agentclientprotocol/sdk/experimental/v2";
import type { Line } from "./byte-line.ts";
import {
  belayOf,
  type Fields,
  fieldsOf,
  type Said,
  Transcript,
  textOf,
  type Update,
  updateOf,
  type Version,
} from "./transcript.ts";

interface Speaker {
  request(method: string, params: Fields, options?: v1.SendRequestOptions): Promise<unknown>;
  notify(method: string, params: Fields): Promise<void>;
}

/** The answer to a permission request: an option, dismissed, or none at all. */
export type Permits = "allow" | "allow-session" | "deny" | "option-1" | "dismiss" | "never";

interface Connection {
  readonly agent: Speaker;
  close(): void;
}

export class Peer {
  readonly version: Version;
  readonly transcript = new Transcript();
  readonly permits = new Map<string, Permits>();
  readonly #line: Line;
  readonly #connection: Connection;
  #gone: Promise<void> | undefined;
  /** The updates that the SDK has accepted: it drops those that it does not understand. */
  readonly heard: Update[] = [];

  private constructor(line: Line, version: Version) {
    this.version = version;
    this.#line = line;
    const stream = this.transcript.around(line.stream);
    const permission = ({ params }: { readonly params: { readonly sessionId: string } }) =>
      this.#permit(params.sessionId);
    const update = ({ params }: { readonly params: { readonly update: object } }): void =>
      void this.heard.push(params.update as Update);
    const client =
      version === 1
        ? v1
            .client({ name: "t" })
            .onNotification("session/update", update)
            .onRequest("session/request_permission", permission)
        : v2
            .client({ name: "t" })
            .onNotification("session/update", update)
            .onRequest("session/request_permission", permission);
    this.#connection = client.connect(stream);
  }

  static async open(line: Line, version: Version): Promise<Peer> {
    const peer = new Peer(line, version);
    const info = { name: "t", version: "1" };
    const greeting = version === 1 ? { protocolVersion: 1 } : { protocolVersion: 2, info };
    await peer.request("initialize", greeting);
    return peer;
  }

  async request(method: string, params: Fields, signal?: AbortSignal): Promise<Fields> {
    const options = signal === undefined ? {} : { cancellationSignal: signal };
    return fieldsOf(await this.#connection.agent.request(method, params, options));
  }

  /** The error of the refusal. */
  async refused(method: string, params: Fields): Promise<v1.RequestError> {
    const answer: unknown = await this.request(method, params).catch((error: unknown) => error);
    if (answer instanceof v1.RequestError) return answer;
    throw new Error(`${method} was not refused: ${JSON.stringify(answer)}`);
  }

  notify(method: string, params: Fields): Promise<void> {
    return this.#connection.agent.notify(method, params);
  }

  async newSession(cwd: string, permits: Permits = "never"): Promise<PeerSession> {
    const { sessionId } = await this.request("session/new", { cwd, mcpServers: [] });
    this.permits.set(String(sessionId), permits);
    return new PeerSession(this, String(sessionId), cwd);
  }

  /** Opens an existing session: with its history, or from now on. */
  async open(id: string, cwd: string, from: "start" | "now" = "start"): Promise<PeerSession> {
    const params = { sessionId: id, cwd, mcpServers: [] };
    if (this.version === 1) await this.request(from === "start" ? "session/load" : "session/resume", params);
    else
      await this.request("session/resume", {
        ...params,
        ...(from === "start" ? { replayFrom: { type: "start" } } : {}),
      });
    return new PeerSession(this, id, cwd);
  }

  /** Once: a closed connection cannot be closed again. */
  drop(): Promise<void> {
    this.#gone ??= this.#leave();
    return this.#gone;
  }

  async #leave(): Promise<void> {
    const gone = this.#line.drop();
    this.#connection.close();
    await gone;
  }

  #permit(session: string): Promise<never> {
    const permits = this.permits.get(session) ?? "never";
    if (permits === "never") return new Promise(() => {});
    const outcome = permits === "dismiss" ? { outcome: "cancelled" } : { outcome: "selected", optionId: permits };
    // Both versions have the same shape, in unrelated types.
    return Promise.resolve({ outcome } as never);
  }
}

/** How a prompt ended, in either version. */
export interface Ended {
  readonly stopReason: string;
  readonly runId: string;
}

export interface Asked {
  readonly answer: Promise<Fields>;
  readonly ended: Promise<Ended>;
  /** Sends `$/cancel_request` for it. */
  dispose(): void;
}

export class PeerSession {
  readonly peer: Peer;
  readonly id: string;
  readonly cwd: string;
  readonly #from: number;

  constructor(peer: Peer, id: string, cwd: string) {
    this.peer = peer;
    this.id = id;
    this.cwd = cwd;
    // Updates that were sent while it was being opened belong to it.
    this.#from = peer.transcript.said.findLastIndex(
      ({ message }) => OPENING.has(message.method ?? "") && (message.params?.sessionId ?? id) === id,
    );
  }

  prompt(text: string, meta: Fields = {}): Asked {
    const taken = new AbortController();
    const params = { sessionId: this.id, prompt: [{ type: "text", text }], ...meta };
    const answer = this.peer.request("session/prompt", params, taken.signal);
    const ended = this.peer.version === 1 ? answer.then(endOf) : answer.then((one) => this.#idle(one), heldEnd);
    ended.catch(() => {});
    return { answer, ended, dispose: () => taken.abort() };
  }

  cancel(meta: Fields = {}): Promise<void> {
    return this.peer.notify("session/cancel", { sessionId: this.id, ...meta });
  }

  request(method: string, params: Fields = {}): Promise<Fields> {
    return this.peer.request(method, { sessionId: this.id, ...params });
  }

  refused(method: string, params: Fields = {}): Promise<v1.RequestError> {
    return this.peer.refused(method, { sessionId: this.id, ...params });
  }

  get updates(): readonly Update[] {
    return this.#updatesOf(this.peer.transcript.said);
  }

  /** The agent's text. */
  get said(): string {
    return words(this.updates, "agent_message_chunk");
  }

  get thought(): string {
    return words(this.updates, "agent_thought_chunk");
  }

  when<T>(find: (updates: readonly Update[]) => T | undefined): Promise<T> {
    return this.peer.transcript.when((said) => find(this.#updatesOf(said)));
  }

  /** Resolves when the agent has sent this text. */
  async sees(text: string): Promise<void> {
    await this.when((updates) => (words(updates, "agent_message_chunk").includes(text) ? true : undefined));
  }

  /** Resolves with a call that has begun, by its name. */
  call(name: string): Promise<string> {
    return this.when((updates) => textOf(updates.find((one) => one.name === name)?.toolCallId) || undefined);
  }

  /** The last update of a call, when it has ended. */
  callEnd(id: string): Promise<Update> {
    return this.when((updates) =>
      updates.find((one) => one.toolCallId === id && ["completed", "failed", "cancelled"].includes(textOf(one.status))),
    );
  }

  /** The run that sent the text. */
  run(): Promise<string> {
    return this.when(
      (updates) => textOf(belayOf(updates.findLast((one) => belayOf(one).runId !== undefined)).runId) || undefined,
    );
  }

  #updatesOf(said: readonly Said[]): readonly Update[] {
    return said.slice(Math.max(0, this.#from)).flatMap((one) => {
      const told = updateOf(one);
      return told?.sessionId === this.id ? [told.update] : [];
    });
  }

  #idle({ messageId }: Fields): Promise<Ended> {
    return this.when((updates) => {
      const idle = updates.find((one) => one.state === "idle" && belayOf(one).runId === messageId);
      return idle === undefined ? undefined : { stopReason: textOf(idle.stopReason), runId: textOf(messageId) };
    });
  }
}

const OPENING = new Set(["session/load", "session/resume"]);

const endOf = (answer: Fields): Ended => ({
  stopReason: textOf(answer.stopReason),
  runId: textOf(belayOf(answer).runId),
});

/** In version 2 a prompt that was cancelled before its run began is a cancelled request. */
function heldEnd(error: unknown): Ended {
  if (!(error instanceof v1.RequestError) || error.code !== -32800) throw error;
  return { stopReason: "cancelled", runId: textOf(fieldsOf(error.data).runId) };
}

const words = (updates: readonly Update[], kind: string): string =>
  updates
    .filter((one) => one.sessionUpdate === kind)
    .map((one) => textOf(fieldsOf(one.content).text))
    .join("");
