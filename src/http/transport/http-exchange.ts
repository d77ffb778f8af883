// A request and its response inside the server. The types are neither Node's nor the web standard's: both are converted
// once, at the edge.

export interface HttpRequest {
  /** Identifies the request in logs, in the audit trail and in the response. */
  readonly id: string;
  readonly method: string;
  /** Not decoded, starts with a slash, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Returns a header by its name in lower case. Repeated headers are joined with a comma. */
  header(name: string): string | undefined;
  /** The actor, if the server in which Belay is mounted has authenticated it. No token is needed then. */
  readonly actor?: Actor | undefined;
  /** The transport. On a private socket the mode of the file has authorized the client. */
  readonly via: "tcp" | "socket" | "fetch";
  /** Reads the whole body as text. Rejects with `invalid` beyond `bytesMax`, without reading more. */
  body(bytesMax: number): Promise<string>;
  /** Aborts when the client disconnects. That ends the response and nothing else. */
  readonly signal: AbortSignal;
  /** It arrived over a shared stream, which counts as one stream for all its requests. */
  readonly shared?: boolean | undefined;
  /** Called when the guard has admitted it. Connections without an admitted request are the first to be closed. */
  readonly onAdmitted?: (() => void) | undefined;
  /** Set if the request asks for a WebSocket. */
  readonly upgrade?: Upgrade | undefined;
}

/** Switches a request to a WebSocket. */
export interface Upgrade {
  /**
   * Accepts the upgrade with these headers; the response must be `SWITCHED` then. Rejects if the upgrade request is
   * invalid. Nothing was sent in that case, and the request must still be answered.
   */
  accept(headers: Readonly<Record<string, string>>): Promise<MessageSocket>;
}

/** The part of a WebSocket that the server uses. */
export interface MessageSocket {
  readonly OPEN: number;
  readonly readyState: number;
  /** Bytes that were sent but not transmitted yet. */
  readonly bufferedAmount: number;
  /** `done` is called when the message was transmitted, or cannot be. */
  send(text: string, done?: () => void): void;
  ping(): void;
  close(code?: number, reason?: string): void;
  /** Closes the connection without a close frame. */
  terminate(): void;
  on(event: "message", listener: (data: unknown, isBinary: boolean) => void): unknown;
  on(event: "pong" | "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A text, or a stream with backpressure: it is produced as fast as it is read. */
  readonly body: string | undefined | ResponseStream;
}

/** The response to a request that has become a WebSocket. It is already sent. */
export const SWITCHED: HttpAnswer = { status: 101, headers: {}, body: undefined };

/** The pieces of a body. The next one is requested when the last one was read; `return` ends the stream. */
export type ResponseStream = AsyncIterator<string, void>;

/** The actor of requests without a valid token, in the audit trail. No token has this name. */
export const NO_ACTOR = "nobody";

/** The sender of a request: a token, or a user who may open the private socket. */
export interface Actor {
  /** The name of the token, for the audit trail. Never the token itself. */
  readonly name: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** Undefined: the whole server. Otherwise only sessions whose ids begin with `ses_<tenant>.`. */
  readonly tenant: string | undefined;
}

export const TOKEN_SCOPES = ["read", "prompt", "cancel", "approve", "admin"] as const;

/** A permission of a token. `admin` includes all others and the administration of the server. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
