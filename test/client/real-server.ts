// The library behind a real server, on a port of the loopback and on a private socket.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BelayControl } from "../../src/control.ts";
import { systemClock } from "../../src/engine/system-clock.ts";
import { TOKEN_SCOPES } from "../../src/server/exchange.ts";
import { Guard } from "../../src/server/guard.ts";
import { makeHandler } from "../../src/server/handler.ts";
import { listen } from "../../src/server/listener.ts";

export interface RealServer {
  readonly url: string;
  readonly socket: string;
  readonly token: string;
  /** It is also reached through this port of the loopback. */
  alsoAt(port: number): void;
  /** Ends streams with a last word, then the connections. */
  close(): Promise<void>;
}

const TOKEN = "a-token-for-tests";

export async function realServer(control: BelayControl, port = 0): Promise<RealServer> {
  const clock = systemClock;
  const all = { name: "tester", scopes: new Set(TOKEN_SCOPES), tenant: undefined };
  const tokens = { verify: (secret: string) => (secret === TOKEN ? all : undefined) };
  // No test here is about how fast a token may change things, and some have no time to wait.
  const guard = new Guard({ tokens, clock, mutationsPerSecond: 10_000, mutationsBurst: 10_000 });
  const handler = makeHandler({ control, guard, clock, version: "0.0.0" });
  const folder = await mkdtemp(join(tmpdir(), "belay-client-"));
  const socket = join(folder, "private", "s");
  const tcp = await listen(handler.handle, { place: { kind: "tcp", port }, clock });
  const local = await listen(handler.handle, { place: { kind: "socket", path: socket }, clock });
  if (tcp.address.kind !== "tcp") throw new Error("The listener is not on TCP.");
  guard.serves(tcp.address.served);
  return {
    url: tcp.address.url,
    socket,
    token: TOKEN,
    alsoAt: (port) => guard.serves({ scheme: "http", port }),
    close: async () => {
      await handler.drain();
      await Promise.all([tcp.close({ limitMs: 0 }), local.close({ limitMs: 0 })]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
