// What client and server say to each other on the one connection over which a client follows everything (`/v1/stream`).
// Types only: over a WebSocket each is one message, over an event stream the data of one event.

/** From the client. `id` is the client's own name for the request, and unique on its connection. */
export type StreamUp =
  | {
      readonly type: "request";
      readonly id: string;
      readonly method: "GET" | "POST" | "DELETE";
      /** With its query. */
      readonly path: string;
      readonly lastEventId?: string | undefined;
      readonly key?: string | undefined;
      readonly body?: object | undefined;
    }
  /** So many characters of the answer were read: as many more may be sent. */
  | { readonly type: "read"; readonly id: string; readonly chars: number }
  /** The answer is not wanted any more. Nothing else ends by it. */
  | { readonly type: "leave"; readonly id: string };

export type StreamDown =
  /** First of all: what the connection is called by requests that belong to it. */
  | { readonly type: "open"; readonly stream: string }
  /** The request has arrived. Its answer may take as long as it was asked to wait. */
  | { readonly type: "received"; readonly id: string }
  /** A whole answer. */
  | { readonly type: "answer"; readonly id: string; readonly text: string; readonly head: StreamHead }
  /** An answer that comes in pieces until `end`. */
  | { readonly type: "head"; readonly id: string; readonly head: StreamHead }
  | { readonly type: "piece"; readonly id: string; readonly text: string }
  | { readonly type: "end"; readonly id: string }
  | { readonly type: "heartbeat" };

export interface StreamHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Characters of one answer that may be on their way, sent and not read. */
export const STREAM_WINDOW_CHARS = 256 * 1024;
