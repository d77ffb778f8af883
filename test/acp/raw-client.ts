// A client that writes raw lines: any bytes, in any order, several in one chunk.
import type { AcpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Bytes, inMemory } from "./byte-line.ts";
import { type Fields, type Message, Transcript, type Version } from "./transcript.ts";

export class RawClient {
  readonly transcript = new Transcript();
  readonly version: Version;
  readonly #line: Bytes;
  #asked = 0;

  private constructor(line: Bytes, version: Version) {
    this.#line = line;
    this.version = version;
  }

  /** Connects without sending anything. `heard` is called with each message that arrives. */
  static connect(
    acp: Pick<AcpAgent, "connect">,
    version: Version,
    heard: (message: Message) => void = () => {},
  ): RawClient {
    const line = inMemory(acp);
    const client = new RawClient(line, version);
    void client.#read(heard);
    return client;
  }

  static async open(...given: Parameters<typeof RawClient.connect>): Promise<RawClient> {
    const client = RawClient.connect(...given);
    await client.ask("initialize", greeting(client.version));
    return client;
  }

  /** Creates a request without sending it. */
  request(method: string, params: Fields): Message {
    this.#asked += 1;
    return { jsonrpc: "2.0", id: this.#asked, method, params };
  }

  prompt(sessionId: string, text: string): Message {
    return this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  /** Writes the messages as one chunk. */
  async send(...messages: readonly Message[]): Promise<void> {
    for (const message of messages) this.transcript.add("client", message);
    await this.#line.write(`${messages.map((one) => JSON.stringify(one)).join("\n")}\n`);
  }

  /** Writes bytes that need not be messages. They are not in the transcript. */
  write(bytes: Uint8Array | string): Promise<void> {
    return this.#line.write(bytes);
  }

  answer(id: Message["id"]): Promise<Message> {
    return this.transcript.when(
      (said) =>
        said.find(({ by, message }) => by === "agent" && message.method === undefined && message.id === id)?.message,
    );
  }

  async ask(method: string, params: Fields): Promise<Message> {
    const request = this.request(method, params);
    await this.send(request);
    return this.answer(request.id);
  }

  async newSession(cwd: string): Promise<string> {
    const { result } = await this.ask("session/new", { cwd, mcpServers: [] });
    return String(result?.sessionId);
  }

  /** The messages after the first `n`. */
  after(count: number): readonly Message[] {
    return this.transcript.said.slice(count).flatMap(({ by, message }) => (by === "agent" ? [message] : []));
  }

  /** Resolves when the agent has closed the connection. */
  get closed(): Promise<void> {
    return this.#line.closed;
  }

  drop(): Promise<void> {
    return this.#line.drop();
  }

  async #read(heard: (message: Message) => void): Promise<void> {
    const reader = this.#line.stream.readable.getReader();
    for (;;) {
      const next = await reader.read().catch(() => undefined);
      if (next?.value === undefined) break;
      this.transcript.add("agent", next.value);
      // The readers check whether it is a message.
      heard(next.value as Message);
    }
    this.transcript.end();
  }
}

export const greeting = (version: number): Fields =>
  version === 1
    ? { protocolVersion: 1, clientCapabilities: {} }
    : { protocolVersion: version, info: { name: "t", version: "1" }, capabilities: {} };

export const notification = (method: string, params: Fields): Message => ({ jsonrpc: "2.0", method, params });
