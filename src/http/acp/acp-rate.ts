// The rate limit of a token for ACP, where each message counts as one change.
//
// Invariants
// 1. Stops are never limited and do not count.
// 2. A refused request is answered once, and not passed on.
// 3. Responses to unknown requests are discarded: the SDK would print their id, whatever it contains.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { loopTurn } from "../../protocols/acp/agent/loop-turn.ts";
import { rpcError } from "../../protocols/acp/agent/rpc-error.ts";
import type { Denial } from "../auth/guard-denial.ts";
import { ACP_ASKED_MAX } from "../limits.ts";

export interface RateLimitedStream {
  readonly stream: Stream;
  /** Resolves when all messages are written, including those that follow from them in the same turn. */
  readonly flushed: () => Promise<void>;
  /** Stops reading from the stream. */
  readonly end: () => void;
}

/** Limits the changes on a stream. `denialOf` is called for each change; undefined admits it. */
export function limitRate(stream: Stream, denialOf: () => Denial | undefined): RateLimitedStream {
  const reader = stream.readable.getReader();
  const writer = stream.writable.getWriter();
  /** Requests of the server that the client has not answered. */
  const sent = new Set<unknown>();
  let end = (): void => {};
  let hasEnded = false;
  const readable = new ReadableStream<AnyMessage>(
    {
      start(controller) {
        end = () => {
          if (hasEnded) return;
          hasEnded = true;
          controller.close();
        };
      },
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read();
          if (done || hasEnded) {
            end();
            return;
          }
          if (isResponse(value) && !sent.delete(value.id)) continue;
          const id = changeOf(value);
          const denial = id === undefined ? undefined : denialOf();
          if (denial === undefined) {
            controller.enqueue(value);
            return;
          }
          // Awaited for backpressure: nothing more is read from a client that does not read its errors.
          await writer.write(errorTo(id ?? null, denial));
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  let writes = 0;
  let last: Promise<unknown> = Promise.resolve();
  const flushed = async (): Promise<void> => {
    for (let seen = -1; seen !== writes; ) {
      seen = writes;
      await last.catch(() => {});
      // A writer that waited for this write sends its next message within this turn of the event loop.
      await loopTurn();
    }
  };
  const writable = new WritableStream<AnyMessage>({
    write: (message) => {
      writes += 1;
      if ("method" in message && "id" in message) addBounded(sent, message.id);
      last = writer.write(message);
      return last.then(() => {});
    },
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
  return { stream: { readable, writable }, flushed, end: () => end() };
}

const isResponse = (message: AnyMessage): message is Extract<AnyMessage, { id: unknown }> =>
  !("method" in message) && "id" in message;

/** Removes the oldest id beyond the maximum: a withdrawn request may never be answered. */
function addBounded(sent: Set<unknown>, id: unknown): void {
  sent.add(id);
  const [oldest] = sent;
  if (sent.size > ACP_ASKED_MAX) sent.delete(oldest);
}

type Id = string | number;

/** The id of a request that counts. Notifications and responses do not: they can only stop something, or decide. */
function changeOf(message: AnyMessage): Id | undefined {
  if (!("method" in message) || !("id" in message) || message.id === null) return undefined;
  return READS.has(message.method) || isStop(message.method) ? undefined : message.id;
}

const READS: ReadonlySet<string> = new Set(["initialize", "authenticate", "session/list"]);

/** In every version of the protocol, with any prefix. */
const isStop = (method: string): boolean => /\/(cancel|cancel_tool_call|close|delete)$/.test(method);

function errorTo(id: Id | null, denial: Denial): AnyMessage {
  const { code, message, data } = rpcError(denial);
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}
