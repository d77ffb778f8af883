// A Node.js HTTP server with all its limits: its connections, its requests, and its graceful shutdown.
//
// Invariants
// 1. A request is answered once, or its connection is closed. No request can crash the server.
// 2. An exchange is in the set of its connection from its arrival until it is answered or its client disconnects.
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

/** Handles a request. A rejection is answered as an error. */
export type Handle = (request: HttpRequest) => Promise<HttpAnswer>;

/** The limits that differ between listeners, or between tests and production. */
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
  /** Called with errors that no request should be able to cause. For the log. */
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
  /** Connections on which invalid HTTP arrived: nothing more is read, but pending responses are still sent. */
  readonly #broken = new WeakSet<Duplex>();
  #closing = false;

  constructor(options: NodeServerOptions) {
    this.#options = options;
    const { connectionsMax, connectionsForStops } = { ...DEFAULTS, ...options.limits };
    this.#connections = new Connections(connectionsMax, connectionsForStops);
    this.server = makeServer(options);
    if (options.tls === undefined) this.server.on("connection", (socket) => void this.#connect(socket));
    else {
      this.server.on("connection", (socket) => this.#connections.beginHandshake(socket));
      this.server.on("secureConnection", (socket) => {
        this.#connections.endHandshake(socket);
        this.#connect(socket);
      });
    }
    this.server.on("request", (message, response) => this.#arrive(message, response, "sending"));
    this.server.on("checkContinue", (message, response) => this.#arrive(message, response, "waiting"));
    this.server.on("checkExpectation", (message, response) => this.#expect(message, response));
    this.server.on("upgrade", (message, socket, head) => void this.#upgrade(message, socket, head));
    this.server.on("clientError", (error, socket) => this.#malformed(error, socket));
    // A connection that could not be accepted. Errors of `listen` itself are reported by its caller.
    this.server.on("error", (error) => {
      if (this.server.listening) options.onTrouble?.(error, this.#nextId());
    });
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Closes gracefully: accepts no connections, closes idle ones, finishes responses; closes the rest at `limitMs`. */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const [socket, { inFlight }] of [...this.#connections.all()]) if (inFlight.size === 0) socket.destroy();
    const cancelTimer = this.#options.clock.after(limitMs, () => {
      this.server.closeAllConnections();
      for (const [socket] of [...this.#connections.all()]) socket.destroy();
    });
    await closed;
    cancelTimer();
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
    // Without a listener, a late write to a disconnected client would be an uncaught exception.
    response.on("error", () => {});
    response.once("close", () => {
      exchange.leave();
      inFlight.delete(exchange);
      if ((this.#closing || this.#broken.has(socket)) && !hasPending(inFlight)) socket.destroySoon();
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
      // A broken stream must not look like a complete one.
      if (response.headersSent) response.destroy();
      else await exchange.send(failure(thrown, exchange.id)).catch(() => response.destroy());
    }
  }

  async #answerTo(exchange: NodeExchange | NodeUpgrade, inFlight: number): Promise<HttpAnswer> {
    const denial = inFlight > limits.PIPELINED_MAX ? tooManyPipelined() : exchange.flaw;
    if (denial !== undefined) return denial.answer(exchange.id);
    try {
      return await this.#options.handle(exchange);
    } catch (thrown) {
      if (!(thrown instanceof Denial)) throw thrown;
      return thrown.answer(exchange.id);
    }
  }

  /** A WebSocket has no requests in flight, so a shutdown closes it like an idle connection. */
  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { via, onTrouble } = this.#options;
    const onAdmitted = (): void => this.#connections.admit(socket);
    const request = new NodeUpgrade({ id: this.#nextId(), via, message, socket, head, onAdmitted });
    // Node.js has removed its listeners, and an `error` event without a listener would crash the server.
    socket.on("error", () => socket.destroy());
    socket.once("close", () => request.leave());
    try {
      const isReserved = this.#connections.get(socket)?.use === "stops";
      // Without a request in flight it would count as idle.
      this.#connections.markWebSocket(socket);
      request.refuse(isReserved ? onlyStops().answer(request.id) : await this.#answerTo(request, 1));
    } catch (thrown) {
      if (thrown !== GONE) onTrouble?.(thrown, request.id);
      request.refuse(failure(thrown, request.id));
    }
  }

  #expect(message: IncomingMessage, response: ServerResponse): void {
    const { via, clock } = this.#options;
    const exchange = new NodeExchange({ id: this.#nextId(), via, message, response, sender: "waiting", clock });
    const denial = new Denial(417, "invalid", "The value of the Expect header is not supported.");
    response.on("error", () => {});
    void exchange.send(denial.answer(exchange.id)).catch(() => response.destroy());
  }

  /** Handles invalid HTTP and timeouts. There is no request object, so the response is written to the socket. */
  #malformed(error: Error, socket: Duplex): void {
    const code = "code" in error ? error.code : undefined;
    const inFlight = this.#connections.get(socket)?.inFlight ?? NONE;
    const begun = [...inFlight].some((exchange) => exchange.begun && !exchange.received);
    if (!socket.writable || code === "ECONNRESET" || begun) {
      socket.destroy();
      return;
    }
    // The client would take an error response for the response to an earlier request. So only those are sent.
    if (hasPending(inFlight)) {
      this.#broken.add(socket);
      return;
    }
    const id = this.#nextId();
    socket.end(rawAnswer(malformed(code).answer(id), id), () => socket.destroy());
  }
}

const NONE: ReadonlySet<NodeExchange> = new Set();

/** Whether a complete request has no response yet. */
const hasPending = (inFlight: ReadonlySet<NodeExchange>): boolean => [...inFlight].some(({ received }) => received);

function makeServer(options: NodeServerOptions): Server {
  const bounds = { ...DEFAULTS, ...options.limits };
  const settings: ServerOptions = {
    maxHeaderSize: limits.HEADERS_BYTES_MAX,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.timeoutCheckMs,
    keepAliveTimeout: bounds.keepAliveMs,
    insecureHTTPParser: false,
    // The guard refuses two Host headers; Node.js would hide the second one.
    joinDuplicateHeaders: true,
    // The guard refuses a missing Host header with a better error.
    requireHostHeader: false,
    // An upgrade to HTTP/2 is ignored and the request answered. Older Node.js lacks this; see `NodeUpgrade.refuse`.
    shouldUpgradeCallback: wantsWebSocket,
  };
  const server =
    options.tls === undefined
      ? createServer(settings)
      : createTlsServer({ ...settings, ...options.tls, handshakeTimeout: limits.HANDSHAKE_TIMEOUT_MS });
  // No limit: Node.js would silently drop headers after the 2,000th, and with them an Origin that the guard must see.
  server.maxHeadersCount = 0;
  // A client that has closed its side of the connection still waits for the response.
  return Object.assign(server, { httpAllowHalfOpen: true });
}

function failure(thrown: unknown, requestId: string): HttpAnswer {
  const error = toControlError(thrown);
  // Errors with their own status were answered earlier.
  return errorAnswer(error.code === "internal" ? error : toControlError(undefined), { status: 500, requestId });
}

const tooManyPipelined = (): Denial =>
  new Denial(429, "overloaded", "Too many requests were pipelined on one connection.", {
    headers: { "retry-after": "1" },
  });

const isStop = ({ method, path }: HttpRequest): boolean => {
  const match = matchRoute(method, path);
  return match.kind === "found" && match.route.stop === true;
};

const onlyStops = (): Denial =>
  new Denial(429, "overloaded", "All connections of this server are in use. Only stops are accepted.", {
    hint: "Close unused connections and streams, or raise --connections.",
    headers: { "retry-after": String(limits.RETRY_AFTER_S) },
  });

const SLOW =
  "The request was incomplete when the timeout expired; nothing was changed. Send it again, faster or with less data.";

function malformed(code: unknown): Denial {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Denial(431, "invalid", "The headers of this request are too large.");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new Denial(413, "invalid", "The chunk extensions of this request are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Denial(408, "unavailable", "The request took too long to arrive.", { hint: SLOW });
    default:
      return new Denial(400, "invalid", "This is not a valid HTTP request.");
  }
}
