// The server's end of one request: writes the answer, and notices when the client is not there any more.
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Line } from "./player.ts";

export class ResponseLine implements Line {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #gone = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<number>();
  #closedAt: number | undefined;
  /** Who ended it, once it is over. Only the first counts. */
  #endedBy: "client" | "server" | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
    if (response.socket === null) throw new Error("A response without a socket.");
    this.#socket = response.socket;
    // Nobody has to ask.
    this.#closed.promise.catch(() => {});
    // The socket outlives the response if it is kept alive, so each response takes its listeners with it.
    for (const event of ["end", "error", "close"]) this.#socket.on(event, this.#onClientGone);
    response.on("error", () => {});
    response.once("finish", () => this.#over("server", "The answer was over before the client left."));
  }

  get isGone(): boolean {
    return this.#endedBy !== undefined;
  }

  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  get closedAt(): number | undefined {
    return this.#closedAt;
  }

  get closed(): Promise<number> {
    return this.#closed.promise;
  }

  async headers(): Promise<void> {
    if (this.#response.headersSent) return;
    this.#stream();
    this.#response.flushHeaders();
    // Headers have no callback of their own; what is written behind them has.
    await this.#orGone((done) => this.#socket.write("", done));
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#response.headersSent) this.#stream();
    await this.#orGone((done) => this.#response.write(bytes, done));
  }

  async end(): Promise<void> {
    if (!this.#response.headersSent) this.#stream();
    await this.#orGone((done) => this.#response.end(done));
  }

  async fail(status: number, headers: Readonly<Record<string, string>>, body: unknown): Promise<void> {
    if (this.isGone) return;
    this.#response.writeHead(status, { ...headers, "content-type": "application/json" });
    await this.#orGone((done) => this.#response.end(JSON.stringify(body), done));
  }

  reset(): void {
    this.#over("server", "The server reset the connection.");
    this.#socket.resetAndDestroy();
  }

  /** The server goes away under the answer. */
  leave(): void {
    this.#over("server", "The server was closed before the client left.");
    this.#socket.destroy();
  }

  #stream(): void {
    this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  }

  async #orGone(act: (done: () => void) => void): Promise<void> {
    if (this.isGone) return;
    await Promise.race([new Promise<void>((resolve) => act(() => resolve())), this.gone]);
  }

  readonly #onClientGone = (): void => {
    if (this.#endedBy !== undefined) return;
    this.#closedAt = performance.now();
    this.#closed.resolve(this.#closedAt);
    this.#over("client", "");
  };

  #over(by: "client" | "server", why: string): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = by;
    if (by === "server") this.#closed.reject(new Error(why));
    this.#gone.resolve();
    for (const event of ["end", "error", "close"]) this.#socket.off(event, this.#onClientGone);
  }
}
