import { PassThrough, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { settled } from "../../testing/manual-clock.ts";
import { Input } from "./stdin.ts";

/** A pipe that accepts each write on request. */
function slowPipe() {
  const taken: string[] = [];
  const waiting: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    highWaterMark: 1,
    write: (data: Buffer, _, done) => {
      taken.push(data.toString());
      waiting.push(done);
    },
  });
  stream.on("error", () => undefined);
  return { stream, taken, next: (error?: Error) => waiting.shift()?.(error) };
}

describe("the stdin of a process", () => {
  test("is written in order, and each write resolves when the pipe has taken it", async () => {
    const { stream, taken, next } = slowPipe();
    const input = new Input(stream);
    const answered: string[] = [];
    const both = ["one", "two"].map((text) => input.write(text).then(() => answered.push(text)));
    await Promise.resolve();
    expect(answered).toEqual([]);
    next();
    await both[0];
    expect([taken, answered]).toEqual([["one", "two"], ["one"]]);
    next();
    await both[1];
    expect(answered).toEqual(["one", "two"]);
  });

  test("is refused with a hint if the process was started without input", async () => {
    const input = new Input(undefined);
    await expect(input.write("x")).rejects.toMatchObject({
      ...{
        code: "invalid",
        message: "This process was started without input.",
        hint: 'Start it with `stdin: "open"`.',
      },
    });
    input.end();
    input.destroy();
  });

  test.each([
    ["ended", (input: Input) => input.end()],
    ["destroyed", (input: Input) => input.destroy()],
  ])("that was %s accepts no more writes", async (_, over) => {
    const input = new Input(new PassThrough());
    over(input);
    await expect(input.write("x")).rejects.toMatchObject({
      ...{ code: "closed", message: "The input of this process has ended.", hint: "Start another process." },
    });
  });

  test("is bounded: writes beyond a mebibyte that is not read are rejected", async () => {
    const { stream } = slowPipe();
    const input = new Input(stream);
    const all = 1024 * 1024;
    void input.write("x".repeat(all)).catch(() => undefined);
    // Exactly so much is buffered.
    let refused = false;
    input.write("y").catch(() => {
      refused = true;
    });
    await settled();
    expect(refused).toBe(false);
    await expect(input.write("z")).rejects.toMatchObject({
      ...{ code: "overloaded", hint: "Wait until it has read what it was given." },
    });
    input.destroy();
  });

  test("without a reader rejects", async () => {
    const { stream, next } = slowPipe();
    const written = new Input(stream).write("x");
    next(Object.assign(new Error("EPIPE"), { code: "EPIPE" }));
    await expect(written).rejects.toMatchObject({
      ...{ code: "closed", message: "The process has closed its input.", cause: { code: "EPIPE" } },
    });
  });

  test("ends once, after buffered data; a second end has no effect", async () => {
    const { stream, taken, next } = slowPipe();
    const input = new Input(stream);
    const written = input.write("last");
    input.end();
    input.end();
    expect(stream.writableFinished).toBe(false);
    next();
    await written;
    expect(taken).toEqual(["last"]);
    expect(stream.writableEnded).toBe(true);
  });
});
