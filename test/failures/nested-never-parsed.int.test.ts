// C4, J3: a megabyte of nothing but brackets takes a parser a second, and nobody's stop is heard meanwhile. So no way
// in parses it: each refuses it by looking at the text, and the next one is heard.
import { PassThrough, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { slots } from "../../src/agent/loop/slots.ts";
import { tool } from "../../src/agent/tools/tool.ts";
import { toolSet } from "../../src/agent/tools/tool-set.ts";
import { checkBody } from "../../src/http/routes/check-request.ts";
import { MessageStream } from "../../src/protocols/acp/client/message-stream.ts";
import { editorLine } from "../../src/protocols/acp/transport/stdio.ts";
import { decode } from "../../src/protocols/bridge/message.ts";
import { bearer, closeOf, knock, opened, openTestAcpServer, WebSocket } from "../fixtures/acp-server.ts";

const DEEP = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const MESSAGE = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${DEEP}}`;

/** What was given to the parser, as long as that is a text of this kind. */
const parsed: number[] = [];

beforeEach(() => {
  parsed.length = 0;
  const { parse } = JSON;
  vi.spyOn(JSON, "parse").mockImplementation((text, reviver) => {
    if (text.includes("[".repeat(1_000))) parsed.push(text.length);
    return parse(text, reviver);
  });
});
afterEach(() => expect(parsed).toEqual([]));

describe("is not parsed, and refused", { meta: { id: "json/deep-nesting-never-parsed" } }, () => {
  test("as the body of a request", () => {
    expect(() => checkBody(z.unknown(), `{"prompt":${DEEP}}`)).toThrow("nested deeper than 64 levels");
    expect(checkBody(z.unknown(), '{"prompt":[]}')).toEqual({ prompt: [] });
  });

  test("as a message of ACP, over HTTP or a WebSocket", async () => {
    const house = await openTestAcpServer();
    try {
      const headers = { "content-type": "application/json", ...bearer("ann") };
      const overHttp = await knock(house.port, { method: "POST", headers, body: MESSAGE });
      expect([overHttp.status, overHttp.body.includes('"invalid"')]).toEqual([400, true]);
      const socket = await opened(new WebSocket(`ws://127.0.0.1:${house.port}/acp`, { headers: bearer("ann") }));
      const closed = closeOf(socket);
      socket.send(MESSAGE);
      expect(await closed).toEqual({ code: 1007, reason: "nested too deeply" });
    } finally {
      await house.close();
    }
  });

  test("as a line to the bridge", () => {
    expect(decode(Buffer.from(MESSAGE))).toMatchObject({ kind: "faulty", error: { code: -32600 } });
    expect(decode(Buffer.from('{"jsonrpc":"2.0","id":2,"method":"ping"}'))).toMatchObject({ kind: "request" });
  });

  test("as a line of an editor, which gets an error; its next line is processed", async () => {
    const input = new PassThrough();
    const written: string[] = [];
    const output = new Writable({ write: (piece, _, done) => done(void written.push(String(piece))) });
    const reader = editorLine(input, output).stream.readable.getReader();
    input.write(`${MESSAGE}\n{"jsonrpc":"2.0","id":2,"method":"initialize"}\n`);
    expect((await reader.read()).value).toMatchObject({ id: 2 });
    expect(written.join("")).toContain("A message has at most 256 levels.");
  });

  test("as a line of a foreign agent, which is passed over", async () => {
    const wire = new MessageStream({ write: async () => {}, onSessionUpdate: () => {} });
    wire.push(Buffer.from(`${MESSAGE}\n{"jsonrpc":"2.0","id":2,"result":1}\n`));
    expect((await wire.stream.readable.getReader().read()).value).toMatchObject({ id: 2 });
    expect(wire.strayLine).toContain("initialize");
  });

  test("as the input of a call, which fails in words that a model can read", async () => {
    const list = tool({ description: "Lists.", input: { jsonSchema: {} }, execute: () => expect.unreachable() });
    const asked = await toolSet({ list }).request({ name: "list", input: DEEP, provider: { id: "1" } }, slots(1));
    await expect((async () => asked.execute(undefined as never))()).rejects.toThrow("nested deeper than 64 levels");
  });
});
