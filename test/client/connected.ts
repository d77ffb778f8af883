// A client of a scripted server, with time that the test moves and keys that it knows.
import { setImmediate as turn } from "node:timers/promises";
import { type BelayClient, type ConnectOptions, connectBelay } from "../../src/client/belay-client.ts";
import { PAUSE_LAST_MS } from "../../src/client/limits.ts";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.ts";
import { type ScriptedServer, scriptedServer } from "./scripted-server.ts";

export interface Connected extends AsyncDisposable {
  readonly server: ScriptedServer;
  readonly client: BelayClient;
  readonly clock: ManualClock;
  /** Waits until the client has nothing to do but to pause before it tries again, and lets that pause pass. */
  passPause(): Promise<number>;
}

export async function connected(options: Partial<ConnectOptions> = {}): Promise<Connected> {
  const server = await scriptedServer();
  const clock = manualClock();
  let keys = 0;
  const chance = { key: () => `key-${++keys}`, fraction: () => 0 };
  const client = await connectBelay({ url: server.url, token: "secret", clock, chance, ...options });
  return {
    server,
    client,
    clock,
    passPause: async () => {
      // Pauses are short and requests are given longer, so a short timer is a pause.
      const pause = () => clock.pending.find(({ inMs, idle }) => !idle && inMs <= PAUSE_LAST_MS);
      await until(() => pause() !== undefined);
      const ms = pause()?.inMs ?? 0;
      await clock.advance(ms);
      return ms;
    },
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await server.die();
    },
  };
}

/** Lets the event loop turn until it is so. */
export async function until(so: () => boolean): Promise<void> {
  while (!so()) await turn();
}
