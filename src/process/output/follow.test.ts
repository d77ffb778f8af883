import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { OutputPage } from "../../ports/spawner.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { Capture, type CaptureOptions } from "./capture.ts";
import { follow, Growth } from "./follow.ts";
import type { Source } from "./source.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-output-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const captured = (options: Partial<CaptureOptions> = {}): Capture =>
  new Capture({ dir, clock: manualClock(), ...options });

async function pagesOf(pages: AsyncIterable<OutputPage>): Promise<OutputPage[]> {
  const all: OutputPage[] = [];
  for await (const page of pages) all.push(page);
  return all;
}

test("pages arrive as the child writes, and the last one has `end`", async () => {
  const capture = captured();
  const pages = capture.follow();
  const first = pages.next();
  capture.take("stdout", Buffer.from("one\n"));
  expect(await first).toMatchObject({ value: { from: 0, to: 4, text: "one\n", end: false } });
  const second = pages.next();
  await settled();
  capture.take("stderr", Buffer.from("two\n"));
  expect(await second).toMatchObject({ value: { from: 4, to: 8, text: "two\n", end: false } });
  const last = pages.next();
  await settled();
  await capture.end();
  expect(await last).toMatchObject({ done: false, value: { from: 8, to: 8, text: "", end: true } });
  expect(await pages.next()).toEqual({ done: true, value: undefined });
});

test("earlier output is read first, from the requested offset and stream", async () => {
  const capture = captured();
  capture.take("stdout", Buffer.from("out"));
  capture.take("stderr", Buffer.from("error"));
  await capture.end();
  const pages = await pagesOf(capture.follow({ stream: "stderr", offset: 2, bytesMax: 4 }));
  expect(pages).toEqual([{ stream: "stderr", from: 2, to: 5, text: "ror", missing: 0, end: true }]);
});

test("an incomplete character causes no empty page, and is not decoded early", async () => {
  const capture = captured();
  const following = pagesOf(capture.follow());
  for (const byte of Buffer.from("a€b")) {
    capture.take("stdout", Buffer.from([byte]));
    await settled();
  }
  await capture.end();
  const texts = (await following).map((page) => page.text);
  expect(texts).toEqual(["a", "€", "b", ""]);
});

test("G23: a slow reader delays nothing, and learns how much it has missed", async () => {
  const capture = captured({ outputBytesMax: 4, headBytes: 2, tailBytes: 4 });
  const pages = capture.follow({ stream: "stdout", bytesMax: 4 });
  capture.take("stdout", Buffer.from("abc"));
  expect(await pages.next()).toMatchObject({ value: { text: "abc" } });
  for (let count = 0; count < 1_000; count += 1) capture.take("stdout", Buffer.from("0123456789"));
  expect(capture.counts.bytes.stdout).toBe(10_003);
  expect(await pages.next()).toMatchObject({ value: { from: 3, to: 4, text: "0", missing: 0 } });
  expect(await pages.next()).toMatchObject({ value: { from: 9_999, to: 10_003, text: "6789", missing: 9_995 } });
  await capture.end();
  expect(await pages.next()).toMatchObject({ value: { end: true } });
});

test("a signal ends it at once, while it waits for the child or before it begins", async () => {
  const capture = captured();
  const stop = new AbortController();
  const pages = capture.follow({ signal: stop.signal });
  const waiting = pages.next();
  await settled();
  stop.abort();
  expect(await waiting).toEqual({ done: true, value: undefined });
  expect(await pagesOf(capture.follow({ signal: AbortSignal.abort() }))).toEqual([]);
  capture.take("stdout", Buffer.from("still taken"));
  expect(capture.counts.bytes.all).toBe(11);
  await capture.end();
});

test("a signal in the same tick as an empty page is not lost", async () => {
  const capture = captured();
  for (let ticks = 0; ticks < 12; ticks += 1) {
    const stop = new AbortController();
    const pages = capture.follow({ signal: stop.signal });
    const waiting = pages.next();
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
    stop.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
  }
  await capture.end();
});

test("many can follow, each from its own offset, and all get the end", async () => {
  const capture = captured();
  const followers = Array.from({ length: 50 }, (_, offset) => pagesOf(capture.follow({ offset })));
  capture.take("stdout", Buffer.alloc(40, "x"));
  await settled();
  capture.take("stderr", Buffer.alloc(40, "y"));
  await settled();
  await capture.end();
  const lengths = (await Promise.all(followers)).map((pages) => pages.reduce((sum, page) => sum + page.text.length, 0));
  expect(lengths).toEqual(Array.from({ length: 50 }, (_, offset) => 80 - offset));
});

test("an invalid request is refused", async () => {
  const capture = captured();
  await expect(capture.follow({ offset: -1 }).next()).rejects.toMatchObject({ code: "invalid" });
  await expect(capture.follow({ stream: "tty" as "all" }).next()).rejects.toMatchObject({ code: "invalid" });
  await capture.end();
});

test("following with a signal yields the same pages, and leaves no listener on it", async () => {
  const capture = captured();
  const { signal } = new AbortController();
  const pages = capture.follow({ signal });
  const first = pages.next();
  capture.take("stdout", Buffer.from("one\n"));
  expect(await first).toMatchObject({ value: { text: "one\n", end: false } });
  expect(getEventListeners(signal, "abort")).toEqual([]);
  const last = pages.next();
  await settled();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  capture.take("stdout", Buffer.from("two\n"));
  await capture.end();
  expect(await last).toMatchObject({ value: { text: "two\n", end: true } });
  expect(await pages.next()).toEqual({ done: true, value: undefined });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a signal ends it even while a disk read hangs", async () => {
  const stop = new AbortController();
  const source: Source = {
    ...{ stream: "all", total: 10, ended: false, memory: () => undefined, next: (from) => from },
    disk: () => new Promise(() => undefined),
  };
  const waiting = follow(source, new Growth(), { signal: stop.signal }).next();
  await settled();
  stop.abort();
  expect(await waiting).toEqual({ done: true, value: undefined });
});

test("a loss is reported at once, even if a whole character has not followed yet", async () => {
  const capture = captured({ outputBytesMax: 0, headBytes: 0, tailBytes: 2 });
  const [first = 0, second = 0, third = 0] = Buffer.from("\u20ac");
  capture.take("stdout", Buffer.from([...Buffer.from("xxxxxxx"), first, second]));
  const pages = capture.follow();
  expect(await pages.next()).toMatchObject({ value: { from: 7, to: 7, text: "", missing: 7, end: false } });
  capture.take("stdout", Buffer.of(third));
  await capture.end();
  await pages.return();
});
