// Mounts Belay in another server, with one adapter for Node.js requests and one for web-standard requests.
import type { IncomingMessage, ServerResponse } from "node:http";
import { toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial, errorAnswer } from "../auth/guard-denial.ts";
import { fetchRequest, fetchResponse } from "./fetch-exchange.ts";
import type { Actor, HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { GONE, NodeExchange } from "./node-exchange.ts";
import type { Handle } from "./node-server.ts";
import { requestIds } from "./request-id.ts";

/** What the host already knows about a request. */
export interface HostContext {
  /** The actor, from the host's own authentication. No token is needed then. */
  readonly actor?: Actor | undefined;
  /** The body, as parsed by the host. */
  readonly body?: unknown;
}

export interface MountOptions {
  readonly clock: Clock;
  /** The path prefix of the mount, if the host does not strip it: `/agents`. */
  readonly basePath?: string | undefined;
  /** Called with errors that no request should be able to cause. For the log. */
  readonly onTrouble?: (thrown: unknown, requestId: string) => void;
}

export class Mount {
  readonly #handle: Handle;
  readonly #options: MountOptions;
  readonly #nextId = requestIds();

  constructor(handle: Handle, options: MountOptions) {
    this.#handle = handle;
    this.#options = options;
  }

  async fetch(request: Request, given: HostContext = {}): Promise<Response> {
    const { clock, basePath } = this.#options;
    const id = this.#nextId();
    const answer = await this.#answer(fetchRequest(request, { id, basePath, ...given }));
    return fetchResponse(request, answer, { id, clock });
  }

  /** Resolves when the response was written, or the client has disconnected. Never rejects. */
  async node(message: IncomingMessage, response: ServerResponse, given: HostContext = {}): Promise<void> {
    const { clock, basePath } = this.#options;
    const body = given.body ?? parsedBody(message);
    const exchange = new NodeExchange({
      ...{ id: this.#nextId(), via: "fetch", message, response, sender: "sending", clock, basePath },
      ...{ actor: given.actor, parsed: body, url: originalUrl(message, basePath) },
    });
    response.on("error", () => {});
    response.once("close", () => exchange.leave());
    const denial = exchange.flaw;
    try {
      await exchange.send(denial === undefined ? await this.#answer(exchange) : denial.answer(exchange.id));
    } catch (thrown) {
      if (thrown !== GONE) this.#options.onTrouble?.(thrown, exchange.id);
      response.destroy();
    }
  }

  #answer(request: HttpRequest): Promise<HttpAnswer> {
    const { id } = request;
    return this.#handle(request).catch((thrown: unknown): HttpAnswer => {
      if (thrown instanceof Denial) return thrown.answer(id);
      this.#options.onTrouble?.(thrown, id);
      const error = toControlError(thrown);
      return errorAnswer(error.code === "internal" ? error : toControlError(undefined), { status: 500, requestId: id });
    });
  }
}

/**
 * The body that a parser of the host has set on the request. Some parsers set an empty object on requests that they do
 * not read, as Express 4 does: the body is unread then.
 */
function parsedBody(message: IncomingMessage): unknown {
  const body: unknown = "body" in message ? message.body : undefined;
  return !message.readableDidRead && isEmptyObject(body) ? undefined : body;
}

/**
 * The original URL, if the host has stripped more than the prefix of the mount, as Nest does for a middleware of a
 * module. Undefined if `url` can be used.
 */
function originalUrl(message: IncomingMessage, basePath: string | undefined): string | undefined {
  const sent: unknown = "originalUrl" in message ? message.originalUrl : undefined;
  if (basePath === undefined || typeof sent !== "string") return undefined;
  return isBelow(sent, basePath) && !isBelow(message.url ?? "", basePath) ? sent : undefined;
}

const isBelow = (url: string, basePath: string): boolean =>
  url.startsWith(basePath) && ["", "/", "?"].includes(url.charAt(basePath.length));

const isEmptyObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Buffer.isBuffer(value) && Object.keys(value).length === 0;
