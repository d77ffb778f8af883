// A stream of events as the messages of a WebSocket.
//
// Invariants
// 1. The next message is taken when the last one has left: a socket that is not read holds one.
// 2. One that takes nothing, or gives no sign of life, is let go.
import type { Clock } from "../../ports/clock.ts";
import { DRAIN_MS, READER_STALL_MS, SOCKET_PING_MS } from "../limits.ts";
import { bye, FRAME_END, HEARTBEAT } from "./event-text.ts";
import type { MessageSocket, ResponseStream } from "./http-exchange.ts";

const DATA = "data: ";
const BEAT = HEARTBEAT.slice(0, -FRAME_END.length);
const BYE = bye("").slice(0, "event: bye".length);

export interface SocketParts {
  readonly socket: MessageSocket;
  readonly events: ResponseStream;
  readonly clock: Clock;
  /** Throws if it cannot be right. */
  readonly receive: (text: string) => void;
}

/** Resolves when the socket has been closed, by either side. */
export async function streamToSocket({ socket, events, clock, receive }: SocketParts): Promise<void> {
  let alive = true;
  socket.on("message", (data, isBinary) => {
    alive = true;
    try {
      if (isBinary) throw new TypeError("messages are text");
      receive(String(data));
    } catch {
      socket.close(1007, "invalid");
      void events.return?.();
    }
  });
  socket.on("pong", () => {
    alive = true;
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => void events.return?.());
  let disarm = (): void => {};
  const check = (): void => {
    disarm = clock.after(
      SOCKET_PING_MS,
      () => {
        if (!alive) return socket.terminate();
        alive = false;
        if (socket.readyState === socket.OPEN) socket.ping();
        check();
      },
      "idle",
    );
  };
  check();
  let parting = { code: 1001, reason: "shutting_down" };
  for (let step = await events.next(); step.done !== true; step = await events.next()) {
    for (const frame of step.value.split(FRAME_END)) {
      if (frame.startsWith(DATA)) await sent(frame.slice(DATA.length), socket, clock);
      else if (frame === BEAT) await sent('{"type":"heartbeat"}', socket, clock);
      else if (frame.startsWith(BYE)) parting = closeReasonOf(frame);
    }
  }
  disarm();
  if (socket.readyState === socket.OPEN) socket.close(parting.code, parting.reason);
  const give = clock.after(DRAIN_MS, () => socket.terminate(), "idle");
  socket.on("close", give);
}

function sent(text: string, socket: MessageSocket, clock: Clock): Promise<void> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve();
  return new Promise((resolve) => {
    const disarm = clock.after(READER_STALL_MS, () => socket.terminate(), "idle");
    socket.send(text, () => {
      disarm();
      resolve();
    });
  });
}

function closeReasonOf(frame: string): { readonly code: number; readonly reason: string } {
  const reason = /"reason":"([a-z_]+)"/.exec(frame)?.[1] ?? "internal";
  return { code: reason === "unauthenticated" ? 1008 : reason === "shutting_down" ? 1001 : 1011, reason };
}
