// A server of Node's, with every bound set: who is connected, what is being answered, and how it ends.
//
// Invariants
// 1. A request that arrives is answered once, or its connection is closed. No request takes the server down.
// 2. An exchange is in the set of its connection from its arrival until it is answered or its asker is gone.
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type ServerOptions as TlsServerOptions } from "node:https";
import type { Duplex } from "node:stream";
import { toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial, errorAnswer } from "../auth/guard-denial.ts";
import * as limits from "../limits.ts";
import { matchRoute } from "../routes/route-match.ts";
import { type Connection, Connections } from "./connections.ts";
import type { HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { rawAnswer } from "./listener-headers.ts";
import { GONE, NodeExchange } from "./node-exchange.ts";
import { NodeUpgrade, wantsWebSocket } from "./node-upgrade.ts";
import { requestIds } from "./request-id.ts";

/** Answers a request. What it throws is answered as an error. */
export type Handle = (request: HttpRequest) => Promise<HttpAnswer>;

/** The bounds that differ from listener to listener, or from a test to the real thing. */
export interface NodeLimits {
  readonly connectionsMax: number;
  readonly connectionsForStops: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly timeoutCheckMs: number;
  readonly keepAliveMs: number;
}

export interface NodeServerOptions {
  readonly handle: Handle;
  readonly clock: Clock;
  readonly via: "tcp" | "socket";
  readonly tls?: Pick<TlsServerOptions, "cert" | "key"> | undefined;
  readonly limits?: Partial<NodeLimits> | undefined;
  /** Something that no request should be able to bring about. For the log. */
  readonly onTrouble?: ((thrown: unknown, requestId: string) => void) | undefined;
}

const DEFAULTS: NodeLimits = {
  connectionsMax: limits.CONNECTIONS_MAX,
  connectionsForStops: limits.CONNECTIONS_FOR_STOPS,
  headersTimeoutMs: limits.HEADERS_TIMEOUT_MS,
  requestTimeoutMs: limits.REQUEST_TIMEOUT_MS,
  timeoutCheckMs: limits.TIMEOUT_CHECK_MS,
  keepAliveMs: limits.KEEP_ALIVE_MS,
};

export class NodeServer {
  readonly server: Server;
  readonly #options: NodeServerOptions;
  readonly #nextId = requestIds();
  readonly #connections: Connections;
  /** Something that is no request has come in: nothing more is read, and what is owed is still answered. */
  readonly #broken = new WeakSet<Duplex>();
  #closing = false;

  constructor(options: NodeServerOptions) {
    this.#options = options;
    const { connectionsMax, connectionsForStops } = { ...DEFAULTS, ...options.limits };
    this.#connections = new Connections(connectionsMax, connectionsForStops);
    this.server = makeServer(options);
    if (options.tls === undefined) this.server.on("connection", (socket) => void this.#connect(socket));
    else {
      this.server.on("connection", (socket) => this.#connections.greet(socket));
      this.server.on("secureConnection", (socket) => {
        this.#connections.agree(socket);
        this.#connect(socket);
      });
    }
    this.server.on("request", (message, response) => this.#arrive(message, response, "sending"));
    this.server.on("checkContinue", (message, response) => this.#arrive(message, response, "waiting"));
    this.server.on("checkExpectation", (message, response) => this.#expect(message, response));
    this.server.on("upgrade", (message, socket, head) => void this.#upgrade(message, socket, head));
    this.server.on("clientError", (error, socket) => this.#malformed(error, socket));
    // A connection that the system could not hand over. Whoever begins to listen hears of that for themselves.
    this.server.on("error", (error) => {
      if (this.server.listening) options.onTrouble?.(error, this.#nextId());
    });
  }

  /** How many are connected now. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Takes no more connections, ends the idle ones, lets answers in flight finish, and at the limit ends them too. */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const [socket, { inFlight }] of [...this.#connections.all()]) if (inFlight.size === 0) socket.destroy();
    const dispose = this.#options.clock.after(limitMs, () => {
      this.server.closeAllConnections();
      for (const [socket] of [...this.#connections.all()]) socket.destroy();
    });
    await closed;
    dispose();
  }

  #connect(socket: Duplex): Connection | undefined {
    const connection = this.#connections.add(socket);
    if (connection === undefined) return undefined;
    const leave = (): void => {
      for (const exchange of connection.inFlight) exchange.leave();
    };
    socket.once("end", leave);
    socket.once("close", leave);
    return connection;
  }

  #arrive(message: IncomingMessage, response: ServerResponse, sender: "sending" | "waiting"): void {
    const { via, clock } = this.#options;
    const { socket } = message;
    const onAdmitted = (): void => this.#connections.admit(socket);
    const exchange = new NodeExchange({ id: this.#nextId(), via, message, response, sender, clock, onAdmitted });
    const connection = this.#connections.get(socket) ?? this.#connect(socket);
    if (connection === undefined) return;
    const { inFlight } = connection;
    inFlight.add(exchange);
    if (socket.readableEnded) exchange.leave();
    // Without a listener, a late write to somebody who is gone would be an uncaught exception.
    response.on("error", () => {});
    response.once("close", () => {
      exchange.leave();
      inFlight.delete(exchange);
      if ((this.#closing || this.#broken.has(socket)) && !isOwed(inFlight)) socket.destroySoon();
    });
    void this.#answer(exchange, response, connection);
  }

  async #answer(exchange: NodeExchange, response: ServerResponse, { inFlight, use }: Connection): Promise<void> {
    const ahead = inFlight.size;
    try {
      const denial = use === "stops" && !isStop(exchange) ? onlyStops() : undefined;
      const answer = denial?.answer(exchange.id) ?? (await this.#answerTo(exchange, ahead));
      const last = this.#closing || ahead > limits.PIPELINED_MAX || use === "stops";
      await exchange.send(answer, last ? { connection: "close" } : {});
    } catch (thrown) {
      if (thrown !== GONE) this.#options.onTrouble?.(thrown, exchange.id);
      // A stream that breaks must not look like one that has ended.
      if (response.headersSent) response.destroy();
      else await exchange.send(failure(thrown, exchange.id)).catch(() => response.destroy());
    }
  }

  async #answerTo(exchange: NodeExchange | NodeUpgrade, inFlight: number): Promise<HttpAnswer> {
    const denial = inFlight > limits.PIPELINED_MAX ? tooMany() : exchange.flaw;
    if (denial !== undefined) return denial.answer(exchange.id);
    try {
      return await this.#options.handle(exchange);
    } catch (thrown) {
      if (!(thrown instanceof Denial)) throw thrown;
      return thrown.answer(exchange.id);
    }
  }

  /** A connection that has become a WebSocket has no more requests, so it counts as idle when we close. */
  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { via, onTrouble } = this.#options;
    const onAdmitted = (): void => this.#connections.admit(socket);
    const request = new NodeUpgrade({ id: this.#nextId(), via, message, socket, head, onAdmitted });
    // Nobody else listens on it now, and an error that nobody hears takes the server down.
    socket.on("error", () => socket.destroy());
    socket.once("close", () => request.leave());
    try {
      const isReserved = this.#connections.get(socket)?.use === "stops";
      // From here on it has no request that would keep it.
      this.#connections.keep(socket);
      request.refuse(isReserved ? onlyStops().answer(request.id) : await this.#answerTo(request, 1));
    } catch (thrown) {
      if (thrown !== GONE) onTrouble?.(thrown, request.id);
      request.refuse(failure(thrown, request.id));
    }
  }

  #expect(message: IncomingMessage, response: ServerResponse): void {
    const { via, clock } = this.#options;
    const exchange = new NodeExchange({ id: this.#nextId(), via, message, response, sender: "waiting", clock });
    const denial = new Denial(417, "invalid", "This server does not know what the Expect header asks for.");
    response.on("error", () => {});
    void exchange.send(denial.answer(exchange.id)).catch(() => response.destroy());
  }

  /** What is not HTTP, or takes too long. There is no request to answer, so the answer is written by hand. */
  #malformed(error: Error, socket: Duplex): void {
    const code = "code" in error ? error.code : undefined;
    const inFlight = this.#connections.get(socket)?.inFlight ?? NONE;
    const begun = [...inFlight].some((exchange) => exchange.begun && !exchange.received);
    if (!socket.writable || code === "ECONNRESET" || begun) {
      socket.destroy();
      return;
    }
    // What is said next would be taken for the answer to a request before this one. They are answered, and that is all.
    if (isOwed(inFlight)) {
      this.#broken.add(socket);
      return;
    }
    const id = this.#nextId();
    socket.end(rawAnswer(malformed(code).answer(id), id), () => socket.destroy());
  }
}

const NONE: ReadonlySet<NodeExchange> = new Set();

/** Whether an answer is owed to a request that came in whole. */
const isOwed = (inFlight: ReadonlySet<NodeExchange>): boolean => [...inFlight].some(({ received }) => received);

function makeServer(options: NodeServerOptions): Server {
  const bounds = { ...DEFAULTS, ...options.limits };
  const settings: ServerOptions = {
    maxHeaderSize: limits.HEADERS_BYTES_MAX,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.timeoutCheckMs,
    keepAliveTimeout: bounds.keepAliveMs,
    insecureHTTPParser: false,
    // Two Host headers are for the guard to refuse; Node would hide the second from it.
    joinDuplicateHeaders: true,
    // A missing one, too: the guard has the right words for it.
    requireHostHeader: false,
    // Clients that would like HTTP/2 are content with an answer. An older Node does not ask; see `NodeUpgrade.refuse`.
    shouldUpgradeCallback: wantsWebSocket,
  };
  const server =
    options.tls === undefined
      ? createServer(settings)
      : createTlsServer({ ...settings, ...options.tls, handshakeTimeout: limits.HANDSHAKE_TIMEOUT_MS });
  // Node would drop what comes after the 2,000th without a word, and with it an Origin that should have been seen.
  server.maxHeadersCount = 0;
  // A client that has sent everything and said so is still waiting for its answer.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

function failure(thrown: unknown, requestId: string): HttpAnswer {
  const error = toControlError(thrown);
  // Whatever has a status of its own was answered before it came to this.
  return errorAnswer(error.code === "internal" ? error : toControlError(undefined), { status: 500, requestId });
}

const tooMany = (): Denial =>
  new Denial(429, "overloaded", "Too many requests were sent ahead on one connection.", {
    headers: { "retry-after": "1" },
  });

const isStop = ({ method, path }: HttpRequest): boolean => {
  const match = matchRoute(method, path);
  return match.kind === "found" && match.route.stop === true;
};

const onlyStops = (): Denial =>
  new Denial(429, "overloaded", "All connections of this server are in use. Only stops are taken beyond them.", {
    hint: "Close connections and streams that are not read any more, or raise --connections.",
    headers: { "retry-after": String(limits.RETRY_AFTER_S) },
  });

const SLOW =
  "It had not come whole by then, so nothing was done. Send it again, over a faster line or with less in it.";

function malformed(code: unknown): Denial {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Denial(431, "invalid", "The headers of this request are too large.");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new Denial(413, "invalid", "The body of this request has too much around it.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Denial(408, "unavailable", "The request took too long to arrive.", { hint: SLOW });
    default:
      return new Denial(400, "invalid", "This is not HTTP as this server understands it.");
  }
}
