// The transports through which an editor reaches Belay, each with the same agent: in memory, stdin and stdout,
// WebSocket and HTTP.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { ndJsonStream, type Stream } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import { listen } from "../../src/http/transport/listener.ts";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { CHILD_ENV } from "../fixtures/child-env.ts";
import { ROOT } from "../fixtures/repository.ts";
import { inMemory, type Line } from "./byte-line.ts";
import { Gates } from "./gates.ts";
import { agent } from "./script-agent.ts";

export interface AcpFixture {
  /** The working directory of its sessions, which also contains their gates. */
  readonly dir: string;
  readonly gates: Gates;
  connect(): Promise<Line>;
  close(): Promise<void>;
}

export type Transport = "memory" | "stdio" | "websocket" | "http";

export async function openAcpFixture(transport: Transport): Promise<AcpFixture> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "belay-acp-")));
  const gates = await Gates.open(dir);
  const { connect, close } = await WAYS[transport](dir);
  return {
    dir,
    gates,
    connect,
    close: async () => {
      await close();
      await gates.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

type Way = (dir: string) => Promise<Pick<AcpFixture, "connect" | "close">>;

const WAYS: Readonly<Record<Transport, Way>> = {
  memory: async () => {
    const belay = await openHere();
    const acp = acpAgent({ control: belay, clock: systemClock, version: "0" });
    return { connect: async () => inMemory(acp), close: () => closeHere(belay) };
  },
  stdio: async (dir) => {
    const lines: StdioLine[] = [];
    return {
      connect: async () => {
        const line = new StdioLine(dir);
        lines.push(line);
        return line;
      },
      close: async () => void (await Promise.all(lines.map((line) => line.drop()))),
    };
  },
  websocket: () =>
    served((port) =>
      createWebSocketStream(`ws://127.0.0.1:${port}/acp`, { WebSocket, headers: HEADERS, cookies: "omit" }),
    ),
  http: () => served((port) => createHttpStream(`http://127.0.0.1:${port}/acp`, { headers: HEADERS, cookies: "omit" })),
};

/** One token serves all tests of a fixture; over HTTP every session has its own stream. */
const LIMITS = { mutationsPerSecond: 1e6, mutationsBurst: 1e6, streamsPerToken: 1e6 } as const;

const HEADERS = { authorization: "Bearer ann" } as const;

const openHere = (): Promise<Belay> => openBelay({ agent, store: ":memory:", directories: "any" });

const closeHere = async (belay: Belay): Promise<void> => void (await belay.close({ mode: "cancel", limitMs: 1_000 }));

class StdioLine implements Line {
  readonly stream: Stream;
  readonly #ended: Promise<void>;
  readonly #hangUp: () => void;

  constructor(dir: string) {
    const home = join(dir, "home");
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const words = ["src/cli/main.ts", "acp", "--agent", "test/acp/script-agent.ts", "--at-end", "keep", "--no-config"];
    const child = spawn(process.execPath, words, {
      cwd: ROOT,
      env: { ...CHILD_ENV, HOME: home, BELAY_HOME: home, TMPDIR: dir },
      stdio: ["pipe", "pipe", process.env.BELAY_TEST_SHOW === "1" ? "inherit" : "ignore"],
    });
    this.#ended = new Promise((resolve) => child.on("close", () => resolve()));
    child.stdin.on("error", () => {});
    this.#hangUp = () => void child.stdin.end();
    // The two stream types differ only in their declarations.
    const input = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
    this.stream = ndJsonStream(Writable.toWeb(child.stdin), input);
  }

  async drop(): Promise<void> {
    this.#hangUp();
    await this.#ended;
  }
}

async function served(open: (port: number) => Stream): Promise<Pick<AcpFixture, "connect" | "close">> {
  const belay = await openHere();
  const clock = systemClock;
  const actor = { name: "ann", scopes: new Set(TOKEN_SCOPES), tenant: undefined };
  const tokens = { verify: (secret: string) => (secret === "ann" ? actor : undefined) };
  const guard = new Guard({ tokens, clock, ...LIMITS });
  const handler = makeHandler({ control: belay, guard, clock, version: "0" });
  const listener = await listen(handler.handle, { place: { kind: "tcp" }, clock });
  if (listener.address.kind !== "tcp") throw new Error("a port was asked for");
  const { port, served: names } = listener.address;
  guard.serves(names);
  return {
    connect: async () => ({ stream: open(port), drop: async () => {} }),
    close: async () => {
      await handler.drain();
      await listener.close({ limitMs: 1_000 });
      await closeHere(belay);
    },
  };
}
