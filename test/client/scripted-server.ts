// A server that does what the test says, on a real socket: each request is handed to the test, which answers, delays,
// repeats, cuts or keeps silent.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export interface ScriptedServer {
  readonly url: string;
  /** Every request so far, as `METHOD /path?query`. */
  readonly heard: readonly string[];
  /** The next request that begins with this and was not handed out yet. */
  next(beginning: string): Promise<Exchange>;
  /** Ends every connection and takes no new ones, as a server that dies does. */
  die(): Promise<void>;
}

/** On this port of the loopback, or any; or on a socket of this path. Whoever connects is known at once. */
export async function scriptedServer(where: { port?: number; socket?: string } = {}): Promise<ScriptedServer> {
  const heard: string[] = [];
  const unclaimed: Exchange[] = [];
  const waiting: { readonly beginning: string; readonly take: (one: Exchange) => void }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer(async (request, response) => {
    const exchange = new Exchange(request, response, await bodyOf(request));
    if (exchange.line === "GET /v1/sessions?limit=1") return exchange.json(200, { sessions: [], next: null });
    heard.push(exchange.line);
    const index = waiting.findIndex(({ beginning }) => exchange.line.startsWith(beginning));
    const [taker] = index === -1 ? [] : waiting.splice(index, 1);
    if (taker === undefined) unclaimed.push(exchange);
    else taker.take(exchange);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    // Whoever hangs up in the middle is part of the test.
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  if (where.socket === undefined) server.listen(where.port ?? 0, "127.0.0.1");
  else server.listen(where.socket);
  await once(server, "listening");
  const port = where.socket === undefined ? (server.address() as AddressInfo).port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    heard,
    next: (beginning) => {
      const index = unclaimed.findIndex(({ line }) => line.startsWith(beginning));
      const [exchange] = index === -1 ? [] : unclaimed.splice(index, 1);
      if (exchange !== undefined) return Promise.resolve(exchange);
      return new Promise((take) => waiting.push({ beginning, take }));
    },
    die: async () => {
      const closed = server.listening ? once(server, "close") : undefined;
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** One request in the hands of the test. */
export class Exchange {
  readonly line: string;
  readonly body: unknown;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse, body: string) {
    this.line = `${request.method} ${request.url}`;
    this.body = body === "" ? undefined : JSON.parse(body);
    this.#request = request;
    this.#response = response;
    response.on("error", () => undefined);
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.text(status, JSON.stringify(body), { "content-type": "application/json", ...headers });
  }

  error(status: number, code: string, headers: Readonly<Record<string, string>> = {}): void {
    const error = { code, message: `It is ${code}.`, hint: "A hint.", retryable: false, requestId: "req_1" };
    this.json(status, { error }, headers);
  }

  text(status: number, text: string, headers: Readonly<Record<string, string>> = {}): void {
    this.#response.writeHead(status, headers).end(status === 204 ? undefined : text);
  }

  /** Begins an event stream. */
  stream(): this {
    this.#response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    this.#response.flushHeaders();
    return this.say("retry: 1000\n\n");
  }

  say(text: string | Uint8Array): this {
    this.#response.write(text);
    return this;
  }

  /** Recorded facts of a log, by position. */
  events(...seqs: readonly number[]): this {
    for (const seq of seqs) this.say(eventText(seq));
    return this;
  }

  /** Ends the answer in order. */
  end(): void {
    this.#response.end();
  }

  /** Cuts the connection, in the middle of whatever it is, once all that was said has left. */
  async cut(): Promise<void> {
    const { socket } = this.#request;
    // Sent, not only handed over: otherwise the cut overtakes it.
    if (this.#response.headersSent) await new Promise<void>((resolve) => socket.write("", () => resolve()));
    socket.destroy();
  }

  /** Resolves when whoever asked is gone. */
  async left(): Promise<void> {
    const { socket } = this.#request;
    if (!socket.destroyed) await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  }
}

/** A fact as the server writes it. */
export const eventText = (seq: number, fields: object = { type: "run.started", runId: "run_1" }): string => {
  const event = { ...fields, seq, at: 1 };
  return `id: ${seq}\nevent: ${"type" in fields ? fields.type : "run.started"}\ndata: ${JSON.stringify(event)}\n\n`;
};

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces = await Array.fromAsync(request);
  return Buffer.concat(pieces).toString("utf8");
}
