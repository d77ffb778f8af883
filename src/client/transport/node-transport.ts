// `fetch` over a unix socket, for Node. Loaded only when a socket is asked for, so that browsers never see it.
import { request } from "node:http";
import { utf8Bytes } from "../../core/model/prompt.ts";
import type { Fetch, Reply } from "./reply.ts";

/** As `fetch`, but every request goes to this socket, whatever host its address names. */
export function socketFetch(socketPath: string): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise<Reply>((resolve, reject) => {
      const { host, pathname, search } = new URL(url);
      // Said in any case: for a DELETE, Node would send the body without saying how long it is.
      const length = body === undefined ? {} : { "content-length": String(utf8Bytes(body)) };
      const head = { ...headers, ...length, host };
      const asked = request({ socketPath, method, path: pathname + search, headers: head, signal });
      // Also after the head has come in: a cut is then told by the body, and must not take the program down.
      asked.on("error", reject);
      asked.on("socket", outliveErrors);
      asked.on("response", (incoming) => {
        const status = incoming.statusCode ?? 0;
        const get = (name: string): string | null => {
          const value = incoming.headers[name];
          return value === undefined ? null : String(value);
        };
        resolve({ status, headers: { get }, body: streamOf(incoming) });
      });
      asked.end(body);
    });
}

/**
 * A request that is given up in the moment in which its answer ends fails on its socket, when Node has already taken
 * its own ears off it to lend it to the next one. Nobody would hear it, and that ends a program.
 */
function outliveErrors(socket: Lent): void {
  // The same socket is lent many times.
  if (!socket.listeners("error").includes(ignore)) socket.on("error", ignore);
}

const ignore = (): void => {};

interface Lent {
  listeners(event: "error"): readonly unknown[];
  on(event: "error", call: () => void): unknown;
}

interface Incoming extends AsyncIterable<unknown> {
  destroy(): unknown;
}

/** Read when it is asked for and not before, so that a slow reader slows its sender and fills no memory. */
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
