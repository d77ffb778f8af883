// The ways into the server that is soaked: clients on its port and, through somebody who cuts, on its private socket.
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { type BelayClient, connectBelay, type Fetch } from "../../src/client/index.ts";
import type { ServerNote } from "./server.ts";

export interface Connections {
  /** On its port, with its token. */
  readonly tcp: BelayClient;
  /** On its private socket, cut now and then. */
  readonly cuttable: BelayClient;
  /** Cuts every connection on the private socket. */
  cut(): void;
  close(): Promise<void>;
}

export async function openConnections(note: ServerNote, token: string): Promise<Connections> {
  const agent = new Agent({ keepAlive: true });
  const cutter = new Cutter(note.socket);
  await cutter.listen();
  const tcp = await connectBelay({ url: note.url, token, fetch: fetchOver(agent) });
  const cuttable = await connectBelay({ socket: cutter.path });
  return {
    tcp,
    cuttable,
    cut: () => cutter.cut(),
    close: async () => {
      await Promise.all([tcp.close(), cuttable.close()]);
      agent.destroy();
      await cutter.close();
    },
  };
}

/** With connections of our own, which end when they are told to. */
function fetchOver(agent: Agent): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
      const asked = request(url, { method, headers: { ...headers, ...length }, agent, signal });
      asked.on("error", reject);
      asked.on("response", (incoming) => {
        const get = (name: string): string | null => incoming.headers[name]?.toString() ?? null;
        const reply = Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
        resolve({ status: incoming.statusCode ?? 0, headers: { get }, body: reply });
      });
      asked.end(body);
    });
}

/** A socket in front of the server's own. */
class Cutter {
  readonly path: string;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(to: string) {
    this.path = join(dirname(to), "cut.sock");
    this.#server = createServer((near) => {
      const far = connect(to);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(this.path);
    await once(this.#server, "listening");
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
    rmSync(this.path, { force: true });
  }
}
