// Gates between a test and an agent in any process, over a socket in the session's working directory.
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";

const socketIn = (dir: string): string => join(dir, "gates");

/** The agent's side: resolves when the gate is open, rejects with the signal's reason if that comes first. */
export function pass(dir: string, name: string, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(socketIn(dir));
    const leave = (): void => {
      socket.destroy();
      reject(signal?.reason);
    };
    if (signal?.aborted === true) return leave();
    signal?.addEventListener("abort", leave, { once: true });
    socket.on("error", reject);
    socket.on("data", () => {
      signal?.removeEventListener("abort", leave);
      socket.destroy();
      resolve();
    });
    socket.write(`${name}\n`);
    return undefined;
  });
}

interface Gate {
  came: number;
  open: boolean;
  readonly standing: Set<Socket>;
  readonly waiting: (() => void)[];
}

/** The test's side. */
export class Gates {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #gates = new Map<string, Gate>();

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => this.#came(socket));
  }

  static async open(dir: string): Promise<Gates> {
    const server = createServer();
    const gates = new Gates(server);
    await new Promise<void>((resolve) => server.listen(socketIn(dir), resolve));
    return gates;
  }

  /** Resolves when an agent has reached the gate. */
  reached(name: string): Promise<void> {
    const gate = this.#gate(name);
    return gate.came > 0 ? Promise.resolve() : new Promise((resolve) => gate.waiting.push(resolve));
  }

  /** How often the gate was reached. */
  count(name: string): number {
    return this.#gate(name).came;
  }

  /** Opens the gate for all agents, now and later. */
  open(name: string): void {
    const gate = this.#gate(name);
    gate.open = true;
    for (const socket of gate.standing) socket.write("open\n");
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #gate(name: string): Gate {
    const gate = this.#gates.get(name) ?? { came: 0, open: false, standing: new Set(), waiting: [] };
    this.#gates.set(name, gate);
    return gate;
  }

  #came(socket: Socket): void {
    this.#sockets.add(socket);
    let said = "";
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (!said.endsWith("\n")) return;
      const gate = this.#gate(said.trim());
      gate.came += 1;
      gate.standing.add(socket);
      socket.on("close", () => gate.standing.delete(socket));
      if (gate.open) socket.write("open\n");
      for (const reached of gate.waiting.splice(0)) reached();
    });
  }
}
