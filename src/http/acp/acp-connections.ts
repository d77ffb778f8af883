// The ACP connections of the server at `/acp`, over HTTP and WebSockets: how they are opened and closed.
//
// Invariants
// 1. Every request here was admitted by the guard. The ACP agent checks the permissions for each message.
// 2. A connection with an invalid token ends within `STREAM_CHECK_MS` of the token's invalidation being noticed.
// 3. The end of a connection ends nothing else: runs continue.
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { ControlError } from "../../core/errors.ts";
import { isUnparsable, PARSED_LEVELS_MAX } from "../../core/json-depth.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import { Denial } from "../auth/guard-denial.ts";
import * as limits from "../limits.ts";
import type { ServerLog } from "../observer.ts";
import { type Actor, type HttpAnswer, type HttpRequest, SWITCHED, type Upgrade } from "../transport/http-exchange.ts";
import { type ConnectionAgent, HttpAcpConnection, tooManyRequests } from "./acp-connection.ts";
import * as http from "./acp-http.ts";
import { AcpSocket, CLOSE_REASONS } from "./acp-socket.ts";

export interface AcpConnectionsParts {
  readonly clock: Clock;
  readonly guard: Gatekeeper;
  readonly log: ServerLog;
  /** Creates the agent for an actor. */
  readonly agentFor: (actor: Actor) => ConnectionAgent;
  readonly onCountChanged: (open: number) => void;
}

export class AcpConnections {
  readonly #parts: AcpConnectionsParts;
  readonly #open = new Set<HttpAcpConnection>();
  /** The connections over HTTP by id. The id of a WebSocket connection is sent to its client but never used. */
  readonly #ids = new Map<string, HttpAcpConnection>();
  readonly #http = new AcpServer({ agent: NO_AGENT, ...bounds(limits.ACP_UNREAD_BYTES_MAX) });
  readonly #sockets = new AcpServer({ agent: NO_AGENT, ...bounds(limits.ACP_WAITING_BYTES_MAX) });
  #cancelCheck: (() => void) | undefined;
  #closing = false;

  constructor(parts: AcpConnectionsParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#open.size;
  }

  async answer(request: HttpRequest, actor: Actor): Promise<HttpAnswer> {
    if (request.upgrade !== undefined) return this.#switch(request, request.upgrade, actor);
    switch (request.method) {
      case "POST":
        return this.#post(request, actor);
      case "GET":
        return this.#stream(request, this.#connectionOf(request, actor));
      default: {
        this.#connectionOf(request, actor);
        return http.answerOf(await this.#http.handleRequest(http.webRequest(request)));
      }
    }
  }

  /** Accepts no new connections, lets prompts whose runs have ended be answered, and closes all connections. */
  async drain(): Promise<void> {
    this.#closing = true;
    const all = [...this.#open];
    await this.#within(
      limits.ACP_ANSWERS_MS,
      all.map((one) => one.settled()),
    );
    for (const one of all) one.close();
    await this.#within(
      limits.DRAIN_MS,
      all.map(({ ended }) => ended),
    );
    await this.#within(limits.DRAIN_MS, [this.#http.close(), this.#sockets.close()]);
  }

  async #post(request: HttpRequest, actor: Actor): Promise<HttpAnswer> {
    const text = await request.body(limits.BODY_BYTES_MAX);
    if (isUnparsable(text))
      throw new ControlError("invalid", `A message must have at most ${PARSED_LEVELS_MAX} levels.`);
    if (request.header(http.CONNECTION_HEADER) === undefined) return this.#initialize(request, actor, text);
    const connection = this.#connectionOf(request, actor);
    if (connection.hasMaxRequests && isRequest(text)) throw tooManyRequests();
    const release = connection.use("requests");
    try {
      return await http.answerOf(await this.#http.handleRequest(http.webRequest(request, text)));
    } finally {
      release();
    }
  }

  async #initialize(request: HttpRequest, actor: Actor, text: string): Promise<HttpAnswer> {
    const connection = this.#openConnection(request, actor);
    const release = connection.use("requests");
    try {
      const response = await this.#http.handleRequest(http.webRequest(request, text), { agent: connection });
      if (response.status >= 500) throw notInitialized(text);
      const id = response.headers.get(http.CONNECTION_HEADER);
      if (id === null) connection.end();
      else this.#register(id, connection);
      return await http.answerOf(response);
    } catch (thrown) {
      connection.end();
      throw thrown;
    } finally {
      release();
    }
  }

  #register(id: string, connection: HttpAcpConnection): void {
    this.#ids.set(id, connection);
    void connection.ended.then(() => this.#ids.delete(id));
  }

  /**
   * Does not count against the stream limit of the token: a client cannot know that its next session is one too many,
   * and would lose the whole connection if the stream were refused.
   */
  async #stream(request: HttpRequest, connection: HttpAcpConnection): Promise<HttpAnswer> {
    if (connection.hasMaxStreams) throw tooManyStreams();
    const release = connection.use("streams");
    try {
      return await http.streamOf(await this.#http.handleRequest(http.webRequest(request)), request.signal, release);
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  async #switch(request: HttpRequest, upgrade: Upgrade, actor: Actor): Promise<HttpAnswer> {
    const connection = this.#openConnection(request, actor);
    const prepared = this.#sockets.prepareWebSocketUpgrade({ agent: connection });
    try {
      const socket = new AcpSocket(
        await upgrade.accept({ [http.CONNECTION_HEADER]: prepared.connectionId }),
        this.#parts.clock,
      );
      connection.attach(socket);
      prepared.accept(socket);
      // A shutdown may have begun during the handshake.
      if (this.#closing) socket.cut(CLOSE_REASONS.shutdown);
      return SWITCHED;
    } catch (thrown) {
      prepared.reject();
      connection.end();
      throw thrown;
    }
  }

  #openConnection(request: HttpRequest, actor: Actor): HttpAcpConnection {
    if (this.#closing) throw new ControlError("shutting_down", "The server is shutting down.");
    if (this.#open.size >= limits.ACP_CONNECTIONS_MAX) throw tooManyConnections();
    const release = this.#takeStream(actor);
    const { clock, guard, agentFor } = this.#parts;
    const connection = new HttpAcpConnection({
      ...{ actor, request, clock, guard, agent: agentFor(actor) },
      onEnd: (one) => {
        release();
        this.#remove(one);
      },
    });
    this.#open.add(connection);
    this.#parts.onCountChanged(this.#open.size);
    this.#cancelCheck ??= this.#checkLater();
    return connection;
  }

  #remove(connection: HttpAcpConnection): void {
    this.#open.delete(connection);
    this.#parts.onCountChanged(this.#open.size);
    if (this.#open.size > 0) return;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  #takeStream(actor: Actor): () => void {
    const pass = this.#parts.guard.stream(actor);
    if (pass.kind === "denied") throw pass.denial;
    return pass.release;
  }

  /** The connection of a request. One of another actor is reported as not found. */
  #connectionOf(request: HttpRequest, actor: Actor): HttpAcpConnection {
    const id = request.header(http.CONNECTION_HEADER);
    if (id === undefined) throw new Denial(400, "invalid", `This needs the header "${http.CONNECTION_HEADER}".`);
    const connection = this.#ids.get(id);
    if (connection === undefined || !connection.isOf(actor)) throw http.unknownConnection();
    return connection;
  }

  #check(): void {
    for (const connection of this.#open) {
      if (connection.isIdle || !this.#isStillAdmitted(connection)) this.#cut(connection);
    }
    this.#cancelCheck = this.#open.size === 0 ? undefined : this.#checkLater();
  }

  /** Ends a connection immediately. Unread messages are lost. */
  #cut(connection: HttpAcpConnection): void {
    if (connection.socket !== undefined) {
      connection.socket.cut(CLOSE_REASONS.revoked);
      return;
    }
    for (const [id, one] of this.#ids) if (one === connection) void this.#http.handleRequest(http.webDelete(id));
  }

  #isStillAdmitted({ request, actor }: HttpAcpConnection): boolean {
    try {
      return this.#parts.guard.isStillAdmitted(request, actor);
    } catch (error) {
      this.#parts.log.warn("a token could not be verified again; its connection is closed", {
        actor: actor.name,
        error,
      });
      return false;
    }
  }

  #checkLater(): () => void {
    return this.#parts.clock.after(limits.STREAM_CHECK_MS, () => this.#check(), "idle");
  }

  /** Waits for all promises, with a timeout. */
  #within(limitMs: number, all: readonly Promise<unknown>[]): Promise<void> {
    return new Promise((resolve) => {
      const cancelTimer = this.#parts.clock.after(limitMs, resolve);
      void Promise.allSettled(all).then(() => {
        cancelTimer();
        resolve();
      });
    });
  }
}

/** The SDK requires a default agent, but each connection has its own. */
const NO_AGENT = {
  connect: (): never => {
    throw new ControlError("internal", "An ACP connection was opened without an agent.");
  },
};

const bounds = (maxBufferedBytes: number) => ({
  maxBufferedBytes,
  maxOutputStallMs: limits.READER_STALL_MS,
  maxBufferedSessionStreams: limits.ACP_UNREAD_SESSIONS_MAX,
  maxIdLength: limits.ACP_ID_CHARS_MAX,
});

const isRequest = (text: string): boolean => {
  const message = objectIn(text);
  return "method" in message && "id" in message;
};

/** Empty for a text that is not a JSON object. The SDK refuses such messages. */
function objectIn(text: string): object {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === "object" && message !== null ? message : {};
  } catch {
    return {};
  }
}

/** The SDK cannot match a response to an invalid id, and reports that as an internal error. */
function notInitialized(text: string): ControlError {
  const message = objectIn(text);
  const id = "id" in message ? message.id : undefined;
  if (typeof id !== "string" && typeof id !== "number") {
    return new Denial(400, "invalid", "The `id` of a request must be a string or a number.");
  }
  return new ControlError("internal", "`initialize` was not answered.");
}

const tooManyStreams = (): Denial =>
  new Denial(429, "overloaded", `This connection already has ${limits.ACP_STREAMS_MAX} streams.`, {
    hint: "Close unused sessions.",
    headers: { "retry-after": String(limits.STREAM_RETRY_S) },
  });

const tooManyConnections = (): Denial =>
  new Denial(429, "overloaded", "This server has the maximum number of ACP connections.", {
    hint: "Close unused connections.",
    headers: { "retry-after": String(limits.STREAM_RETRY_S) },
  });
