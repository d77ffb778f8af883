// The way in: messages reach their handlers one after the other, in the order in which they arrived.
//
// Invariants
// 1. A handler has been entered before the next message is handed on. The SDK walks a list of handlers and awaits each,
//    so that a cancel would otherwise overtake the prompt before it, depending on how far down its handler stands.
// 2. When the input ends, what has to be brought to an end comes first. Until then answers still go out.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { loopTurn } from "./loop-turn.ts";

export function inOrder(stream: Stream, atEnd: () => Promise<void>): Stream {
  const reader = stream.readable.getReader();
  const readable = new ReadableStream<AnyMessage>(
    {
      async pull(controller) {
        const next = await reader.read().catch((error: unknown) => ({ error }));
        // What awaits between arrival and handler only awaits promises, and those are all done by the next turn. The
        // end waits for them too: a prompt that came with it is among what has to be brought to an end.
        await loopTurn();
        if ("value" in next && next.value !== undefined) {
          controller.enqueue(next.value);
          return;
        }
        await atEnd();
        if ("error" in next) controller.error(next.error);
        else controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read ahead: what is read has been handed on.
    { highWaterMark: 0 },
  );
  return { readable, writable: stream.writable };
}
