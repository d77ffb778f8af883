// Belay inside another server: one adapter for Node's requests, and one for the web's own.
import type { IncomingMessage, ServerResponse } from "node:http";
import { toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial, errorAnswer } from "../auth/guard-denial.ts";
import { fetchRequest, fetchResponse } from "./fetch-exchange.ts";
import type { Actor, HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { GONE, NodeExchange } from "./node-exchange.ts";
import type { Handle } from "./node-server.ts";
import { requestIds } from "./request-id.ts";

/** What the host knows of a request already. */
export interface HostContext {
  /** Who asks, by the host's own session. Then no token is looked for. */
  readonly actor?: Actor | undefined;
  /** The body, as the host's parser has left it. */
  readonly body?: unknown;
}

export interface MountOptions {
  readonly clock: Clock;
  /** Where it is mounted, if the host does not take that off the path: `/agents`. */
  readonly basePath?: string | undefined;
  /** Something that no request should be able to bring about. For the log. */
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

  /** Resolves when the answer was handed over, or nobody is there any more. Never rejects. */
  async node(message: IncomingMessage, response: ServerResponse, given: HostContext = {}): Promise<void> {
    const { clock, basePath } = this.#options;
    const body = given.body ?? parsedBody(message);
    const exchange = new NodeExchange({
      ...{ id: this.#nextId(), via: "fetch", message, response, sender: "sending", clock, basePath },
      ...{ actor: given.actor, parsed: body, url: sentAddress(message, basePath) },
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
 * What a parser of the host has left in the request. Some leave an empty object in requests that they do not read, as
 * Express 4 does: the body is still to come then.
 */
function parsedBody(message: IncomingMessage): unknown {
  const body: unknown = "body" in message ? message.body : undefined;
  return !message.readableDidRead && isEmptyObject(body) ? undefined : body;
}

/**
 * The address as it was sent, where the host has taken off more than the place of the mount, as Nest does for a
 * middleware of a module: the rest says nothing.
 */
function sentAddress(message: IncomingMessage, basePath: string | undefined): string | undefined {
  const sent: unknown = "originalUrl" in message ? message.originalUrl : undefined;
  if (basePath === undefined || typeof sent !== "string") return undefined;
  return isBelow(sent, basePath) && !isBelow(message.url ?? "", basePath) ? sent : undefined;
}

const isBelow = (url: string, basePath: string): boolean =>
  url.startsWith(basePath) && ["", "/", "?"].includes(url.charAt(basePath.length));

const isEmptyObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Buffer.isBuffer(value) && Object.keys(value).length === 0;
