// A whole house on a real socket: the library, the guard, the handler, a listener; and a client that sends any bytes.
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { systemClock } from "../../src/engine/system-clock.ts";
import type { BelayOptions } from "../../src/library/belay.ts";
import { type Actor, TOKEN_SCOPES } from "../../src/server/exchange.ts";
import { Guard } from "../../src/server/guard.ts";
import { type Handler, makeHandler } from "../../src/server/handler.ts";
import { type Listener, listen } from "../../src/server/listener.ts";
import type { AuditNote } from "../../src/server/observer.ts";
import { type House, openHouse } from "../open-house.ts";

export interface Asked {
  readonly body?: unknown;
  /** Default the whole house's. */
  readonly token?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** The body as JSON; undefined if it has none. */
  readonly body: unknown;
}

export interface ServedHouse extends House {
  readonly handler: Handler;
  readonly listener: Listener;
  readonly port: number;
  readonly audit: AuditNote[];
  /** What the log was told at `warn` and above. */
  readonly told: string[];
  ask(method: string, target: string, asked?: Asked): Promise<Answer>;
  /** The answer's head, with its body still to be read. */
  open(method: string, target: string, asked?: Asked): Promise<IncomingMessage>;
  close(): Promise<void>;
}

const actor = (name: string, tenant?: string): Actor => ({ name, scopes: new Set(TOKEN_SCOPES), tenant });

/** The tokens of the house are the names of these. */
const ACTORS: Readonly<Record<string, Actor>> = {
  ann: actor("ann"),
  ben: actor("ben"),
  acme: actor("acme", "acme"),
  other: actor("other", "other"),
};

export async function openServedHouse(
  acts: Parameters<typeof openHouse>[0] = {},
  options: Partial<BelayOptions> = {},
): Promise<ServedHouse> {
  const house = await openHouse(acts, options);
  const audit: AuditNote[] = [];
  const told: string[] = [];
  const clock = systemClock;
  const guard = new Guard({
    tokens: { verify: (secret) => ACTORS[secret] },
    clock,
    mutationsPerSecond: 1e6,
    mutationsBurst: 1e6,
  });
  const handler = makeHandler({
    control: house.belay,
    guard,
    clock,
    version: "0",
    audit: {
      note: async (note) => void audit.push(note),
      read: async ({ limit }) => ({ records: audit.toReversed().slice(0, limit) }),
    },
    metrics: { answered: () => {}, streams: () => {}, acp: () => {}, text: () => "belay_up 1\n" },
    log: {
      debug: () => {},
      warn: (message) => told.push(message),
      error: (message, fields) => told.push(`${message}: ${String(fields?.error)} ${String(causeOf(fields?.error))}`),
    },
  });
  const listener = await listen(handler.handle, { place: { kind: "tcp" }, clock });
  if (listener.address.kind !== "tcp") throw new Error("a port was asked for");
  guard.serves(listener.address.served);
  const { port } = listener.address;
  const agent = new Agent({ keepAlive: true });
  const open = (method: string, target: string, asked: Asked = {}): Promise<IncomingMessage> =>
    send({ method, target, port, agent }, asked);
  return {
    ...house,
    ...{ handler, listener, port, audit, told, open },
    ask: async (method, target, asked) => read(await open(method, target, asked)),
    close: async () => {
      agent.destroy();
      await handler.drain();
      await Promise.all([listener.close({ limitMs: 1000 }), house.belay.close({ mode: "cancel" })]);
    },
  };
}

const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? error.cause.stack : "";

interface Where {
  readonly method: string;
  readonly target: string;
  readonly port: number;
  readonly agent: Agent;
}

function send({ method, target, port, agent }: Where, asked: Asked): Promise<IncomingMessage> {
  const { body, token = "ann", key, headers = {} } = asked;
  return new Promise((resolve, reject) => {
    const sent = httpRequest({
      host: "127.0.0.1",
      port,
      method,
      path: target,
      agent,
      headers: {
        authorization: `Bearer ${token}`,
        ...(method === "GET" ? {} : { "content-type": "application/json" }),
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...headers,
      },
    });
    sent.once("response", resolve).once("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function read(response: IncomingMessage): Promise<Answer> {
  const text = (await Array.fromAsync(response.setEncoding("utf8"))).join("");
  const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
  const body: unknown = isJson ? JSON.parse(text) : undefined;
  return { status: response.statusCode ?? 0, headers: response.headers, text, body };
}
