import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type SseMessage, SseParser } from "./sse-parser.ts";

/** The algorithm of the specification, step by step, on the whole text at once. Slow, and easy to verify by reading. */
function reference(bytes: Uint8Array): { messages: SseMessage[]; lastEventId: string; retryMs: number | undefined } {
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/);
  // Text after the last line end is not a line yet.
  lines.pop();
  const messages: SseMessage[] = [];
  let [data, event, id, lastEventId] = ["", "", "", ""];
  let retryMs: number | undefined;
  for (const line of lines) {
    const [, name = "", value = ""] = /^([^:]*):? ?([\s\S]*)$/.exec(line) ?? [];
    if (line === "") {
      lastEventId = id;
      if (data !== "") messages.push({ event: event || "message", data: data.slice(0, -1), lastEventId });
      data = "";
      event = "";
    } else if (line.startsWith(":")) {
    } else if (name === "data") data += `${value}\n`;
    else if (name === "event") event = value;
    else if (name === "id" && !value.includes("\0")) id = value;
    else if (name === "retry" && /^\d+$/.test(value)) retryMs = Number(value);
  }
  return { messages, lastEventId, retryMs };
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function parse(...pieces: readonly (string | Uint8Array)[]): readonly SseMessage[] {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(typeof piece === "string" ? utf8(piece) : piece));
}

const message = (data: string, event = "message", lastEventId = ""): SseMessage => ({ event, data, lastEventId });

describe("the format", () => {
  test("lines end in CR, LF or CRLF, even mixed in one stream", () => {
    expect(parse("data: a\r\rdata: b\n\ndata: c\r\n\r\ndata: d\r\n\n")).toEqual(
      ["a", "b", "c", "d"].map((x) => message(x)),
    );
  });

  test("several data lines are joined with line feeds", () => {
    expect(parse("data: a\ndata:\ndata:b\n\n")).toEqual([message("a\n\nb")]);
  });

  test("a data line without a value makes an event, and no data line makes none", () => {
    expect(parse("data\n\ndata\ndata\n\nevent: x\n\ndata:")).toEqual([message(""), message("\n")]);
  });

  test("only one space after the colon is removed, and a comment is ignored", () => {
    expect(parse(":\n: hello\ndata:  a\n\n:data: b\n\n")).toEqual([message(" a")]);
  });

  test("an id applies to all later events, even if it arrived without data", () => {
    expect(parse("id: 7\n\ndata: a\n\nid: 8\ndata: b\n\nid\ndata: c\n\n")).toEqual([
      message("a", "message", "7"),
      message("b", "message", "8"),
      message("c", "message", ""),
    ]);
  });

  test("an id with a NUL, a retry that is not a number and an unknown field are ignored", () => {
    const parser = new SseParser();
    expect(parser.push(utf8("id: 1\0\nretry: 1s\nretry:\nother: x\nDATA: y\ndata: a\n\n"))).toEqual([message("a")]);
    expect(parser.retryMs).toBeUndefined();
    parser.push(utf8("retry: 1000\n"));
    expect(parser.retryMs).toBe(1000);
  });

  test("one byte order mark at the beginning is removed, even if it is split; a second one is not", () => {
    expect(parse(new Uint8Array([0xef]), new Uint8Array([0xbb, 0xbf]), "data: a\n\n")).toEqual([message("a")]);
    expect(parse("\uFEFF\uFEFFdata: a\n\n")).toEqual([]);
  });

  test("an event that was cut off before its blank line does not exist", () => {
    expect(parse("data: a\n\ndata: b\n")).toEqual([message("a")]);
  });

  test("the name of an event applies to that event only", () => {
    expect(parse("event: x\ndata: a\n\ndata: b\n\n")).toEqual([message("a", "x"), message("b")]);
  });
});

describe("bounds", () => {
  test("a line that never ends is refused, and so is an event that never ends", () => {
    const line = new SseParser(100);
    expect(() => {
      for (let count = 0; count < 100; count += 1) line.push(utf8("data: xx"));
    }).toThrow(/more than 100 characters/);
    const event = new SseParser(100);
    expect(() => {
      for (let count = 0; count < 100; count += 1) event.push(utf8("data: xx\n"));
    }).toThrow(/more than 100 characters/);
  });

  test("a long stream of small events is not refused", () => {
    const parser = new SseParser(100);
    for (let count = 0; count < 1000; count += 1) expect(parser.push(utf8("id: 1\ndata: xx\n\n"))).toHaveLength(1);
  });
});

test("50,000 streams, split anywhere, are parsed as the specification's algorithm does", () => {
  const token = fc.constantFrom(
    ...["data", "event", "id", "retry", ":", ": ", " ", "\r", "\n", "\r\n", "\n\n", "\r\n\r\n", "\0", "\uFEFF"],
    ...["a", "7", "1000", "é", "€", "😀", "data: x\n\n", "id: 5\n", "event: e\r", "\u2028", "\ud800"],
  );
  const piece = fc.oneof(
    { weight: 9, arbitrary: token.map(utf8) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }) },
  );
  const stream = fc.record({
    pieces: fc.array(piece, { maxLength: 24 }),
    cuts: fc.array(fc.nat(60), { maxLength: 12 }),
  });
  fc.assert(
    fc.property(stream, ({ pieces, cuts }) => {
      const whole = Uint8Array.from(pieces.flatMap((one) => [...one]));
      const places = [...new Set(cuts)].filter((cut) => cut < whole.length).toSorted((one, other) => one - other);
      const parser = new SseParser();
      const messages = [0, ...places].flatMap((from, index) => parser.push(whole.subarray(from, places[index])));
      const { lastEventId, retryMs } = parser;
      expect({ messages, lastEventId, retryMs }).toEqual(reference(whole));
    }),
    { numRuns: 50_000, seed: 5 },
  );
}, 60_000);
