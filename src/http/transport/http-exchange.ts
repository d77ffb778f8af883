// One request and its answer, as the parts of the server hand them to each other. Neither Node's nor the web's, so that
// both are translated once, at the edge.

export interface HttpRequest {
  /** Names what was asked, in logs, in the audit trail and in the answer. */
  readonly id: string;
  readonly method: string;
  /** Undecoded, beginning with a slash, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** By a name in lower case. A header that came more than once is joined with a comma. */
  header(name: string): string | undefined;
  /** Who asks, where the server that Belay is mounted in has found that out itself. Then no token is looked for. */
  readonly actor?: Actor | undefined;
  /** How it came in. On a private socket the mode of the file has said who may ask. */
  readonly via: "tcp" | "socket" | "fetch";
  /** The whole body as text. Rejects with `invalid` beyond `bytesMax`, without having read more. */
  body(bytesMax: number): Promise<string>;
  /** Whoever asked is gone. Nothing but the answering of this request ends with it. */
  readonly signal: AbortSignal;
  /** It came over a stream that is shared, which counts as one whatever it carries. */
  readonly shared?: boolean | undefined;
  /** Called when the guard has let it in. A connection without such a request is the first to give way. */
  readonly onAdmitted?: (() => void) | undefined;
  /** It asks for a WebSocket instead of an answer. Undefined: it does not. */
  readonly upgrade?: Upgrade | undefined;
}

/** How a request becomes a WebSocket. */
export interface Upgrade {
  /**
   * Says yes, with these headers; the answer to the request is `SWITCHED` then. Rejects if it was not asked for as it
   * should be; then nothing was said, and the request is still to be answered.
   */
  accept(headers: Readonly<Record<string, string>>): Promise<MessageSocket>;
}

/** A WebSocket, as much of one as is used here. */
export interface MessageSocket {
  readonly OPEN: number;
  readonly readyState: number;
  /** Bytes that were sent, and not taken yet. */
  readonly bufferedAmount: number;
  /** `done`: it has left, or never will. */
  send(text: string, done?: () => void): void;
  ping(): void;
  close(code?: number, reason?: string): void;
  /** Without a word. */
  terminate(): void;
  on(event: "message", listener: (data: unknown, isBinary: boolean) => void): unknown;
  on(event: "pong" | "close", listener: () => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A text, or a stream that is handed on as fast as it is read and no faster. */
  readonly body: string | undefined | ResponseStream;
}

/** What a request is answered that has become a WebSocket: everything was said. */
export const SWITCHED: HttpAnswer = { status: 101, headers: {}, body: undefined };

/** Pieces of a body. The next one is asked for when the last has been taken; leaving early ends it. */
export type ResponseStream = AsyncIterator<string, void>;

/** The actor of requests without a valid token, in the audit trail. No token has this name. */
export const NO_ACTOR = "nobody";

/** Who asks: a token, or whoever may open the private socket. */
export interface Actor {
  /** For the audit trail: the name of the token, never the token. */
  readonly name: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** Undefined: the whole house. Else only sessions whose ids begin with `ses_<tenant>.`. */
  readonly tenant: string | undefined;
}

export const TOKEN_SCOPES = ["read", "prompt", "cancel", "approve", "admin"] as const;

/** What a token may do. `admin` is all of it, and what concerns the server itself. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
