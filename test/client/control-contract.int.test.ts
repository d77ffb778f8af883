// One suite: the library itself, and the client over TCP, with six connections, in a host, and over a private socket.
import { expectTypeOf, test } from "vitest";
import { type BelayClient, type ConnectOptions, connectBelay } from "../../src/client/belay-client.ts";
import type { Agent } from "../../src/ports/agent.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { withConnections } from "../fixtures/few-connections.ts";
import { inMemoryServer } from "../fixtures/in-memory-server.ts";
import { type RealServer, realServer } from "../fixtures/real-server.ts";
import { controlContract } from "./control-contract.ts";
import type { Opened } from "./control-fixture.ts";

const library = (agent: Agent): Promise<Belay> => openBelay({ agent, store: ":memory:", graceMs: 200 });

async function overServer(agent: Agent, how: (server: RealServer) => ConnectOptions): Promise<Opened> {
  const belay = await library(agent);
  const server = await realServer(belay);
  const control = await connectBelay(how(server));
  return {
    control,
    close: async () => {
      await control.close();
      await server.close();
      await belay.close({ mode: "cancel" });
    },
  };
}

test("the library and the client have the same interface", () => {
  expectTypeOf<Belay>().toExtend<BelayControl>();
  expectTypeOf<BelayClient>().toExtend<BelayControl>();
});

controlContract("library", async (agent) => {
  const control = await library(agent);
  return { control, close: async () => void (await control.close({ mode: "cancel" })) };
});
controlContract("client over TCP", (agent) => overServer(agent, ({ url, token }) => ({ url, token })));
controlContract("client with six connections, as a browser has", (agent) =>
  overServer(agent, ({ url, token }) => ({ url, token, streams: "shared", fetch: withConnections(6) })),
);
controlContract("client of a host that mounts the fetch handler", async (agent) => {
  const belay = await library(agent);
  const { close, ...server } = inMemoryServer(belay);
  const control = await connectBelay({ ...server, streams: "shared" });
  return {
    control,
    close: async () => {
      await control.close();
      await close();
      await belay.close({ mode: "cancel" });
    },
  };
});
controlContract("client over a socket", (agent) => overServer(agent, ({ socket }) => ({ socket })));
