// A connection in memory, by way of bytes: like a pipe, with the agent's side at one end.
import { ndJsonStream, type Stream } from "@agentclientprotocol/sdk";
import type { AcpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";

/** One connection, at the client's end. */
export interface Line {
  readonly stream: Stream;
  /** The client is gone. Resolves when the other side has noticed, where one can know. */
  drop(): Promise<void>;
}

export interface Bytes extends Line {
  /** Resolves when the agent's side has ended it. */
  readonly closed: Promise<void>;
  /** What the client writes is bytes, not messages. */
  readonly write: (bytes: Uint8Array | string) => Promise<void>;
}

export function inMemory(door: Pick<AcpAgent, "connect">): Bytes {
  const up = new TransformStream<Uint8Array, Uint8Array>({}, ROOMY, ROOMY);
  const down = new TransformStream<Uint8Array, Uint8Array>({}, ROOMY, ROOMY);
  const guest = door.connect(ndJsonStream(down.writable, up.readable, { maxMessageBytes: MESSAGE_BYTES_MAX }));
  const write = async (bytes: Uint8Array | string): Promise<void> => {
    const writer = up.writable.getWriter();
    try {
      await writer.write(typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
    } finally {
      writer.releaseLock();
    }
  };
  const stream = ndJsonStream(up.writable, down.readable);
  return {
    stream,
    write,
    closed: guest.closed,
    drop: async () => {
      await up.writable.close();
      await guest.closed;
    },
  };
}

/** Less than anybody has in earnest, so that a test of it is quick. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;

/** Like a pipe of the operating system, it holds some: nobody waits for a reader at each message. */
const ROOMY = new CountQueuingStrategy({ highWaterMark: 64 });
