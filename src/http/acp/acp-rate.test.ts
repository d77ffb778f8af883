// The rate limit for ACP messages: which ones count, which are exempt, and how refused ones are answered.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { Denial } from "../auth/guard-denial.ts";
import { limitRate, type RateLimitedStream } from "./acp-rate.ts";

const rateLimited = new Denial(429, "overloaded", "Too fast.");

interface Ends {
  readonly input: WritableStreamDefaultWriter<AnyMessage>;
  readonly output: ReadableStreamDefaultReader<AnyMessage>;
  readonly inside: ReadableStreamDefaultReader<AnyMessage>;
  readonly limited: RateLimitedStream;
}

/** Both ends of a stream that admits `allowed` changes. */
function ends(allowed: number): Ends {
  const [inward, outward] = [new TransformStream<AnyMessage>(), new TransformStream<AnyMessage>()];
  const stream: Stream = { readable: inward.readable, writable: outward.writable };
  let taken = 0;
  const limited = limitRate(stream, () => {
    taken += 1;
    return taken > allowed ? rateLimited : undefined;
  });
  return {
    ...{ input: inward.writable.getWriter(), output: outward.readable.getReader(), limited },
    inside: limited.stream.readable.getReader(),
  };
}

const request = (id: number, method: string): AnyMessage => ({ jsonrpc: "2.0", id, method, params: {} });

describe("exempt from the rate limit is", () => {
  test.each([
    ["a request to stop one call", request(1, "_belay/tool_call/cancel")],
    ["the same request under its other name", request(1, "session/cancel_tool_call")],
    ["the same request in version 2", request(1, "tool_call/cancel")],
    ["closing a session", request(1, "session/close")],
    ["deleting a session", request(1, "session/delete")],
    ["a cancel", { jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "ses_a" } }],
    ["withdrawing a request", { jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: 1 } }],
    ["listing sessions", request(1, "session/list")],
  ] satisfies readonly (readonly [string, AnyMessage])[])("%s", async (_, message) => {
    const { input, inside } = ends(0);
    void input.write(message);
    await expect(inside.read()).resolves.toEqual({ done: false, value: message });
  });
});

describe("the rate limit", () => {
  test.each(["session/prompt", "session/new", "session/load", "_session/steering", "something/else"])(
    "counts %s",
    async (method) => {
      const { input, inside, output } = ends(1);
      void input.write(request(1, method));
      await expect(inside.read()).resolves.toMatchObject({ value: { id: 1 } });
      void input.write(request(2, method));
      void inside.read();
      const { value } = await output.read();
      expect(value).toMatchObject({ id: 2, error: { code: -32012, message: "Too fast." } });
    },
  );

  test("passes a response to a request of the server once, and discards any other response", async () => {
    const { input, inside, output, limited } = ends(0);
    const writer = limited.stream.writable.getWriter();
    void writer.write(request(7, "session/request_permission"));
    await output.read();
    const answer: AnyMessage = { jsonrpc: "2.0", id: 7, result: {} };
    for (const id of ["7", null, 8]) void input.write({ jsonrpc: "2.0", id, result: {} });
    for (const one of [answer, answer, request(1, "session/list")]) void input.write(one);
    await expect(inside.read()).resolves.toEqual({ done: false, value: answer });
    await expect(inside.read()).resolves.toMatchObject({ value: { id: 1, method: "session/list" } });
  });

  test("answers a refused request and passes the messages after it", async () => {
    const { input, inside, output } = ends(0);
    const stop: AnyMessage = { jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "ses_a" } };
    void input.write(request(1, "session/prompt"));
    void input.write(stop);
    const next = inside.read();
    await expect(output.read()).resolves.toMatchObject({ value: { id: 1 } });
    await expect(next).resolves.toEqual({ done: false, value: stop });
  });
});

describe("a rate-limited stream", () => {
  test("ends when its input ends", async () => {
    const { input, inside } = ends(0);
    void input.close();
    await expect(inside.read()).resolves.toMatchObject({ done: true });
  });

  test("fails when its input fails", async () => {
    const { input, inside } = ends(0);
    void input.abort(new Error("gone"));
    await expect(inside.read()).rejects.toThrow("gone");
  });

  test("that was ended delivers nothing more", async () => {
    const { input, inside, limited } = ends(9);
    const next = inside.read();
    limited.end();
    limited.end();
    void input.write(request(1, "session/prompt"));
    await expect(next).resolves.toMatchObject({ done: true });
  });

  test("is flushed once all written messages were read", async () => {
    const { output, limited } = ends(9);
    const writer = limited.stream.writable.getWriter();
    void writer.write(request(1, "a"));
    void writer.write(request(2, "b"));
    let isFlushed = false;
    const done = limited.flushed().then(() => {
      isFlushed = true;
    });
    await output.read();
    expect(isFlushed).toBe(false);
    await output.read();
    await done;
  });
});
