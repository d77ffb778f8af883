// Takes connections and does nothing with them: neither reads the request nor answers it. For a cancel at the start.
//
//   await using deaf = await startDeafListener();
//   const answer = model.doStream({ prompt, abortSignal: controller.signal });
//   const connection = await deaf.connection(0);
//   controller.abort();
//   const closedAt = await connection.closed();
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

export class DeafConnection {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** When the client closed, as `performance.now()` tells it: at the latest, for it is noticed only by reading. So ask
   * right after the cancel, and not before: from then on the connection is read, though still not answered. */
  closed(): Promise<number> {
    return new Promise((resolve) => {
      for (const event of ["end", "error", "close"]) this.#socket.once(event, () => resolve(performance.now()));
      this.#socket.resume();
    });
  }
}

export class DeafListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly #connections: PromiseWithResolvers<DeafConnection>[] = [];

  constructor() {
    this.#server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      // It may be reset; that is noted by whoever asked.
      socket.on("error", () => {});
      this.#connection(this.#sockets.length).resolve(new DeafConnection(socket));
      this.#sockets.push(socket);
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Settles when this connection has been made, the first being 0. */
  connection(index: number): Promise<DeafConnection> {
    return this.#connection(index).promise;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #connection(index: number): PromiseWithResolvers<DeafConnection> {
    while (this.#connections.length <= index) this.#connections.push(Promise.withResolvers());
    const connection = this.#connections[index];
    if (connection === undefined) throw new RangeError(`There is no connection ${index}.`);
    return connection;
  }
}

export const startDeafListener = (): Promise<DeafListener> => new DeafListener().listen();
