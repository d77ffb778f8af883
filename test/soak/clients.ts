// Whoever is around while the work is done: followers who stay, leave or do not read, editors, and strangers.
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { dirname } from "node:path";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { prompt as acpPrompt, bearer, talker } from "../fixtures/acp-server.ts";
import type { ActionContext, ActionState } from "./actions.ts";

/** Reads everything of a session from its beginning until it is told to leave, and checks that nothing is missing. */
export function stayingFollower({ session, tally }: ActionState): () => Promise<void> {
  const leaving = new AbortController();
  const reading = (async () => {
    let next: number | undefined;
    for await (const heard of session.events({ signal: leaving.signal })) {
      if (heard.type === "gap") next = heard.to + 1;
      else if ("seq" in heard) {
        if (next !== undefined && heard.seq !== next) tally.wrong.push(`event ${heard.seq} came where ${next} belongs`);
        next = heard.seq + 1;
      }
    }
  })().catch(() => {});
  return async () => {
    leaving.abort();
    await reading;
  };
}

/** Reads a few and goes without a word. */
export async function passingFollower({ session }: ActionState): Promise<void> {
  let heard = 0;
  for await (const one of session.events()) {
    void one;
    heard += 1;
    if (heard >= 2) break;
  }
}

/** Watches the whole house, until it is told to leave. */
export function watcher({ doors, tally }: ActionContext): { readonly heard: () => number; leave(): Promise<void> } {
  const leaving = new AbortController();
  let heard = 0;
  const watching = (async () => {
    for await (const told of doors.cuttable.events({ signal: leaving.signal })) heard += told.type === "event" ? 1 : 0;
  })().catch((error: unknown) => {
    if (!leaving.signal.aborted) tally.wrong.push(`a watcher was turned away: ${String(error)}`);
  });
  return {
    heard: () => heard,
    leave: async () => {
      leaving.abort();
      await watching;
    },
  };
}

/** Asks for everything of a session and reads nothing of it. */
export async function deafFollower({ server, session }: ActionState): Promise<() => void> {
  const asked = request(`${server.note.url}/v1/sessions/${session.id}/events`, {
    headers: { authorization: `Bearer ${server.token}`, accept: "text/event-stream" },
    agent: false,
  });
  asked.on("error", () => {});
  asked.end();
  const [answer] = (await once(asked, "response")) as [NodeJS.ReadableStream];
  answer.on("error", () => {});
  answer.pause();
  return () => asked.destroy();
}

/** An editor: a session, a prompt that ends, one that is cancelled, and then it is gone, with or without a word. */
export async function editor({ server, chance, tally }: ActionContext): Promise<void> {
  const { url, socket } = server.note;
  const address = `${url.replace(/^http/, "ws")}/acp`;
  const client = talker(createWebSocketStream(address, { WebSocket, headers: bearer(server.token) }));
  await client.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { result } = await client.request("session/new", { cwd: dirname(socket), mcpServers: [] });
  const sessionId = String(result?.sessionId);
  tally.sessions += 1;
  tally.runs += 2;
  await acpPrompt(client, sessionId, "say 20");
  const waiting = acpPrompt(client, sessionId, "wait");
  tally.cancels += 1;
  await client.notify("session/cancel", { sessionId });
  await waiting;
  if (chance.below(2) === 0) await client.request("session/close", { sessionId });
  await client.close();
  await client.ended;
}

/** Somebody who sends half a request, or nonsense, or nothing. */
export async function stranger({ server, chance }: ActionContext): Promise<() => void> {
  const { hostname, port } = new URL(server.note.url);
  const socket: Socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(
    chance.pick(["GET /v1/sta", "POST /v1/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n", "\0\0\0\0\r\n\r\n", ""]),
  );
  return () => socket.destroy();
}
