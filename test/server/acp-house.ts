// A whole house that speaks ACP on a real port and a real socket, with time that the test moves; and clients for it.
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { WebSocket } from "ws";
import { systemClock } from "../../src/engine/system-clock.ts";
import { type Actor, TOKEN_SCOPES } from "../../src/server/exchange.ts";
import { Guard, type GuardOptions } from "../../src/server/guard.ts";
import { type Handler, makeHandler } from "../../src/server/handler.ts";
import { type Listener, listen } from "../../src/server/listener.ts";
import type { AuditNote } from "../../src/server/observer.ts";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.ts";
import { type House, openHouse } from "../open-house.ts";

export const actor = (name: string, given: Partial<Actor> = {}): Actor => ({
  ...{ name, scopes: new Set(TOKEN_SCOPES), tenant: undefined },
  ...given,
});

export interface AcpHouse extends House {
  /** By their secrets. A test that takes one away has revoked it. */
  readonly tokens: Map<string, Actor>;
  readonly clock: ManualClock;
  readonly handler: Handler;
  readonly port: number;
  readonly socket: string;
  readonly listener: Listener;
  readonly audit: AuditNote[];
  /** The connections that the metrics were told of, last. */
  readonly open: { count: number; becomes(count: number): Promise<void> };
  close(): Promise<void>;
}

export async function openAcpHouse(
  acts: Parameters<typeof openHouse>[0] = {},
  crowd: Partial<GuardOptions> = {},
): Promise<AcpHouse> {
  const house = await openHouse(acts, { directories: "any" });
  const clock = manualClock();
  const tokens = new Map(
    [actor("ann"), actor("ben"), actor("acme", { tenant: "acme" }), actor("other", { tenant: "other" })].map((one) => [
      one.name,
      one,
    ]),
  );
  const audit: AuditNote[] = [];
  const waiting = new Map<number, PromiseWithResolvers<void>>();
  const open = {
    count: 0,
    becomes: (count: number): Promise<void> => {
      if (open.count === count) return Promise.resolve();
      const one = waiting.get(count) ?? Promise.withResolvers<void>();
      waiting.set(count, one);
      return one.promise;
    },
  };
  const guard = new Guard({ tokens: { verify: (secret) => tokens.get(secret) }, clock, ...crowd });
  const handler = makeHandler({
    ...{ control: house.belay, guard, clock, version: "0" },
    audit: { note: async (note) => void audit.push(note), read: async () => ({ records: [] }) },
    metrics: {
      ...{ answered: () => {}, streams: () => {}, text: () => "" },
      acp: (count) => {
        open.count = count;
        waiting.get(count)?.resolve();
        waiting.delete(count);
      },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "belay-acp-"));
  const socket = join(folder, "s");
  const around = { clock: systemClock };
  const listener = await listen(handler.handle, { ...around, place: { kind: "tcp" } });
  const local = await listen(handler.handle, { ...around, place: { kind: "socket", path: socket } });
  if (listener.address.kind !== "tcp") throw new Error("a port was asked for");
  guard.serves(listener.address.served);
  return {
    ...house,
    ...{ tokens, clock, handler, port: listener.address.port, socket, listener, audit, open },
    close: async () => {
      await house.belay.close({ mode: "cancel" });
      // Nothing here takes until a limit, so the clock need not move.
      await handler.drain();
      await Promise.all([listener.close({ limitMs: 0 }), local.close({ limitMs: 0 })]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One end of a connection: asks, answers and keeps what it was told. */
export interface Talker {
  request(method: string, params: object): Promise<Answer>;
  notify(method: string, params: object): Promise<void>;
  /** Answers what it was asked. */
  reply(asked: AnyMessage, result: object): Promise<void>;
  /** All that came which was no answer, in order. */
  readonly told: AnyMessage[];
  /** Resolves when a message that fits has come. */
  heard(fits: (message: AnyMessage) => boolean): Promise<AnyMessage>;
  /** Resolves when the other side has ended it, however. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

export interface Answer {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export function talker(stream: Stream): Talker {
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  const open = new Map<unknown, (answer: Answer) => void>();
  const told: AnyMessage[] = [];
  const waiting = new Set<(message: AnyMessage) => void>();
  let asked = 0;
  const read = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (!("method" in value) && "id" in value) open.get(value.id)?.(value as Answer);
      else {
        told.push(value);
        for (const one of [...waiting]) one(value);
      }
    }
  };
  return {
    request: (method, params) => {
      asked += 1;
      const id = asked;
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      open.set(id, resolve);
      writer.write({ jsonrpc: "2.0", id, method, params }).catch(reject);
      return promise;
    },
    notify: (method, params) => writer.write({ jsonrpc: "2.0", method, params }),
    reply: (asked, result) => writer.write({ jsonrpc: "2.0", id: "id" in asked ? asked.id : null, result }),
    told,
    heard: (fits) => {
      const known = told.find(fits);
      if (known !== undefined) return Promise.resolve(known);
      return new Promise((resolve) => {
        const one = (message: AnyMessage): void => {
          if (!fits(message)) return;
          waiting.delete(one);
          resolve(message);
        };
        waiting.add(one);
      });
    },
    ended: read().catch(() => {}),
    close: () => writer.close().catch(() => {}),
  };
}

/** Says who it is, and opens a session. */
export async function enter(client: Talker, protocolVersion = 1): Promise<string> {
  const hello = await client.request("initialize", {
    protocolVersion,
    ...(protocolVersion === 1 ? { clientCapabilities: {} } : { capabilities: {}, info: { name: "t", version: "1" } }),
  });
  if (hello.result?.protocolVersion !== protocolVersion) throw new Error(`hello: ${JSON.stringify(hello)}`);
  return another(client);
}

/** A session more. */
export async function another(client: Talker): Promise<string> {
  const made = await client.request("session/new", { cwd: "/", mcpServers: [] });
  const id = made.result?.sessionId;
  if (typeof id !== "string") throw new Error(`no session: ${JSON.stringify(made)}`);
  return id;
}

export const prompt = (client: Talker, sessionId: string, text: string): Promise<Answer> =>
  client.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });

/** A bare WebSocket, for what the SDK's client would never do. Resolves when it is open. */
export function opened(socket: WebSocket): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket)).once("error", reject);
  });
}

/** How it was closed. */
export const closeOf = (socket: WebSocket): Promise<{ readonly code: number; readonly reason: string }> =>
  new Promise((resolve) => socket.once("close", (code, reason) => resolve({ code, reason: String(reason) })));

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

export interface Met {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Knock {
  readonly method: string;
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One request with these very headers, and how it was met; `101` if it has become something else. */
export function knock(port: number, { method, path = "/acp", headers, body }: Knock): Promise<Met> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, method, path, agent: false, headers });
    sent.once("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: 101, headers: response.headers, body: "" });
    });
    sent.once("response", (response) => {
      if (response.headers["content-type"]?.startsWith("text/event-stream") === true) {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: "" });
        sent.destroy();
        return;
      }
      Array.fromAsync(response.setEncoding("utf8")).then(
        (pieces) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: pieces.join("") }),
        reject,
      );
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

/** What a client sends that asks for a WebSocket. */
export const UPGRADE: Readonly<Record<string, string>> = {
  ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export { WebSocket };
