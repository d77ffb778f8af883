import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { Gate } from "../../../testing/gate.ts";
import { inOrder } from "./acp-agent.ts";

const message = (id: number): AnyMessage => ({ jsonrpc: "2.0", id, method: "m", params: {} });

function wired(atEnd: () => Promise<void> = async () => {}) {
  const up = new TransformStream<AnyMessage, AnyMessage>(
    {},
    undefined,
    new CountQueuingStrategy({ highWaterMark: 16 }),
  );
  const down = new TransformStream<AnyMessage, AnyMessage>();
  const stream: Stream = inOrder({ readable: up.readable, writable: down.writable }, atEnd);
  return { writer: up.writable.getWriter(), reader: stream.readable.getReader(), stream, down };
}

test("the work of a message has started before the next one is delivered", async () => {
  const { writer, reader } = wired();
  for (const id of [1, 2, 3]) void writer.write(message(id));
  const order: string[] = [];
  for (let left = 3; left > 0; left -= 1) {
    const { value } = await reader.read();
    const id = value !== undefined && "id" in value ? value.id : undefined;
    order.push(`arrived ${id}`);
    // As deep as a list of awaited handlers.
    void (async () => {
      for (let deep = 0; deep < 30; deep += 1) await null;
      order.push(`handled ${id}`);
    })();
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([1, 2, 3].flatMap((id) => [`arrived ${id}`, `handled ${id}`]));
});

test("the end of the input waits for `atEnd`, and answers are still sent until then", async () => {
  const gate = new Gate();
  const { writer, reader, stream, down } = wired(() => gate.opened);
  await writer.close();
  let over = false;
  const end = reader.read().then(({ done }) => {
    over = done;
  });
  const answers = down.readable.getReader();
  const out = stream.writable.getWriter();
  void out.write(message(7));
  expect((await answers.read()).value).toEqual(message(7));
  expect(over).toBe(false);
  gate.open();
  await end;
  expect(over).toBe(true);
});

test("a broken input calls `atEnd` too, and stays broken", async () => {
  let ended = 0;
  const { writer, reader } = wired(async () => {
    ended += 1;
  });
  const broken = reader.read();
  await writer.abort(new Error("it broke")).catch(() => {});
  await expect(broken).rejects.toThrow("it broke");
  expect(ended).toBe(1);
});
