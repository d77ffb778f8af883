// A server on a real port, and subscribers in another process, for the parts of this bench.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import { listen } from "../../src/http/transport/listener.ts";
import { type Agent, type Belay, openBelay } from "../../src/index.ts";
import { systemClock } from "../../src/system/system-clock.ts";

export const TOKEN = "belay_bench";

export interface Served {
  readonly belay: Belay;
  readonly port: number;
  close(): Promise<void>;
}

/** Everything a request meets in a real server, but for the limits that are there to keep crowds out. */
export async function serve(store: string, agent: Agent): Promise<Served> {
  const belay = await openBelay({ store, agent, liveRunsMax: 2_048 });
  const everything = new Set(["read", "prompt", "cancel", "approve", "admin"] as const);
  const actor = { name: "bench", scopes: everything, tenant: undefined };
  const guard = new Guard({
    tokens: { verify: (secret) => (secret === TOKEN ? actor : undefined) },
    clock: systemClock,
    streamsPerToken: 10_000,
  });
  const handler = makeHandler({ control: belay, guard, clock: systemClock, version: "bench" });
  const place = { kind: "tcp", port: 0 } as const;
  const listener = await listen(handler.handle, { place, clock: systemClock, limits: { connectionsMax: 10_000 } });
  if (listener.address.kind !== "tcp") throw new Error("It listens somewhere else.");
  guard.serves(listener.address.served);
  return {
    belay,
    port: listener.address.port,
    close: async () => {
      await belay.close({ mode: "cancel" });
      await handler.drain();
      await listener.close({ limitMs: 1_000 });
    },
  };
}

export interface Told {
  readonly bytes: number;
  readonly events: number;
  readonly measured: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Subscribers {
  /** Every one of them has its first bytes. */
  readonly ready: Promise<void>;
  /** What they have to tell, when all streams have ended. */
  readonly told: Promise<Told>;
  say(word: "measure" | "stop"): void;
}

export function subscribers(port: number, paths: readonly string[], measure: "count" | "delays"): Subscribers {
  const file = new URL("./subscribers.ts", import.meta.url).pathname;
  const wish = JSON.stringify({ port, token: TOKEN, paths, measure });
  const child: ChildProcess = spawn(process.execPath, [file, wish], { stdio: ["pipe", "pipe", "inherit"] });
  const { promise: ready, resolve: getReady } = Promise.withResolvers<void>();
  const { promise: told, resolve: tell, reject } = Promise.withResolvers<Told>();
  if (child.stdout === null) throw new Error("There is nothing to listen to.");
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") getReady();
    else tell(JSON.parse(line));
  });
  child.on("exit", (code) => code !== 0 && reject(new Error(`The subscribers have left with ${code}.`)));
  return { ready, told, say: (word) => void child.stdin?.write(`${word}\n`) };
}
