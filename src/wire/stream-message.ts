// The messages of `/v1/stream`, the one connection over which a client follows all of its streams. Over a WebSocket
// each is one message, over an event stream the data of one event.

/** From the client. The client chooses `id`, which must be unique on its connection. */
export type StreamUp =
  | {
      readonly type: "request";
      readonly id: string;
      readonly method: "GET" | "POST" | "DELETE";
      /** Includes the query. */
      readonly path: string;
      readonly lastEventId?: string | undefined;
      readonly key?: string | undefined;
      readonly body?: object | undefined;
    }
  /** Flow control: the client has read `chars` characters of the response, so the server may send as many more. */
  | { readonly type: "read"; readonly id: string; readonly chars: number }
  /** The client no longer wants the response. Disconnecting ends nothing else. */
  | { readonly type: "leave"; readonly id: string };

export type StreamDown =
  /** The first message: the name by which other requests refer to this connection. */
  | { readonly type: "open"; readonly stream: string }
  /** The request has arrived. Its response may take as long as the request asked to wait. */
  | { readonly type: "received"; readonly id: string }
  /** A complete response. */
  | { readonly type: "answer"; readonly id: string; readonly text: string; readonly head: StreamHead }
  /** A response sent in pieces until `end`. */
  | { readonly type: "head"; readonly id: string; readonly head: StreamHead }
  | { readonly type: "piece"; readonly id: string; readonly text: string }
  | { readonly type: "end"; readonly id: string }
  | { readonly type: "heartbeat" };

export interface StreamHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Flow-control window: characters of one response that may be sent and not yet read. */
export const STREAM_WINDOW_CHARS = 256 * 1024;
