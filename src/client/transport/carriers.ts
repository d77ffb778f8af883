// Connections that carry a shared stream: a WebSocket; or, where a host or a proxy allows none, an event stream for
// one direction and requests for the other.
import { SseParser } from "../../wire/sse-parser.ts";
import type { StreamDown, StreamUp } from "../../wire/stream-message.ts";
import { type Fetch, type FetchInit, piecesOf, troubleOf } from "./reply.ts";
import type { CarrierEvents, OpenCarrier } from "./shared-stream.ts";

const PATH = "/v1/stream";

export interface CarrierParts {
  readonly base: string;
  readonly where: string;
  readonly token: string | undefined;
  readonly fetch: Fetch;
}

/** Tries a WebSocket first. If an event stream works and a WebSocket never has, WebSockets are not tried again. */
export function firstOf(socket: OpenCarrier | undefined, events: OpenCarrier): OpenCarrier {
  let sockets: "unknown" | "work" | "fail" = "unknown";
  return async (handlers) => {
    if (socket !== undefined && sockets !== "fail") {
      try {
        const carrier = await socket(handlers);
        sockets = "work";
        return carrier;
      } catch {
        // A browser does not say why. If the server is reachable at all, the event stream will show it.
      }
    }
    const carrier = await events(handlers);
    if (sockets === "unknown") sockets = "fail";
    return carrier;
  };
}

/** The part of WebSocket that browsers and Node share. */
interface Socket {
  addEventListener(type: "open" | "close" | "error", call: () => void): void;
  addEventListener(type: "message", call: (event: { readonly data: unknown }) => void): void;
  send(text: string): void;
  close(): void;
}

type MakeSocket = new (url: string, protocols: string[]) => Socket;

export function socketCarrier({ base, token }: CarrierParts): OpenCarrier | undefined {
  const { WebSocket: Make } = globalThis as { WebSocket?: MakeSocket };
  if (Make === undefined) return undefined;
  // Browsers cannot set headers on a WebSocket, and URLs end up in logs.
  const protocols = ["belay.stream", ...(token === undefined ? [] : [`belay.bearer.${token}`])];
  return ({ message, closed }) =>
    new Promise((resolve, reject) => {
      const socket = new Make(base.replace(/^http/, "ws") + PATH, protocols);
      let state: "opening" | "open" | "closed" = "opening";
      const end = (): void => {
        if (state === "open") closed(CLOSED);
        state = "closed";
        reject(CLOSED);
        socket.close();
      };
      const send = (up: StreamUp): void => {
        if (state === "open") socket.send(JSON.stringify(up));
      };
      socket.addEventListener("message", ({ data }) => {
        const down = parsed(String(data));
        if (down === undefined || state === "closed") return end();
        if (down.type === "open") {
          state = "open";
          resolve({ send, close: end });
        }
        message(down);
      });
      socket.addEventListener("close", end);
      socket.addEventListener("error", end);
    });
}

export function eventsCarrier(parts: CarrierParts): OpenCarrier {
  const send = (method: string, body: object | undefined, stop: AbortController) => {
    const auth = parts.token === undefined ? {} : { authorization: `Bearer ${parts.token}` };
    const init: FetchInit = {
      ...{ method, signal: stop.signal, redirect: "manual", cache: "no-store", credentials: "omit" },
      headers: { ...auth, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    return parts.fetch(parts.base + PATH, init);
  };
  return async (handlers) => {
    const stop = new AbortController();
    const reply = await send("GET", undefined, stop);
    if (NONE.has(reply.status)) {
      stop.abort(CLOSED);
      return undefined;
    }
    if (reply.status !== 200) throw new Error((await troubleOf(reply, parts.where)).error.message);
    const post: Post = async (stream, messages) => {
      const answer = await send("POST", { stream, messages }, stop);
      if (answer.status !== 202) throw new Error((await troubleOf(answer, parts.where)).error.message);
      await answer.body?.cancel();
    };
    return new EventsCarrier(handlers, stop, post).read(piecesOf(reply));
  };
}

/** No shared stream here, or none for this token: requests are sent separately, and their own responses say why. */
const NONE: ReadonlySet<number> = new Set([401, 403, 404, 405]);

type Post = (stream: string, messages: readonly StreamUp[]) => Promise<unknown>;

class EventsCarrier {
  readonly #handlers: CarrierEvents;
  readonly #stop: AbortController;
  readonly #post: Post;
  #stream = "";
  #unsent: StreamUp[] = [];
  #sending = false;

  constructor(handlers: CarrierEvents, stop: AbortController, post: Post) {
    this.#handlers = handlers;
    this.#stop = stop;
    this.#post = post;
  }

  /** Resolves when the server has sent the id of the stream. */
  read(pieces: AsyncIterable<Uint8Array>): Promise<this> {
    return new Promise((resolve, reject) => {
      const receive = (down: StreamDown): void => {
        if (down.type === "open") {
          this.#stream = down.stream;
          resolve(this);
        }
        this.#handlers.message(down);
      };
      void this.#read(pieces, receive).catch((why: unknown) => {
        if (this.#stream !== "") this.#handlers.closed(why);
        reject(why);
      });
    });
  }

  /** Messages sent together go in one request, one request at a time, so that they arrive in order. */
  send(message: StreamUp): void {
    this.#unsent.push(message);
    if (this.#sending) return;
    this.#sending = true;
    queueMicrotask(() => void this.#flush());
  }

  close(): void {
    this.#stop.abort(CLOSED);
  }

  async #read(pieces: AsyncIterable<Uint8Array>, receive: (down: StreamDown) => void): Promise<never> {
    const parser = new SseParser();
    for await (const piece of pieces) {
      for (const { event, data } of parser.push(piece)) {
        const down = event === "message" ? parsed(data) : undefined;
        if (down !== undefined) receive(down);
      }
    }
    throw new Error("the stream has ended");
  }

  async #flush(): Promise<void> {
    try {
      while (this.#unsent.length > 0) await this.#post(this.#stream, this.#unsent.splice(0));
      this.#sending = false;
    } catch {
      this.#stop.abort(CLOSED);
    }
  }
}

function parsed(text: string): StreamDown | undefined {
  try {
    const value: unknown = JSON.parse(text);
    // The edge: the API defines the messages.
    return typeof value === "object" && value !== null && "type" in value ? (value as StreamDown) : undefined;
  } catch {
    return undefined;
  }
}

const CLOSED = new Error("the connection was closed");
