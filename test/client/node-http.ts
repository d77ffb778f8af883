// As much of `node:http` as the client's transport for sockets names, for a check of the client without Node's types.
interface Incoming extends AsyncIterable<unknown> {
  readonly statusCode?: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  destroy(): unknown;
}

/** What `node:net` calls a socket. */
interface Socket {
  listeners(event: "error"): readonly unknown[];
  on(event: "error", call: () => void): unknown;
}

interface Asked {
  on(event: "socket", call: (socket: Socket) => void): unknown;
  on(event: "error", call: (error: Error) => void): unknown;
  on(event: "response", call: (incoming: Incoming) => void): unknown;
  end(body?: string): unknown;
}

export declare function request(options: {
  readonly socketPath: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}): Asked;
