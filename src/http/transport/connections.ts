// The connections of one listener, and which of them is closed when there are too many: a stop must get through.
//
// Invariants
// 1. The oldest connection without a valid token is closed first, then the oldest idle one. A connection with a
//    complete request, and a WebSocket, are never closed.
// 2. If none can be closed, connections beyond the maximum are accepted for stops, up to a limit. Other requests on
//    them are refused.
// 3. The total never exceeds both limits, connections during the TLS handshake included: each is an open file.
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { NodeExchange } from "./node-exchange.ts";

export interface Connection {
  /** Requests without a response yet. */
  readonly inFlight: Set<NodeExchange>;
  readonly use: "any" | "stops";
}

export class Connections {
  readonly #max: number;
  readonly #forStops: number;
  readonly #open = new Map<Duplex, Connection>();
  /** Connections without a request with a valid token, oldest first. */
  readonly #unauthenticated = new Set<Duplex>();
  readonly #webSockets = new WeakSet<Duplex>();
  /** Connections during the TLS handshake, by the address of the client. */
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

  /** Adds a connection. Undefined if there was no room and it was closed. */
  add(socket: Duplex): Connection | undefined {
    if (this.#open.size >= this.#max) this.#makeRoom();
    const { size } = this.#open;
    if (size >= this.#max + this.#forStops) {
      socket.destroy();
      return undefined;
    }
    const connection: Connection = { inFlight: new Set(), use: size < this.#max ? "any" : "stops" };
    this.#open.set(socket, connection);
    this.#unauthenticated.add(socket);
    socket.once("close", () => this.#remove(socket));
    return connection;
  }

  /** Adds a connection at the start of its TLS handshake. If there are too many, the oldest handshake is aborted. */
  beginHandshake(raw: Socket): void {
    const address = addressOf(raw);
    const [oldest] = this.#handshakes.values();
    if (this.#handshakes.size >= Math.max(1, this.#max + this.#forStops - this.#open.size)) oldest?.destroy();
    this.#handshakes.set(address, raw);
    raw.once("close", () => {
      if (this.#handshakes.get(address) === raw) this.#handshakes.delete(address);
    });
  }

  endHandshake(secure: Socket): void {
    this.#handshakes.delete(addressOf(secure));
  }

  /** Marks a connection on which a valid token arrived. */
  admit(socket: Duplex): void {
    this.#unauthenticated.delete(socket);
  }

  /** Marks a connection as a WebSocket, which is never idle. */
  markWebSocket(socket: Duplex): void {
    this.#webSockets.add(socket);
  }

  #makeRoom(): void {
    const found = this.#oldest(this.#unauthenticated, isWithoutRequest) ?? this.#oldest(this.#open.keys(), isIdle);
    if (found === undefined) return;
    found.destroy();
    // Removed immediately, not only when the system has closed it.
    this.#remove(found);
  }

  #oldest(sockets: Iterable<Duplex>, isClosable: (connection: Connection) => boolean): Duplex | undefined {
    for (const socket of sockets) {
      const connection = this.#open.get(socket);
      if (connection !== undefined && !this.#webSockets.has(socket) && isClosable(connection)) return socket;
    }
    return undefined;
  }

  #remove(socket: Duplex): void {
    this.#open.delete(socket);
    this.#unauthenticated.delete(socket);
  }
}

const addressOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

const isIdle = ({ inFlight }: Connection): boolean => inFlight.size === 0;

/** Whether no complete request has arrived. */
const isWithoutRequest = ({ inFlight }: Connection): boolean => [...inFlight].every(({ received }) => !received);
