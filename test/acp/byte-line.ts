// An in-memory connection over byte streams, like a pipe, with the agent at one end.
import { ndJsonStream, type Stream } from "@agentclientprotocol/sdk";
import type { AcpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";

/** The client's end of a connection. */
export interface Line {
  readonly stream: Stream;
  /** Disconnects the client. Resolves when the agent has noticed, if that can be known. */
  drop(): Promise<void>;
}

export interface Bytes extends Line {
  /** Resolves when the agent has closed it. */
  readonly closed: Promise<void>;
  /** A connection to which the client writes bytes instead of messages. */
  readonly write: (bytes: Uint8Array | string) => Promise<void>;
}

export function inMemory(acp: Pick<AcpAgent, "connect">): Bytes {
  const up = new TransformStream<Uint8Array, Uint8Array>({}, ROOMY, ROOMY);
  const down = new TransformStream<Uint8Array, Uint8Array>({}, ROOMY, ROOMY);
  const connection = acp.connect(ndJsonStream(down.writable, up.readable, { maxMessageBytes: MESSAGE_BYTES_MAX }));
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
    closed: connection.closed,
    drop: async () => {
      await up.writable.close();
      await connection.closed;
    },
  };
}

/** Smaller than in production, so that its test is quick. */
export const MESSAGE_BYTES_MAX = 1024 * 1024;

/**
 * Buffers some data, like a pipe of the operating system, so that a writer does not wait for the reader at each
 * message.
 */
const ROOMY = new CountQueuingStrategy({ highWaterMark: 64 });
