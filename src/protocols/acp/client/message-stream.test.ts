import { expect, test } from "vitest";
import { MessageStream } from "./message-stream.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const update = (text: string): string => JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { text } });

function stage(bytesMax = 1_000) {
  const told: unknown[] = [];
  const written: string[] = [];
  const write = async (line: string): Promise<void> => void written.push(line);
  const wire = new MessageStream({ write, onSessionUpdate: (params) => told.push(params), bytesMax });
  return { told, written, wire, reader: wire.stream.readable.getReader() };
}

test("messages are reassembled from any chunks", async () => {
  const { wire, reader } = stage();
  const line = `${JSON.stringify({ jsonrpc: "2.0", id: 1, result: "é\u2028" })}\n`;
  for (const byte of bytes(line)) wire.push(Uint8Array.of(byte));
  expect((await reader.read()).value).toEqual({ jsonrpc: "2.0", id: 1, result: "é\u2028" });
});

test("updates are handled in the tick in which they arrive, before the answer after them", () => {
  const { wire, told } = stage();
  wire.push(bytes(`${update("a")}\n${update("b")}\n{"jsonrpc":"2.0","id":1,"result":{}}\n`));
  expect(told).toEqual([{ text: "a" }, { text: "b" }]);
});

test("a line that is not a message is skipped, and the first one is remembered", async () => {
  const { wire, reader } = stage();
  wire.push(bytes('Welcome!\n\n[1]\n{}\n"x"\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":2,"result":1}\n'));
  expect((await reader.read()).value).toEqual({ jsonrpc: "2.0", id: 2, result: 1 });
  expect(wire.strayLine).toBe("Welcome!");
});

test("G33: a line that is too long ends the stream, and is not buffered", async () => {
  const { wire, reader, told } = stage(100);
  wire.push(bytes("x".repeat(200)));
  await expect(reader.read()).rejects.toThrow("a line of more than 100 bytes");
  wire.push(bytes(`\n${update("late")}\n`));
  wire.end();
  expect(told).toEqual([]);
});

test("the end follows all messages, including a last line without a line break", async () => {
  const { wire, reader } = stage();
  wire.push(bytes('{"jsonrpc":"2.0","id":3,"result":1}'));
  wire.end();
  wire.end();
  expect((await reader.read()).value).toEqual({ jsonrpc: "2.0", id: 3, result: 1 });
  expect((await reader.read()).done).toBe(true);
});

test("each message is written as one line", async () => {
  const { wire, written } = stage();
  const writer = wire.stream.writable.getWriter();
  await writer.write({ jsonrpc: "2.0", method: "session/cancel", params: { text: "a\nb" } });
  expect(written).toEqual(['{"jsonrpc":"2.0","method":"session/cancel","params":{"text":"a\\nb"}}\n']);
});
