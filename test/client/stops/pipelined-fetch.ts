// A `fetch` that sends everything over one HTTP/1.1 connection: what is asked for in one tick is one write, and answers
// come in the order of the requests.
import { connect, type Socket } from "node:net";
import type { Fetch, FetchResponse } from "../../../src/client/transport/reply.ts";

interface Waiting {
  readonly answered: (reply: FetchResponse) => void;
  readonly failed: (why: Error) => void;
}

export function pipelinedFetch(): Fetch & { close(): void } {
  const connections = new Map<string, Pipeline>();
  const fetch: Fetch = (url, { method, headers, body }) => {
    const { host, hostname, port, pathname, search } = new URL(url);
    let pipeline = connections.get(host);
    if (pipeline === undefined || pipeline.closed) {
      pipeline = new Pipeline(connect(Number(port), hostname));
      connections.set(host, pipeline);
    }
    const length = { "content-length": String(Buffer.byteLength(body ?? "")) };
    const lines = Object.entries({ host, ...headers, ...(method === "GET" ? {} : length) }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    return pipeline.send([`${method} ${pathname}${search} HTTP/1.1`, ...lines, "", body ?? ""].join("\r\n"));
  };
  return Object.assign(fetch, { close: () => connections.forEach((one) => void one.close()) });
}

class Pipeline {
  closed = false;
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #unsent = "";
  #received = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece) => this.#receive(piece));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      const lost = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
      for (const { failed } of this.#waiting.splice(0)) failed(lost);
    });
  }

  send(request: string): Promise<FetchResponse> {
    if (this.#unsent === "") queueMicrotask(() => this.#flush());
    this.#unsent += request;
    return new Promise((answered, failed) => this.#waiting.push({ answered, failed }));
  }

  close(): void {
    this.#socket.destroy();
  }

  #flush(): void {
    this.#socket.write(this.#unsent);
    this.#unsent = "";
  }

  #receive(piece: Buffer): void {
    this.#received = Buffer.concat([this.#received, piece]);
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n");
      if (end === -1) return;
      const [first = "", ...lines] = this.#received.subarray(0, end).toString().split("\r\n");
      const headers = new Headers(lines.map((line) => line.split(/: (.*)/, 2) as [string, string]));
      const to = end + 4 + Number(headers.get("content-length") ?? 0);
      if (this.#received.length < to) return;
      const body = new Blob([this.#received.subarray(end + 4, to)]).stream();
      this.#received = this.#received.subarray(to);
      this.#waiting.shift()?.answered({ status: Number(first.split(" ")[1]), headers, body });
    }
  }
}
