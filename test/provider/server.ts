// A model provider on this machine, for tests: real sockets, the real wire formats, and answers a test has scripted.
//
//   await using server = await startProvider([[{ text: "Hel" }, { hold: "in text" }, { text: "lo" }]]);
//   const { stream } = await modelsAt(server.baseURL).anthropic.doStream({ prompt, abortSignal: controller.signal });
//   await server.reached("in text");              // "Hel" has left the server, and nothing else will
//   controller.abort();
//   const closedAt = await server.requests[0]?.closed;    // when the provider's socket closed
//
// One script per request, in order; or a function of the request. The format is the one the client asks for.
// Requests the real provider would refuse are refused, and told in `violations`: end a test by expecting none.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { anthropic } from "./anthropic.ts";
import { type Format, type FormatName, type Memory, newMemory } from "./format.ts";
import { Gates } from "./gates.ts";
import { field, parsed } from "./json.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";
import { Player } from "./player.ts";
import { ResponseLine } from "./response-line.ts";
import { type Script, script } from "./script.ts";

export interface ProviderRequest {
  readonly index: number;
  readonly format: FormatName;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As `performance.now()` tells it. */
  readonly arrivedAt: number;
  /** When the client closed the connection before the answer was over; undefined if it has not. */
  readonly closedAt: number | undefined;
  /** Settles with that time; rejects if the answer was over, or the server closed, before the client left. */
  readonly closed: Promise<number>;
}

export interface Violation {
  readonly request: number;
  readonly format: FormatName | undefined;
  /** The name of the rule in `rules-*.ts`; else `http`, `unscripted`, or `thrown` by the test's function. */
  readonly rule: string;
  readonly message: string;
}

/** One script per request, in order, or what to answer to this one. */
export type Answers = readonly Script[] | ((request: ProviderRequest) => Script | Promise<Script>);

const FORMATS: readonly Format[] = [openaiChat, openaiResponses, anthropic];

export class ProviderServer implements AsyncDisposable {
  readonly #http: Server;
  readonly #gates = new Gates();
  readonly #memory: Memory = newMemory();
  readonly #requests: ProviderRequest[] = [];
  readonly #violations: Violation[] = [];
  readonly #lines = new Set<ResponseLine>();
  readonly #arrivals: PromiseWithResolvers<ProviderRequest>[] = [];
  readonly #scripts: Script[] = [];
  readonly #answer: ((request: ProviderRequest) => Script | Promise<Script>) | undefined;

  constructor(answers: Answers) {
    if (typeof answers === "function") this.#answer = answers;
    else this.add(...answers);
    this.#http = createServer((request, response) => void this.#receive(request, response));
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#http.listen(0, "127.0.0.1", resolve));
    return this;
  }

  /** With `/v1`, as all of the provider packages want it. */
  get baseURL(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/v1`;
  }

  get requests(): readonly ProviderRequest[] {
    return this.#requests;
  }

  get violations(): readonly Violation[] {
    return this.#violations;
  }

  /** Settles when this request has arrived, the first being 0. */
  request(index: number): Promise<ProviderRequest> {
    return this.#arrival(index).promise;
  }

  /** Settles when the server has come to this gate, and all before it has been flushed to the socket. */
  reached(gate: string): Promise<void> {
    return this.#gates.reached(gate);
  }

  /** Opens the gate for good, also for a server that has not come to it yet. */
  release(gate: string): void {
    this.#gates.release(gate);
  }

  /** Answers to further requests. */
  add(...scripts: readonly Script[]): void {
    this.#scripts.push(...scripts.map(script));
  }

  /** Closes every connection, held ones too, at once. */
  async close(): Promise<void> {
    this.#gates.bar("The server was closed before it came to this gate.");
    for (const arrival of this.#arrivals) arrival.reject(new Error("The server was closed before this request came."));
    for (const line of this.#lines) line.leave();
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    this.#http.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const line = new ResponseLine(response);
    this.#lines.add(line);
    try {
      const body = parsed(await textOf(incoming));
      const format = FORMATS.find((one) => one.path === incoming.url);
      const index = this.#requests.length;
      const wrong = format === undefined ? [] : findings(format, body, incoming, this.#memory);
      if (format === undefined) wrong.push(["http", `${incoming.url} is not spoken here`]);
      for (const [rule, message] of wrong) this.#violate({ request: index, format: format?.name, rule, message });
      const told = wrong.map(([, message]) => message).join("; ");
      if (format === undefined) return await line.fail(404, {}, openaiChat.failure(404, told));
      const request = recorded(index, format, body, incoming, line);
      this.#requests.push(request);
      this.#arrival(index).resolve(request);
      if (wrong.length > 0) return await line.fail(400, {}, format.failure(400, told));
      await this.#play(format, request, line);
    } catch (error) {
      // Either the client left in the middle of its own request, or the test's function or this server has a bug.
      const request = this.#requests.length - 1;
      if (!line.isGone) this.#violate({ request, format: undefined, rule: "thrown", message: String(error) });
      line.leave();
    } finally {
      this.#lines.delete(line);
    }
  }

  async #play(format: Format, request: ProviderRequest, line: ResponseLine): Promise<void> {
    const answer = this.#answer === undefined ? this.#scripts.shift() : script(await this.#answer(request));
    if (answer === undefined) {
      const message = `There is no script for request ${request.index}.`;
      this.#violate({ request: request.index, format: format.name, rule: "unscripted", message });
      return line.fail(400, {}, format.failure(400, message));
    }
    const rendering = format.open(request.body, this.#memory);
    await new Player(line, this.#gates, format, rendering, answer).play();
  }

  #violate(violation: Violation): void {
    this.#violations.push(violation);
    this.#gates.bar(`Request ${violation.request} was refused (${violation.rule}): ${violation.message}`);
  }

  #arrival(index: number): PromiseWithResolvers<ProviderRequest> {
    while (this.#arrivals.length <= index) {
      const arrival = Promise.withResolvers<ProviderRequest>();
      arrival.promise.catch(() => {});
      this.#arrivals.push(arrival);
    }
    const arrival = this.#arrivals[index];
    if (arrival === undefined) throw new RangeError(`There is no request ${index}.`);
    return arrival;
  }
}

export const startProvider = (answers: Answers): Promise<ProviderServer> => new ProviderServer(answers).listen();

async function textOf(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

function recorded(
  index: number,
  format: Format,
  body: unknown,
  incoming: IncomingMessage,
  line: ResponseLine,
): ProviderRequest {
  return {
    index,
    format: format.name,
    body,
    headers: incoming.headers,
    arrivedAt: performance.now(),
    closed: line.closed,
    get closedAt() {
      return line.closedAt;
    },
  };
}

/** What is wrong with a request, each with the name of the rule. */
function findings(format: Format, body: unknown, incoming: IncomingMessage, memory: Memory): [string, string][] {
  const found: [string, string][] = [];
  if (incoming.method !== "POST") found.push(["http", `${incoming.method} is not allowed`]);
  for (const name of format.headers) {
    if (incoming.headers[name] === undefined) found.push(["http", `the header ${name} is missing`]);
  }
  if (body === undefined) return [...found, ["http", "the body is not JSON"]];
  if (field(body, "stream") !== true) found.push(["http", "stream: only true is spoken here"]);
  if (typeof field(body, "model") !== "string") found.push(["http", "model: missing"]);
  for (const [name, rule] of Object.entries(format.rules)) {
    found.push(...rule(body, memory).map((message): [string, string] => [name, message]));
  }
  return found;
}
