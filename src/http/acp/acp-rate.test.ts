// The rate of changes that come as messages of ACP: what is counted, what never is, and what is answered beyond it.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { Denial } from "../auth/guard-denial.ts";
import { type Rated, rated } from "./acp-rate.ts";

const tooFast = new Denial(429, "overloaded", "Too fast.");

interface Ends {
  readonly input: WritableStreamDefaultWriter<AnyMessage>;
  readonly output: ReadableStreamDefaultReader<AnyMessage>;
  readonly inside: ReadableStreamDefaultReader<AnyMessage>;
  readonly rated: Rated;
}

/** Both ends of a stream that lets `allowed` changes through. */
function ends(allowed: number): Ends {
  const [inward, outward] = [new TransformStream<AnyMessage>(), new TransformStream<AnyMessage>()];
  const stream: Stream = { readable: inward.readable, writable: outward.writable };
  let taken = 0;
  const limited = rated(stream, () => {
    taken += 1;
    return taken > allowed ? tooFast : undefined;
  });
  return {
    ...{ input: inward.writable.getWriter(), output: outward.readable.getReader(), rated: limited },
    inside: limited.stream.readable.getReader(),
  };
}

const request = (id: number, method: string): AnyMessage => ({ jsonrpc: "2.0", id, method, params: {} });

describe("what is never held back", () => {
  test.each([
    ["a request to stop one call", request(1, "_belay/tool_call/cancel")],
    ["the same under its other name", request(1, "session/cancel_tool_call")],
    ["the same in the second version", request(1, "tool_call/cancel")],
    ["closing a session", request(1, "session/close")],
    ["ending a session", request(1, "session/delete")],
    ["a cancel", { jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "ses_a" } }],
    ["taking a request back", { jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: 1 } }],
    ["looking", request(1, "session/list")],
  ] satisfies readonly (readonly [string, AnyMessage])[])("%s", async (_, message) => {
    const { input, inside } = ends(0);
    void input.write(message);
    await expect(inside.read()).resolves.toEqual({ done: false, value: message });
  });
});

describe("what is counted", () => {
  test.each(["session/prompt", "session/new", "session/load", "_session/steering", "something/else"])(
    "%s",
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

  test("an answer to what was asked comes through, once; one to anything else does not", async () => {
    const { input, inside, output, rated: limited } = ends(0);
    const writer = limited.stream.writable.getWriter();
    void writer.write(request(7, "session/request_permission"));
    await output.read();
    const answer: AnyMessage = { jsonrpc: "2.0", id: 7, result: {} };
    for (const id of ["7", null, 8]) void input.write({ jsonrpc: "2.0", id, result: {} });
    for (const one of [answer, answer, request(1, "session/list")]) void input.write(one);
    await expect(inside.read()).resolves.toEqual({ done: false, value: answer });
    await expect(inside.read()).resolves.toMatchObject({ value: { id: 1, method: "session/list" } });
  });

  test("a refusal is told, and what comes behind it comes through", async () => {
    const { input, inside, output } = ends(0);
    const stop: AnyMessage = { jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "ses_a" } };
    void input.write(request(1, "session/prompt"));
    void input.write(stop);
    const next = inside.read();
    await expect(output.read()).resolves.toMatchObject({ value: { id: 1 } });
    await expect(next).resolves.toEqual({ done: false, value: stop });
  });
});

describe("the ends of it", () => {
  test("an input that ends, ends here", async () => {
    const { input, inside } = ends(0);
    void input.close();
    await expect(inside.read()).resolves.toMatchObject({ done: true });
  });

  test("an input that breaks, breaks here", async () => {
    const { input, inside } = ends(0);
    void input.abort(new Error("gone"));
    await expect(inside.read()).rejects.toThrow("gone");
  });

  test("ended from outside, nothing more comes in", async () => {
    const { input, inside, rated: limited } = ends(9);
    const next = inside.read();
    limited.end();
    limited.end();
    void input.write(request(1, "session/prompt"));
    await expect(next).resolves.toMatchObject({ done: true });
  });

  test("it is quiet once what was said has been taken", async () => {
    const { output, rated: limited } = ends(9);
    const writer = limited.stream.writable.getWriter();
    void writer.write(request(1, "a"));
    void writer.write(request(2, "b"));
    let quiet = false;
    const done = limited.quiet().then(() => {
      quiet = true;
    });
    await output.read();
    expect(quiet).toBe(false);
    await output.read();
    await done;
  });
});
