// A way to a server that is cut again and again, after so many bytes as the test's dice say.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly port: number;
  /** How often it has cut. */
  readonly cuts: number;
  close(): Promise<void>;
}

/** `bytes` says after how many bytes of answers the next connection is cut. Undefined: not at all. */
export async function cuttingProxy(to: number, bytes: () => number | undefined): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let cuts = 0;
  const server = createServer((near) => {
    const far = connect(to, "127.0.0.1");
    let left = bytes() ?? Number.POSITIVE_INFINITY;
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    near.on("data", (piece) => far.write(piece));
    far.on("data", (piece) => {
      const part = piece.subarray(0, Math.min(left, piece.length));
      left -= part.length;
      if (left > 0) {
        near.write(part);
        return;
      }
      cuts += 1;
      // What was let through arrives before the cut.
      near.write(part, end);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
