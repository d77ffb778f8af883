// No stop is lost on its way: every method that stops, on every transport, for whatever is in flight, whatever the
// network does. The cells are generated from the types of the control; what is not in the table fails it.
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { Gate } from "../../../src/testing/gate.ts";
import { AFTER, StoppableServer, type Target } from "./stop-fixture.ts";
import {
  ENDS_THE_SESSION,
  FREES_THE_SESSION,
  hasOwnSession,
  IN_FLIGHT,
  type InFlight,
  isUnanswered,
  type Method,
  type Network,
  REACHES,
} from "./stop-methods.ts";
import type { OpenWay, Way } from "./stop-transports.ts";
import * as ways from "./stop-transports.ts";

const TRANSPORTS: Readonly<Record<string, OpenWay>> = {
  library: ways.library,
  client: ways.client,
  "HTTP/1.1, pipelined": ways.pipelined,
  WebSocket: ways.webSocket,
  "event stream": ways.eventStream,
  bridge: ways.bridge,
  "ACP 1": ways.acp1,
  "ACP 2": ways.acp2,
  "command line": ways.commandLine,
};

const METHODS = Object.keys(REACHES) as Method[];

/** Makes a test of each cell in which one of these networks is in between. */
export function testStops(networks: readonly Network[]): void {
  vi.setConfig({ testTimeout: 30_000, maxConcurrency: 8 });
  let restore = (): void => {};
  beforeAll(() => {
    restore = ways.withFaultyPlatform();
    vi.stubEnv("BELAY_TOKEN", "a-token-for-tests");
    // What the commands print. Not a mock: those are restored before each test.
    for (const stream of [process.stdout, process.stderr]) Object.assign(stream, { write: () => true });
  });
  afterAll(() => {
    restore();
    for (const stream of [process.stdout, process.stderr]) Reflect.deleteProperty(stream, "write");
    vi.unstubAllEnvs();
  });
  describe.concurrent.each(Object.entries(TRANSPORTS))("%s", (_name, open) => {
    const cells = METHODS.flatMap((method) =>
      IN_FLIGHT.filter((inFlight) => REACHES[method][inFlight] === "stops").flatMap((inFlight) =>
        networks.map((network) => [method, inFlight, network] as const),
      ),
    );
    test.for(cells)("G7: %s, %s, %s", async ([method, inFlight, network], { skip }) => {
      await run(open, { method, inFlight, network }, skip);
    });
  });
}

interface Cell {
  readonly method: Method;
  readonly inFlight: InFlight;
  readonly network: Network;
}

/** Why there is no such cell. */
function absence(way: Way, { method, inFlight, network }: Cell): string | undefined {
  const stop = way.stops[method];
  if (typeof stop === "string") return stop;
  const spared = way.spares?.[method]?.[inFlight];
  if (spared !== undefined) return spared;
  if (isUnanswered(inFlight) && way.prompt === undefined) return "a program sends one prompt";
  if (hasOwnSession(inFlight) && typeof way.stops["belay.cancelPrompt"] === "string") return "a prompt has a session";
  if (network === "answer lost, then 502" && way.network?.behindProxy === undefined)
    return way.untilAnswered ?? NO_NETWORK;
  const needsNetwork = network !== "in one tick" && network !== "server restarted";
  return needsNetwork && way.network === undefined ? NO_NETWORK : undefined;
}

const NO_NETWORK = "there is no network";

async function run(open: OpenWay, cell: Cell, skip: (note: string) => void): Promise<void> {
  const server = await StoppableServer.open();
  const way = await open(server, cell.network);
  try {
    const why = absence(way, cell);
    if (why !== undefined) return skip(why);
    const target = await server.arrange(cell.inFlight, await way.newSession(), way.prompt);
    await way.prepare?.(target);
    const sent = await sendOver(way, cell, target);
    await sent.answered;
    const mayHaveEnded = ENDS_THE_SESSION.has(cell.method) || cell.network === "server restarted";
    const isUnknown = cell.network === "answer lost, then 502";
    if (!mayHaveEnded) isTrue(await (isUnknown ? sent.receipt.catch(() => undefined) : sent.receipt));
    await server.stopped(target, { mayBeRefused: ENDS_THE_SESSION.has(cell.method) });
    if (sent.isFollowed) await server.recordedInOrder(target);
    if (sent.isFollowed && FREES_THE_SESSION.has(cell.method)) await server.afterwards();
  } finally {
    await way.close();
    await server.close();
  }
}

/** Something was in flight, so no receipt says that there was nothing. */
function isTrue(receipt: unknown): void {
  const text = JSON.stringify(receipt) ?? "";
  if (/^\[\]$|"kind":"(idle|unknown)"/.test(text)) throw new Error(`The receipt is not true: ${text}`);
}

interface Sent {
  readonly receipt: Promise<unknown>;
  readonly answered: Promise<unknown>;
  readonly isFollowed: boolean;
}

/** The prompt, if it is unanswered; the stop; and a prompt behind it, in one tick unless the network is in the way. */
async function sendOver(way: Way, { method, inFlight, network }: Cell, target: Target): Promise<Sent> {
  const stop = way.stops[method] as (target: Target) => Promise<unknown>;
  const unanswered = isUnanswered(inFlight);
  const [first, then] = [new Gate(), new Gate()];
  const plan = (what: "prompt" | "stop", kind: "hold-request" | "copy-later", until: Gate) =>
    way.network?.plan(what, { kind, until });
  if (network === "delayed" || (unanswered && network !== "in one tick")) {
    if (unanswered && network !== "answer lost") void plan("prompt", "hold-request", first);
    if (network === "delayed") void plan("stop", "hold-request", then);
  }
  if (network === "reordered") void plan("stop", "copy-later", then);
  if (network === "answer lost, then 502") {
    if (unanswered) way.network?.behindProxy?.("prompt");
    way.network?.behindProxy?.("stop");
  }
  const onItsWay = network === "server restarted" && !unanswered ? plan("stop", "hold-request", then) : undefined;
  if (network === "answer lost") {
    if (unanswered) void way.network?.plan("prompt", { kind: "drop-answer" });
    void way.network?.plan("stop", { kind: "drop-answer" });
  }
  const isAlone = !FREES_THE_SESSION.has(method) && way.follows?.(method, target) !== undefined;
  const isProxied = unanswered && network === "answer lost, then 502";
  const isSecond = way.prompt !== undefined && way.promptsOnce === undefined && !isProxied;
  const isFollowed = !hasOwnSession(inFlight) && isSecond && !isAlone;
  const prompted = unanswered ? way.prompt?.(target, inFlight) : undefined;
  const stopped = stop(target);
  const followed = isFollowed ? way.prompt?.({ ...target, key: AFTER }, AFTER) : undefined;

  const all = [prompted, stopped, followed].map((one) => one?.then(undefined, refusedIf(method, network)));
  const carriedOut = (): Promise<unknown> => Promise.race([all[1], way.network?.stopAnswered ?? all[1]]);
  if (network === "reordered" && unanswered) await carriedOut();
  if (network === "server restarted") {
    await (unanswered ? carriedOut() : onItsWay);
    await way.restart();
  }
  first.open();
  if (network === "reordered") await Promise.all(all);
  then.open();
  return { answered: Promise.all(all), receipt: stopped, isFollowed };
}

/** A prompt may arrive in a session that has ended, and be refused; what a proxy answers is an error. */
const refusedIf =
  (method: Method, network: Network) =>
  (thrown: unknown): void => {
    if (!ENDS_THE_SESSION.has(method) && network !== "answer lost, then 502") throw thrown;
  };
