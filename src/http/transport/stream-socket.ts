// Sends an event stream as the messages of a WebSocket.
//
// Invariants
// 1. The next message is sent when the last one was transmitted: a socket that is not read buffers one.
// 2. A client that reads nothing, or answers no ping, is disconnected.
import type { Clock } from "../../ports/clock.ts";
import { DRAIN_MS, READER_STALL_MS, SOCKET_PING_MS } from "../limits.ts";
import { bye, FRAME_END, HEARTBEAT } from "./event-text.ts";
import type { MessageSocket, ResponseStream } from "./http-exchange.ts";

const DATA = "data: ";
const HEARTBEAT_FRAME = HEARTBEAT.slice(0, -FRAME_END.length);
const BYE = bye("").slice(0, "event: bye".length);

export interface SocketParts {
  readonly socket: MessageSocket;
  readonly events: ResponseStream;
  readonly clock: Clock;
  /** Handles a message. Throws if the message is invalid. */
  readonly receive: (text: string) => void;
}

/** Resolves when the socket has been closed, by either side. */
export async function streamToSocket({ socket, events, clock, receive }: SocketParts): Promise<void> {
  let isAlive = true;
  socket.on("message", (data, isBinary) => {
    isAlive = true;
    try {
      if (isBinary) throw new TypeError("messages are text");
      receive(String(data));
    } catch {
      socket.close(1007, "invalid");
      void events.return?.();
    }
  });
  socket.on("pong", () => {
    isAlive = true;
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => void events.return?.());
  let cancelPing = (): void => {};
  const check = (): void => {
    cancelPing = clock.after(
      SOCKET_PING_MS,
      () => {
        if (!isAlive) return socket.terminate();
        isAlive = false;
        if (socket.readyState === socket.OPEN) socket.ping();
        check();
      },
      "idle",
    );
  };
  check();
  let closeReason = { code: 1001, reason: "shutting_down" };
  for (let step = await events.next(); step.done !== true; step = await events.next()) {
    for (const frame of step.value.split(FRAME_END)) {
      if (frame.startsWith(DATA)) await send(frame.slice(DATA.length), socket, clock);
      else if (frame === HEARTBEAT_FRAME) await send('{"type":"heartbeat"}', socket, clock);
      else if (frame.startsWith(BYE)) closeReason = closeReasonOf(frame);
    }
  }
  cancelPing();
  if (socket.readyState === socket.OPEN) socket.close(closeReason.code, closeReason.reason);
  const cancelTermination = clock.after(DRAIN_MS, () => socket.terminate(), "idle");
  socket.on("close", cancelTermination);
}

/** Resolves when the message was transmitted. Terminates a socket that reads nothing. */
function send(text: string, socket: MessageSocket, clock: Clock): Promise<void> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve();
  return new Promise((resolve) => {
    const cancelTimer = clock.after(READER_STALL_MS, () => socket.terminate(), "idle");
    socket.send(text, () => {
      cancelTimer();
      resolve();
    });
  });
}

function closeReasonOf(frame: string): { readonly code: number; readonly reason: string } {
  const reason = /"reason":"([a-z_]+)"/.exec(frame)?.[1] ?? "internal";
  return { code: reason === "unauthenticated" ? 1008 : reason === "shutting_down" ? 1001 : 1011, reason };
}
