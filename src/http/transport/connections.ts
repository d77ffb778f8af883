// The connections of one listener, and which of them gives way when there are too many: a stop must get through.
//
// Invariants
// 1. The oldest connection without a valid token gives way first, and then the oldest idle one. A request that has
//    arrived in full, and a WebSocket, never give way.
// 2. If none gives way, as many more are taken as are kept for stops. They carry stops; other requests on them are
//    refused.
// 3. There are never more than these together, those of TLS included that have no key yet: each is an open file.
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { NodeExchange } from "./node-exchange.ts";

export interface Connection {
  /** Requests that are not answered yet. */
  readonly inFlight: Set<NodeExchange>;
  readonly use: "any" | "stops";
}

export class Connections {
  readonly #max: number;
  readonly #forStops: number;
  readonly #open = new Map<Duplex, Connection>();
  /** No request with a valid token came in on these. The oldest first. */
  readonly #strangers = new Set<Duplex>();
  readonly #webSockets = new WeakSet<Duplex>();
  /** Connections of TLS that have no key yet, by the address of the client. */
  readonly #handshakes = new Map<string, Socket>();

  constructor(max: number, forStops: number) {
    this.#max = max;
    this.#forStops = forStops;
  }

  get size(): number {
    return this.#open.size;
  }

  all(): Iterable<[Duplex, Connection]> {
    return this.#open;
  }

  get(socket: Duplex): Connection | undefined {
    return this.#open.get(socket);
  }

  /** Undefined: there is no room, and it was closed. */
  add(socket: Duplex): Connection | undefined {
    if (this.#open.size >= this.#max) this.#makeRoom();
    const { size } = this.#open;
    if (size >= this.#max + this.#forStops) {
      socket.destroy();
      return undefined;
    }
    const connection: Connection = { inFlight: new Set(), use: size < this.#max ? "any" : "stops" };
    this.#open.set(socket, connection);
    this.#strangers.add(socket);
    socket.once("close", () => this.#remove(socket));
    return connection;
  }

  /** TLS: before there is a key. The oldest of too many gives way. */
  greet(raw: Socket): void {
    const address = addressOf(raw);
    const [oldest] = this.#handshakes.values();
    if (this.#handshakes.size >= Math.max(1, this.#max + this.#forStops - this.#open.size)) oldest?.destroy();
    this.#handshakes.set(address, raw);
    raw.once("close", () => {
      if (this.#handshakes.get(address) === raw) this.#handshakes.delete(address);
    });
  }

  agree(secure: Socket): void {
    this.#handshakes.delete(addressOf(secure));
  }

  /** A valid token came in on it. */
  admit(socket: Duplex): void {
    this.#strangers.delete(socket);
  }

  /** It carries messages from now on, and is never idle. */
  keep(socket: Duplex): void {
    this.#webSockets.add(socket);
  }

  #makeRoom(): void {
    const found = this.#oldest(this.#strangers, isWithoutRequest) ?? this.#oldest(this.#open.keys(), isIdle);
    if (found === undefined) return;
    found.destroy();
    // Now, and not when the system has closed it.
    this.#remove(found);
  }

  #oldest(sockets: Iterable<Duplex>, gives: (connection: Connection) => boolean): Duplex | undefined {
    for (const socket of sockets) {
      const connection = this.#open.get(socket);
      if (connection !== undefined && !this.#webSockets.has(socket) && gives(connection)) return socket;
    }
    return undefined;
  }

  #remove(socket: Duplex): void {
    this.#open.delete(socket);
    this.#strangers.delete(socket);
  }
}

const addressOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

const isIdle = ({ inFlight }: Connection): boolean => inFlight.size === 0;

/** Nothing came in, or only a part of a request. */
const isWithoutRequest = ({ inFlight }: Connection): boolean => [...inFlight].every(({ received }) => !received);
