// The rate of a token, where changes do not come as one request each: one message over ACP is one.
//
// Invariants
// 1. What stops something is never held back, and takes nothing from what else may be asked.
// 2. A request that is refused is answered once. It has not gone any further.
// 3. An answer to what was not asked goes nowhere. The SDK would print the id it names, whatever it is.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { loopTurn } from "../../protocols/acp/agent/loop-turn.ts";
import { rpcError } from "../../protocols/acp/agent/rpc-error.ts";
import type { Denial } from "../auth/guard-denial.ts";
import { ACP_ASKED_MAX } from "../limits.ts";

export interface Rated {
  readonly stream: Stream;
  /** Resolves when nothing is on its way out any more, nor comes after it. */
  readonly quiet: () => Promise<void>;
  /** Nothing more is read from it. */
  readonly end: () => void;
}

/** `refused` is asked for each change: undefined lets it through. */
export function rated(stream: Stream, refused: () => Denial | undefined): Rated {
  const reader = stream.readable.getReader();
  const writer = stream.writable.getWriter();
  const asked = new Set<unknown>();
  let end = (): void => {};
  let over = false;
  const readable = new ReadableStream<AnyMessage>(
    {
      start(controller) {
        end = () => {
          if (over) return;
          over = true;
          controller.close();
        };
      },
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read();
          if (done || over) {
            end();
            return;
          }
          if (isAnswer(value) && !asked.delete(value.id)) continue;
          const id = changeOf(value);
          const denial = id === undefined ? undefined : refused();
          if (denial === undefined) {
            controller.enqueue(value);
            return;
          }
          // Awaited: whoever does not read what they are told is not read from, either.
          await writer.write(answer(id ?? null, denial));
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  let writes = 0;
  let last: Promise<unknown> = Promise.resolve();
  const quiet = async (): Promise<void> => {
    for (let seen = -1; seen !== writes; ) {
      seen = writes;
      await last.catch(() => {});
      // Whoever waited for that to be taken says what comes next within this turn.
      await loopTurn();
    }
  };
  const writable = new WritableStream<AnyMessage>({
    write: (message) => {
      writes += 1;
      if ("method" in message && "id" in message) note(asked, message.id);
      last = writer.write(message);
      return last.then(() => {});
    },
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
  return { stream: { readable, writable }, quiet, end: () => end() };
}

const isAnswer = (message: AnyMessage): message is Extract<AnyMessage, { id: unknown }> =>
  !("method" in message) && "id" in message;

/** What was asked and taken back may never be answered, so the oldest are forgotten. */
function note(asked: Set<unknown>, id: unknown): void {
  asked.add(id);
  const [oldest] = asked;
  if (asked.size > ACP_ASKED_MAX) asked.delete(oldest);
}

type Id = string | number;

/** The id of a request that counts. Notifications and answers do not: what they can do here is stop, and decide. */
function changeOf(message: AnyMessage): Id | undefined {
  if (!("method" in message) || !("id" in message) || message.id === null) return undefined;
  return READS.has(message.method) || isStop(message.method) ? undefined : message.id;
}

const READS: ReadonlySet<string> = new Set(["initialize", "authenticate", "session/list"]);

/** In every version, and with every prefix. */
const isStop = (method: string): boolean => /\/(cancel|cancel_tool_call|close|delete)$/.test(method);

function answer(id: Id | null, denial: Denial): AnyMessage {
  const { code, message, data } = rpcError(denial);
  return { jsonrpc: "2.0", id, error: { code, message, data } };
}
