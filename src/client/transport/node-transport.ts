// `fetch` over a Unix socket, for Node. Imported only if a socket is used, so that browsers never load it.
import { request } from "node:http";
import { utf8Bytes } from "../../core/model/prompt.ts";
import type { Fetch, FetchResponse } from "./reply.ts";

/** Like `fetch`, but every request goes to this socket, whatever the host of its URL. */
export function socketFetch(socketPath: string): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise<FetchResponse>((resolve, reject) => {
      const { host, pathname, search } = new URL(url);
      // Always set: Node would send the body of a DELETE without a length.
      const length = body === undefined ? {} : { "content-length": String(utf8Bytes(body)) };
      const head = { ...headers, ...length, host };
      const sent = request({ socketPath, method, path: pathname + search, headers: head, signal });
      // Kept after the head has arrived: the body reports a later error, and this listener keeps it from being
      // uncaught.
      sent.on("error", reject);
      sent.on("socket", outliveErrors);
      sent.on("response", (incoming) => {
        const status = incoming.statusCode ?? 0;
        const get = (name: string): string | null => {
          const value = incoming.headers[name];
          return value === undefined ? null : String(value);
        };
        resolve({ status, headers: { get }, body: streamOf(incoming) });
      });
      sent.end(body);
    });
}

/**
 * Keeps a late socket error from ending the program. A request aborted as its response ends can fail on its socket
 * after Node has removed its own listeners to reuse the socket, and an `error` event without a listener is thrown.
 */
function outliveErrors(socket: ReusedSocket): void {
  // A reused socket already has the listener.
  if (!socket.listeners("error").includes(ignore)) socket.on("error", ignore);
}

const ignore = (): void => {};

interface ReusedSocket {
  listeners(event: "error"): readonly unknown[];
  on(event: "error", call: () => void): unknown;
}

interface Incoming extends AsyncIterable<unknown> {
  destroy(): unknown;
}

/** Reads on demand, so that backpressure reaches the sender and memory stays bounded. */
function streamOf(incoming: Incoming): ReadableStream<Uint8Array> {
  const pieces = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await pieces.next();
        if (next.done === true) controller.close();
        else if (next.value instanceof Uint8Array) controller.enqueue(next.value);
      },
      cancel() {
        incoming.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
