// ACP on the server: who comes in by `/acp`, over HTTP or as a WebSocket, and how each is let go.
//
// Invariants
// 1. Whoever gets here was admitted by the guard. What they may do beyond coming in is for the door to say.
// 2. A connection whose token counts no more ends within `STREAM_CHECK_MS` of that being noticed.
// 3. A connection that ends, ends nothing else: runs go on.
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { ControlError } from "../../core/errors.ts";
import { isUnparsable, PARSED_LEVELS_MAX } from "../../core/json-depth.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import { Denial } from "../auth/guard-denial.ts";
import * as limits from "../limits.ts";
import type { ServerLog } from "../observer.ts";
import { type Actor, type HttpAnswer, type HttpRequest, SWITCHED, type Upgrade } from "../transport/http-exchange.ts";
import { type AcpOpener, crowded, HttpAcpConnection } from "./acp-connection.ts";
import * as http from "./acp-http.ts";
import { AcpSocket, CLOSE_REASONS } from "./acp-socket.ts";

export interface AcpConnectionsParts {
  readonly clock: Clock;
  readonly guard: Gatekeeper;
  readonly log: ServerLog;
  /** The way in for this actor. */
  readonly door: (actor: Actor) => AcpOpener;
  readonly changed: (open: number) => void;
}

export class AcpConnections {
  readonly #parts: AcpConnectionsParts;
  readonly #open = new Set<HttpAcpConnection>();
  /** Those over HTTP. The id of a WebSocket's is said to its client and means nothing else. */
  readonly #ids = new Map<string, HttpAcpConnection>();
  readonly #http = new AcpServer({ agent: NOBODY, ...bounds(limits.ACP_UNREAD_BYTES_MAX) });
  readonly #sockets = new AcpServer({ agent: NOBODY, ...bounds(limits.ACP_WAITING_BYTES_MAX) });
  #dispose: (() => void) | undefined;
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

  /** Takes nobody any more, lets prompts whose runs have ended be answered, and ends every connection. */
  async drain(): Promise<void> {
    this.#closing = true;
    const all = [...this.#open];
    await this.#within(
      limits.ACP_ANSWERS_MS,
      all.map((one) => one.settled()),
    );
    for (const one of all) one.part();
    await this.#within(
      limits.DRAIN_MS,
      all.map(({ ended }) => ended),
    );
    await this.#within(limits.DRAIN_MS, [this.#http.close(), this.#sockets.close()]);
  }

  async #post(request: HttpRequest, actor: Actor): Promise<HttpAnswer> {
    const text = await request.body(limits.BODY_BYTES_MAX);
    if (isUnparsable(text)) throw new ControlError("invalid", `A message has at most ${PARSED_LEVELS_MAX} levels.`);
    if (request.header(http.CONNECTION_HEADER) === undefined) return this.#begin(request, actor, text);
    const connection = this.#connectionOf(request, actor);
    if (connection.isCrowded && isRequest(text)) throw crowded();
    const done = connection.use("asking");
    try {
      return await http.answerOf(await this.#http.handleRequest(http.webRequest(request, text)));
    } finally {
      done();
    }
  }

  async #begin(request: HttpRequest, actor: Actor, text: string): Promise<HttpAnswer> {
    const connection = this.#enter(request, actor);
    const done = connection.use("asking");
    try {
      const response = await this.#http.handleRequest(http.webRequest(request, text), { agent: connection });
      if (response.status >= 500) throw notBegun(text);
      const id = response.headers.get(http.CONNECTION_HEADER);
      if (id === null) connection.leave();
      else this.#know(id, connection);
      return await http.answerOf(response);
    } catch (thrown) {
      connection.leave();
      throw thrown;
    } finally {
      done();
    }
  }

  #know(id: string, connection: HttpAcpConnection): void {
    this.#ids.set(id, connection);
    void connection.ended.then(() => this.#ids.delete(id));
  }

  /**
   * Not counted among those of the token: a client cannot tell that its next session is one too many, and loses the
   * whole connection when its stream is refused.
   */
  async #stream(request: HttpRequest, connection: HttpAcpConnection): Promise<HttpAnswer> {
    if (connection.isFull) throw tooManyStreams();
    const done = connection.use("reading");
    try {
      return await http.streamOf(await this.#http.handleRequest(http.webRequest(request)), request.signal, done);
    } catch (thrown) {
      done();
      throw thrown;
    }
  }

  async #switch(request: HttpRequest, upgrade: Upgrade, actor: Actor): Promise<HttpAnswer> {
    const connection = this.#enter(request, actor);
    const prepared = this.#sockets.prepareWebSocketUpgrade({ agent: connection });
    try {
      const socket = new AcpSocket(
        await upgrade.accept({ [http.CONNECTION_HEADER]: prepared.connectionId }),
        this.#parts.clock,
      );
      connection.attach(socket);
      prepared.accept(socket);
      // While it was let in, everybody may have been asked to leave.
      if (this.#closing) socket.cut(CLOSE_REASONS.shutdown);
      return SWITCHED;
    } catch (thrown) {
      prepared.reject();
      connection.leave();
      throw thrown;
    }
  }

  #enter(request: HttpRequest, actor: Actor): HttpAcpConnection {
    if (this.#closing) throw new ControlError("shutting_down", "The server is shutting down.");
    if (this.#open.size >= limits.ACP_CONNECTIONS_MAX) throw tooMany();
    const release = this.#pass(actor);
    const { clock, guard, door } = this.#parts;
    const connection = new HttpAcpConnection({
      ...{ actor, request, clock, guard, door: door(actor) },
      left: (one) => {
        release();
        this.#left(one);
      },
    });
    this.#open.add(connection);
    this.#parts.changed(this.#open.size);
    this.#dispose ??= this.#lookLater();
    return connection;
  }

  #left(connection: HttpAcpConnection): void {
    this.#open.delete(connection);
    this.#parts.changed(this.#open.size);
    if (this.#open.size > 0) return;
    this.#dispose?.();
    this.#dispose = undefined;
  }

  #pass(actor: Actor): () => void {
    const pass = this.#parts.guard.stream(actor);
    if (pass.kind === "denied") throw pass.denial;
    return pass.release;
  }

  /** Another's is not there. */
  #connectionOf(request: HttpRequest, actor: Actor): HttpAcpConnection {
    const id = request.header(http.CONNECTION_HEADER);
    if (id === undefined) throw new Denial(400, "invalid", `This needs the header "${http.CONNECTION_HEADER}".`);
    const connection = this.#ids.get(id);
    if (connection === undefined || !connection.isOf(actor)) throw http.unknownConnection();
    return connection;
  }

  #look(): void {
    for (const connection of this.#open) {
      if (connection.isIdle || !this.#isStill(connection)) this.#cut(connection);
    }
    this.#dispose = this.#open.size === 0 ? undefined : this.#lookLater();
  }

  /** At once, and without what it has not read. */
  #cut(connection: HttpAcpConnection): void {
    if (connection.socket !== undefined) {
      connection.socket.cut(CLOSE_REASONS.revoked);
      return;
    }
    for (const [id, one] of this.#ids) if (one === connection) void this.#http.handleRequest(http.webDelete(id));
  }

  #isStill({ request, actor }: HttpAcpConnection): boolean {
    try {
      return this.#parts.guard.still(request, actor);
    } catch (error) {
      this.#parts.log.warn("nobody can say whether a token still counts, so it does not", { actor: actor.name, error });
      return false;
    }
  }

  #lookLater(): () => void {
    return this.#parts.clock.after(limits.STREAM_CHECK_MS, () => this.#look(), "idle");
  }

  /** Waits for all of them, and no longer than this. */
  #within(limitMs: number, all: readonly Promise<unknown>[]): Promise<void> {
    return new Promise((resolve) => {
      const dispose = this.#parts.clock.after(limitMs, resolve);
      void Promise.allSettled(all).then(() => {
        dispose();
        resolve();
      });
    });
  }
}

/** Each connection has a way in of its own, so there is none for all of them. */
const NOBODY = {
  connect: (): never => {
    throw new ControlError("internal", "An ACP connection was opened for nobody.");
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

/** What is not even JSON has nothing in it, and is told so by the SDK. */
function objectIn(text: string): object {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === "object" && message !== null ? message : {};
  } catch {
    return {};
  }
}

/** The SDK cannot tell an answer by an id that is none, and takes that for a failure of ours. */
function notBegun(text: string): ControlError {
  const message = objectIn(text);
  const id = "id" in message ? message.id : undefined;
  if (typeof id !== "string" && typeof id !== "number") {
    return new Denial(400, "invalid", "The id of a request is a text or a number.");
  }
  return new ControlError("internal", "`initialize` was not answered.");
}

const tooManyStreams = (): Denial =>
  new Denial(429, "overloaded", `This connection has ${limits.ACP_STREAMS_MAX} streams already.`, {
    hint: "Close sessions that nobody looks at any more.",
    headers: { "retry-after": String(limits.STREAM_RETRY_S) },
  });

const tooMany = (): Denial =>
  new Denial(429, "overloaded", "This server has as many ACP connections as it takes.", {
    hint: "Close those that nobody uses any more.",
    headers: { "retry-after": String(limits.STREAM_RETRY_S) },
  });
