import { expect, test } from "vitest";
import { type Connected, connected } from "../../test/fixtures/connected-client.ts";
import { INPUT_BYTES_MAX, WAIT_PIECE_MS } from "./limits.ts";
import type { ClientProcess } from "./process.ts";

const PATH = "/v1/processes/proc_1.1";

async function found(fixture: Connected): Promise<ClientProcess> {
  const process = fixture.client.session("ses_1").processes.get("proc_1.1");
  (await fixture.server.next(`GET ${PATH}`)).json(200, { id: "proc_1.1", sessionId: "ses_1", info: { pid: 7 } });
  return process;
}

const page = (from: number, text: string, end = false): object => ({
  ...{ stream: "all", from, to: from + text.length, text, missing: 0, end },
});

const pageText = (one: object): string => `id: ${"to" in one && one.to}\nevent: page\ndata: ${JSON.stringify(one)}\n\n`;

test("a process of another session is not found in this one", async () => {
  await using fixture = await connected();
  const process = fixture.client.session("ses_2").processes.get("proc_1.1");
  (await fixture.server.next(`GET ${PATH}`)).json(200, { id: "proc_1.1", sessionId: "ses_1" });
  await expect(process).rejects.toMatchObject({ code: "not_found" });
});

test("its output is followed across reconnects without losing or repeating a byte, until its end", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const pages = Array.fromAsync(process.follow({ stream: "all", offset: 2, plain: true }));
  const first = (await fixture.server.next(`GET ${PATH}/output/follow`)).stream();
  expect(first.line).toBe(`GET ${PATH}/output/follow?stream=all&offset=2&plain=true`);
  first.say(pageText(page(2, "abc")));
  await first.cut();
  await fixture.passPause();
  const second = (await fixture.server.next(`GET ${PATH}/output/follow`)).stream();
  expect(second.header("last-event-id")).toBe("5");
  second.say(pageText(page(5, "de", true)));
  expect((await pages).map(({ text }) => text)).toEqual(["abc", "de"]);
});

test("an output stream that its server ends cleanly is over", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const pages = Array.fromAsync(process.follow());
  (await fixture.server.next(`GET ${PATH}/output/follow`))
    .stream()
    .say(pageText(page(0, "abc")))
    .end();
  expect(await pages).toHaveLength(1);
});

test("input is sent in order and in chunks, bytes as base64, without splitting a character", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const text = `${"x".repeat(INPUT_BYTES_MAX - 1)}😀y`;
  const written = [process.write(text), process.write(new Uint8Array([0, 255, 10])), process.endInput()];
  const bodies: unknown[] = [];
  for (let piece = 0; piece < 4; piece += 1) {
    const asked = await fixture.server.next(`POST ${PATH}/input`);
    bodies.push(asked.body);
    asked.json(200, { written: 1 });
  }
  await Promise.all(written);
  expect(bodies).toEqual([
    { data: "x".repeat(INPUT_BYTES_MAX - 1) },
    { data: "😀y" },
    { base64: "AP8K" },
    { end: true },
  ]);
});

test("input that is written too fast waits, and nothing is sent after a failed chunk", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const INPUT = `POST ${PATH}/input`;
  const tooFast = { error: { code: "overloaded", message: "Too fast.", requestId: "r1" } };
  const first = process.write("a");
  (await fixture.server.next(INPUT)).json(429, tooFast);
  await fixture.passPause();
  const again = await fixture.server.next(INPUT);
  expect(again.body).toEqual({ data: "a" });
  again.json(200, { written: 1 });
  await first;
  const lost = [process.write("b"), process.write("c"), process.endInput()];
  await (await fixture.server.next(INPUT)).cut();
  const ends = await Promise.allSettled(lost);
  expect(ends).toMatchObject([
    { reason: { code: "disconnected" } },
    { reason: { code: "conflict", message: "Not sent: the input before it was not delivered." } },
    { reason: { code: "conflict" } },
  ]);
  const after = process.write("d");
  const asked = await fixture.server.next(INPUT);
  expect(asked.body).toEqual({ data: "d" });
  asked.json(200, { written: 1 });
  await after;
});

test("its result is awaited in several requests: until its end, the limit, or the signal", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const RESULT = `GET ${PATH}/result`;
  const ended = process.wait();
  const first = await fixture.server.next(RESULT);
  expect(first.line).toBe(`${RESULT}?waitMs=${WAIT_PIECE_MS}`);
  first.json(202, { processId: "proc_1.1", waitedMs: WAIT_PIECE_MS });
  (await fixture.server.next(RESULT)).json(200, { processId: "proc_1.1", outcome: { kind: "completed" } });
  expect(await ended).toMatchObject({ outcome: { kind: "completed" } });

  const limited = process.wait({ limitMs: 10 });
  const asked = await fixture.server.next(RESULT);
  expect(asked.line).toBe(`${RESULT}?waitMs=10`);
  asked.json(202, { processId: "proc_1.1", waitedMs: 10 });
  expect(await limited).toBeUndefined();

  const stop = new AbortController();
  const stopped = process.wait({ signal: stop.signal });
  const last = await fixture.server.next(RESULT);
  stop.abort(new Error("enough"));
  await expect(stopped).rejects.toThrow("enough");
  await last.left();
});

test("G3: an invalid wait is refused without a request", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  for (const wild of [{ limitMs: Number.NaN }, { limitMs: -1 }, { limitMs: 0.5 }, { limitMs: "x" }, { limit: 1 }]) {
    await expect(process.wait(wild as never)).rejects.toMatchObject({ code: "invalid" });
  }
});

test("the reason of a cancel may be a string, as elsewhere", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const cancelled = process.cancel("enough");
  const asked = await fixture.server.next(`POST ${PATH}/cancel`);
  expect(asked.body).toEqual({ reason: "enough", waitMs: 0 });
  asked.json(200, { kind: "stopping", since: 4, first: true, ended: { kind: "limit", waitMs: 0 } });
  expect(await cancelled).toMatchObject({ kind: "stopping" });
});

test("a cancel does not wait, and returns the receipt", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const cancelled = process.cancel({ kind: "user", note: "n" });
  const asked = await fixture.server.next(`POST ${PATH}/cancel`);
  expect(asked.body).toEqual({ reason: { kind: "user", note: "n" }, waitMs: 0 });
  const receipt = { kind: "stopping", since: 4, first: true };
  asked.json(200, { ...receipt, ended: { kind: "limit", waitMs: 0 } });
  expect(await cancelled).toEqual(receipt);
});

test("output that is not kept is undefined, not an error", async () => {
  await using fixture = await connected();
  const process = await found(fixture);
  const read = process.read({ stream: "stderr", bytesMax: 10 });
  (await fixture.server.next(`GET ${PATH}/output?stream=stderr&bytesMax=10`)).error(404, "not_found");
  expect(await read).toBeUndefined();
  const pages = Array.fromAsync(process.follow());
  (await fixture.server.next(`GET ${PATH}/output/follow`)).error(404, "not_found");
  expect(await pages).toEqual([]);
});
