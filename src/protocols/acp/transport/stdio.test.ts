import { PassThrough, Writable } from "node:stream";
import type { AnyMessage } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { settled } from "../../../testing/manual-clock.ts";
import { editorLine, MESSAGE_BYTES_MAX } from "./stdio.ts";

const line = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;

function stage() {
  const input = new PassThrough();
  const written: string[] = [];
  const output = new Writable({
    write: (piece, _encoding, done) => {
      written.push(String(piece));
      done();
    },
  });
  const editor = editorLine(input, output);
  return { input, output, written, editor, reader: editor.stream.readable.getReader() };
}

test("an input closed by Belay ends the stream cleanly, and the output stays open", async () => {
  const { input, editor, reader, written } = stage();
  input.write(line({ id: 1, method: "initialize" }));
  expect((await reader.read()).value).toMatchObject({ method: "initialize" });
  editor.hangUp();
  expect((await reader.read()).done).toBe(true);
  await editor.ended;
  const writer = editor.stream.writable.getWriter();
  await writer.write({ jsonrpc: "2.0", id: 1, result: {} } satisfies AnyMessage);
  expect(written).toEqual([line({ id: 1, result: {} })]);
});

test("F10: a closed output ends the input too", async () => {
  const { output, editor, reader } = stage();
  output.destroy(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  await editor.ended;
  expect((await reader.read()).done).toBe(true);
  // Code that is shutting down may still write.
  await editor.stream.writable.getWriter().write({ jsonrpc: "2.0", id: 1, result: {} });
});

test("`answered` waits for all requests in any order, except prompts", async () => {
  const { input, editor, reader } = stage();
  for (const [id, method] of [
    [1, "session/new"],
    ["1", "session/list"],
    [2, "session/prompt"],
  ] as const) {
    input.write(line({ id, method }));
    await reader.read();
  }
  input.write(line({ method: "session/cancel" }));
  await reader.read();
  let answered = false;
  const waiting = editor.answered().then(() => {
    answered = true;
  });
  const writer = editor.stream.writable.getWriter();
  // The same number as a text is another request; and a request from Belay is not an answer.
  await writer.write({ jsonrpc: "2.0", id: "1", result: {} });
  await writer.write({ jsonrpc: "2.0", id: 1, method: "session/request_permission", params: {} });
  expect(answered).toBe(false);
  await writer.write({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "no" } });
  await waiting;
});

test("F13: backpressure pauses the input while messages are not taken", async () => {
  const { input, reader } = stage();
  const text = line({ method: "session/cancel", params: { sessionId: "x".repeat(1_000) } });
  // Each in its own chunk, as an editor writes them.
  for (let sent = 0; sent < 200; sent += 1) input.write(text);
  await settled();
  expect(input.isPaused()).toBe(true);
  expect(input.readableLength + input.writableLength).toBeGreaterThan(150 * text.length);
  for (let read = 0; read < 200; read += 1) expect((await reader.read()).done).toBe(false);
  input.end();
  expect((await reader.read()).done).toBe(true);
});

test("F13: a message is written when the previous one has been taken", {
  meta: { id: "acp/stdout-backpressure" },
}, async () => {
  const input = new PassThrough();
  const taken: (() => void)[] = [];
  const output = new Writable({ write: (_piece, _encoding, done) => void taken.push(done) });
  const writer = editorLine(input, output).stream.writable.getWriter();
  let second = false;
  void writer.write({ jsonrpc: "2.0", id: 1, result: {} });
  const written = writer.write({ jsonrpc: "2.0", id: 2, result: {} }).then(() => {
    second = true;
  });
  await settled();
  expect([taken.length, second]).toEqual([1, false]);
  taken[0]?.();
  await settled();
  taken[1]?.();
  await written;
});

test.each([
  ["not JSON", "{\n", -32_700],
  ["a batch", "[]\n", -32_600],
  ["a number", "7\n", -32_600],
  ["longer than a message may be", `"${"x".repeat(MESSAGE_BYTES_MAX)}"\n`, -32_600],
])("a line that is %s gets one error, and the next is read", async (_, text, code) => {
  const { input, reader, written } = stage();
  input.write(text);
  input.write(`\n${line({ method: "session/cancel" })}`);
  expect((await reader.read()).value).toMatchObject({ method: "session/cancel" });
  expect(written.map((one) => JSON.parse(one))).toMatchObject([{ jsonrpc: "2.0", id: null, error: { code } }]);
});

test("F13: an editor that sends malformed lines and does not read the errors is not read from", async () => {
  const input = new PassThrough();
  const taken: (() => void)[] = [];
  const output = new Writable({ write: (_piece, _encoding, done) => void taken.push(done) });
  const reader = editorLine(input, output).stream.readable.getReader();
  const next = reader.read();
  input.write("{\n");
  await settled();
  expect([taken.length, input.isPaused()]).toEqual([1, true]);
  input.write(line({ method: "session/cancel" }));
  taken[0]?.();
  expect((await next).value).toMatchObject({ method: "session/cancel" });
});

test("a character split over two chunks is one character", async () => {
  const { input, reader } = stage();
  const bytes = Buffer.from(line({ method: "né €😀" }));
  for (const byte of bytes) input.write(Buffer.from([byte]));
  expect((await reader.read()).value).toMatchObject({ method: "né €😀" });
});

test("a message that is not UTF-8 is refused, without replacement characters", async () => {
  const { input, written, reader } = stage();
  input.write(
    Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"a\xff'.slice(0, -1)),
      Buffer.from([0xff]),
      Buffer.from('"}\n'),
    ]),
  );
  input.write(line({ id: 2, method: "after" }));
  expect((await reader.read()).value).toMatchObject({ method: "after" });
  expect(written.join("")).toContain('"code":-32700');
});
