import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { Capture, type CaptureOptions } from "./capture.ts";
import type { OpenSink } from "./kept-file.ts";
import { BLOCK_BYTES_MIN, FLUSH_MS_MAX, HEAD_BYTES, PAGE_BYTES_MAX, TAIL_BYTES, WAITING_BYTES_MAX } from "./limits.ts";

let dir: string;
const clock = manualClock();

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-output-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const captured = (options: Partial<CaptureOptions> = {}): Capture => new Capture({ dir, clock, ...options });

const sinkOf = (file: FileHandle): Awaited<ReturnType<OpenSink>> => ({
  writev: (buffers, position) => file.writev([...buffers], position),
  close: () => file.close(),
});

/** Real files, whose writes after the first `free` ones wait until the gate is opened. */
function gatedDisk(free = 0) {
  const gate = Promise.withResolvers<void>();
  const first = Promise.withResolvers<void>();
  let writes = 0;
  const openSink: OpenSink = async (path) => {
    const file = await open(path, "wx");
    return {
      writev: async (buffers, position) => {
        writes += 1;
        if (writes > free) await gate.promise;
        const written = await file.writev([...buffers], position);
        first.resolve();
        return written;
      },
      close: () => file.close(),
    };
  };
  return { openSink, openGate: gate.resolve, wrote: first.promise };
}

const fullDisk: OpenSink = async () => ({
  writev: async () => {
    throw new Error("ENOSPC: no space left on device, write");
  },
  close: async () => undefined,
});

describe("reading", () => {
  test("a page can be read before any byte of it is on disk", async () => {
    const { openSink, openGate } = gatedDisk();
    const capture = captured({ openSink, headBytes: 2, tailBytes: 2 });
    capture.take("stdout", Buffer.from("hello "));
    capture.take("stderr", Buffer.from("world"));
    expect(capture.counts.kept.all).toBe(0);
    expect(await capture.read()).toEqual({
      stream: "all",
      from: 0,
      to: 11,
      text: "hello world",
      missing: 0,
      end: false,
    });
    openGate();
    await capture.end();
    expect(await capture.read({ offset: 6 })).toMatchObject({ from: 6, to: 11, text: "world", end: true });
    expect(capture.counts.kept.all).toBe(11);
  });

  test("an incomplete character is held back while its rest may come, and shown as broken afterwards", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("a€").subarray(0, 3));
    expect(await capture.read()).toMatchObject({ to: 1, text: "a", end: false });
    expect(await capture.read({ offset: 1 })).toMatchObject({ from: 1, to: 1, text: "", end: false });
    expect(capture.excerpt()).toEqual({ head: "a", tail: "", omitted: 0 });
    await capture.end();
    expect(await capture.read()).toMatchObject({ to: 3, text: "a\ufffd", end: true });
    expect(capture.excerpt()).toEqual({ head: "a\ufffd", tail: "", omitted: 0 });
  });

  test("every page advances through invalid bytes, however small it is", async () => {
    const capture = captured({ headBytes: 0, tailBytes: 1 });
    capture.take("stdout", Buffer.alloc(64, 0x80));
    await capture.end();
    let text = "";
    for (let at = 0, pages = 0; at < 64; pages += 1) {
      const page = await capture.read({ offset: at, bytesMax: 1 });
      expect(page.to).toBeGreaterThan(at);
      expect(pages).toBeLessThan(64);
      text += page.text;
      at = page.to;
    }
    expect(text).toBe("\ufffd".repeat(64));
  });

  test("an offset inside a character gets a page, however small it is", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("💩💩💩"));
    expect(await capture.read({ offset: 1, bytesMax: 4 })).toMatchObject({ from: 4, to: 8, text: "💩", missing: 0 });
    await capture.end();
  });

  test("a character torn apart by a gap is missing as a whole, even at the start of an excerpt", async () => {
    const capture = captured({ outputBytesMax: 0, headBytes: 4, tailBytes: 5 });
    capture.take("stdout", Buffer.from("€€€€"));
    expect(await capture.read()).toMatchObject({ from: 0, to: 4, text: "€\ufffd" });
    for (const offset of [4, 6, 7]) {
      expect(await capture.read({ offset })).toMatchObject({ from: 9, text: "€", missing: 9 - offset });
    }
    expect(capture.excerpt({ bytesMax: 10 })).toEqual({ head: "€", tail: "€", omitted: 6 });
    await capture.end();
  });

  test("if the file is removed, its queued bytes are still readable", async () => {
    const { openSink, openGate, wrote } = gatedDisk(1);
    const capture = captured({ openSink, headBytes: 0, tailBytes: 1, streams: "one" });
    capture.take("stdout", Buffer.from("abc"));
    await wrote;
    await settled();
    expect(capture.counts.kept.stdout).toBe(3);
    capture.take("stdout", Buffer.from("def"));
    unlinkSync(join(dir, "stdout.log"));
    expect(await capture.read()).toMatchObject({ from: 3, to: 6, text: "def", missing: 3 });
    openGate();
    await capture.end();
  });

  test("a page is never larger than the limit, and one beyond the end is empty", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.alloc(PAGE_BYTES_MAX + 10, "x"));
    const page = await capture.read({ bytesMax: 1_000_000_000 });
    expect(page.to).toBe(PAGE_BYTES_MAX);
    expect(await capture.read({ offset: 2 ** 40 })).toMatchObject({ from: 2 ** 40, text: "", missing: 0, end: false });
    await capture.end();
  });

  test.each([
    [{ offset: -1 }, /`offset` of a page must be a whole number/],
    [{ offset: Number.NaN }, /`offset`/],
    [{ bytesMax: 0 }, /`bytesMax`/],
    [{ stream: "stdin" as "all" }, /got stdin/],
  ])("an invalid page request is refused: %o", async (options, message) => {
    const capture = captured();
    capture.take("stdout", Buffer.from("x"));
    await expect(capture.read(options)).rejects.toThrow(message);
    await capture.end();
  });

  test("a link or directory in place of the file is not read: its bytes are missing, the tail is there", async () => {
    const capture = captured({ headBytes: 0, tailBytes: 4 });
    capture.take("stdout", Buffer.from("abcdefgh"));
    await capture.end();
    const secret = join(dir, "secret");
    writeFileSync(secret, "secret!!");
    unlinkSync(join(dir, "stdout.log"));
    symlinkSync(secret, join(dir, "stdout.log"));
    expect(await capture.read({ stream: "stdout" })).toMatchObject({ from: 4, text: "efgh", missing: 4, end: true });
  });
});

describe("page boundaries", () => {
  test("a page cut by its size ends with a whole character, even before a gap", async () => {
    const torn = captured({ outputBytesMax: 0, headBytes: 8, tailBytes: 2 });
    torn.take("stdout", Buffer.from("ééééxxxxxxyz"));
    await torn.end();
    expect(await torn.read({ bytesMax: 7 })).toMatchObject({ from: 0, to: 6, text: "ééé", missing: 0 });
    // Inside a character that is kept: nothing is missing.
    expect(await torn.read({ offset: 1, bytesMax: 7 })).toMatchObject({ from: 2, to: 8, text: "ééé", missing: 0 });
  });

  test("a page that begins inside a character is not cut inside another", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("😀😀😀"));
    await capture.end();
    expect(await capture.read({ offset: 1, bytesMax: 5 })).toMatchObject({ from: 4, to: 8, text: "😀", end: false });
  });

  test("a page far beyond the end has `end`", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("abc"));
    expect(await capture.read({ offset: 100 })).toMatchObject({ from: 100, to: 100, text: "", end: false });
    await capture.end();
    expect(await capture.read({ offset: 100 })).toMatchObject({ from: 100, to: 100, text: "", end: true });
  });

  test("an excerpt is everything up to its size, and beyond that the first and the last half", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("0123456789"));
    await capture.end();
    expect(capture.excerpt({ bytesMax: 10 })).toEqual({ head: "0123456789", tail: "", omitted: 0 });
    expect(capture.excerpt({ bytesMax: 9 })).toEqual({ head: "0123", tail: "6789", omitted: 2 });
    expect(capture.trouble).toBeUndefined();
  });
});

describe("memory", () => {
  test("is the heads, the tails and the queues, each allocated on demand", async () => {
    const { openSink, openGate } = gatedDisk();
    const capture = captured({ openSink });
    expect(capture.heldBytes).toBe(0);
    capture.take("stdout", Buffer.alloc(10));
    expect(capture.heldBytes).toBe(2 * (HEAD_BYTES + BLOCK_BYTES_MIN));
    capture.take("stdout", Buffer.alloc(HEAD_BYTES));
    const waiting = capture.heldBytes - 2 * (HEAD_BYTES + TAIL_BYTES);
    expect(waiting).toBeGreaterThan(2 * HEAD_BYTES);
    openGate();
    await capture.end();
    expect(capture.heldBytes).toBe(2 * (HEAD_BYTES + TAIL_BYTES));
  });

  test.each([
    ["its own file", /stdout\.log$/],
    ["the file of all", /all\.log$/],
  ])("pauses the reader when a mebibyte is queued for %s alone", async (_, which) => {
    const { openSink: slow, openGate } = gatedDisk();
    const openSink: OpenSink = (path) => (which.test(path) ? slow(path) : open(path, "wx").then(sinkOf));
    const capture = captured({ openSink });
    const half = Buffer.alloc(2 ** 19);
    expect(capture.take("stdout", half)).toBe("go");
    // The bytes that the other file has taken are not queued any more.
    await expect.poll(() => Math.max(...Object.values(capture.counts.kept))).toBe(2 ** 19);
    expect(capture.take("stdout", half.subarray(1))).toBe("go");
    await expect.poll(() => Math.max(...Object.values(capture.counts.kept))).toBe(2 ** 20 - 1);
    // Without `onDrain` nothing breaks.
    expect(capture.take("stdout", Buffer.alloc(1))).toBe("pause");
    openGate();
    await capture.end();
    expect([capture.counts.kept.all, capture.trouble]).toEqual([2 ** 20, undefined]);
  });

  /** The maximum a capture may hold: three heads and tails, and three queues with the slack of their blocks. */
  const HELD_MAX = 3 * (HEAD_BYTES + TAIL_BYTES + WAITING_BYTES_MAX + 2 * 64 * 1024);

  test("G23: memory is bounded and counts are exact if the disk hangs and the reader does not pause", async () => {
    const { openSink, openGate } = gatedDisk();
    const capture = captured({ openSink, outputBytesMax: 2 ** 40 });
    const piece = Buffer.alloc(64 * 1024, "y\n");
    for (let count = 0; count < 64; count += 1) {
      capture.take("stdout", piece);
      expect(capture.heldBytes).toBeLessThanOrEqual(HELD_MAX);
    }
    expect(capture.counts).toMatchObject({ bytes: { all: 4 * 2 ** 20 }, lines: 2 * 2 ** 20 });
    openGate();
    await capture.end();
    expect(capture.counts.kept.all).toBe(WAITING_BYTES_MAX);
    expect(capture.trouble).toMatch(/stdout\.log is not complete: the disk did not keep up/);
    const behind = await capture.read({ offset: WAITING_BYTES_MAX });
    expect(behind.missing).toBe(4 * 2 ** 20 - WAITING_BYTES_MAX - TAIL_BYTES);
    expect(behind).toMatchObject({ to: 4 * 2 ** 20, end: true });
  });

  test("a slow disk pauses the reader, and resumes it once when there is room again", async () => {
    const { openSink, openGate } = gatedDisk();
    const drained = Promise.withResolvers<void>();
    let drains = 0;
    const onDrain = (): void => {
      drains += 1;
      drained.resolve();
    };
    const capture = captured({ openSink, onDrain });
    const piece = Buffer.alloc(64 * 1024, "x");
    const answers = Array.from({ length: 17 }, () => capture.take("stdout", piece));
    expect(answers.indexOf("pause")).toBe(15);
    expect(answers.at(-1)).toBe("pause");
    openGate();
    await drained.promise;
    expect(capture.take("stdout", piece)).toBe("go");
    await capture.end();
    expect([drains, capture.counts.kept.stdout]).toEqual([1, 18 * piece.length]);
  });
});

describe("errors", () => {
  test("G23: with a full disk counts, head and tail remain, and the rest is reported as missing", async () => {
    const capture = captured({ openSink: fullDisk, headBytes: 4, tailBytes: 4 });
    capture.take("stdout", Buffer.from("abcdefgh"));
    await settled();
    capture.take("stdout", Buffer.from("ijklmnop\n"));
    expect(capture.trouble).toMatch(/is not complete: ENOSPC/);
    expect(capture.counts).toMatchObject({ bytes: { all: 17 }, kept: { all: 0 }, lines: 1 });
    expect(await capture.read()).toMatchObject({ from: 0, to: 4, text: "abcd", missing: 0 });
    expect(await capture.read({ offset: 4 })).toMatchObject({ from: 13, to: 17, text: "nop\n", missing: 9 });
    expect(capture.excerpt()).toEqual({ head: "abcd", tail: "nop\n", omitted: 9 });
    await capture.end();
    expect(await capture.read({ offset: 4 })).toMatchObject({ missing: 9, end: true });
  });

  test("a paused reader resumes when the disk fails, so that the child does not wait forever", async () => {
    const failing = Promise.withResolvers<never>();
    const drained = Promise.withResolvers<void>();
    const openSink: OpenSink = async () => ({ writev: () => failing.promise, close: async () => undefined });
    const capture = captured({ openSink, onDrain: drained.resolve });
    expect(capture.take("stdout", Buffer.alloc(WAITING_BYTES_MAX))).toBe("pause");
    failing.reject(new Error("EIO: i/o error, write"));
    await drained.promise;
    expect(capture.take("stdout", Buffer.alloc(WAITING_BYTES_MAX))).toBe("go");
    await capture.end();
    expect(capture.trouble).toMatch(/EIO/);
  });

  test("a removed directory is reported, and nothing is thrown", async () => {
    const capture = captured();
    // Before the first byte: files are created with it, at an unpredictable moment.
    rmSync(dir, { recursive: true });
    capture.take("stderr", Buffer.from("one"));
    await capture.end();
    expect(capture.counts.bytes).toEqual({ stdout: 0, stderr: 3, all: 3 });
    expect(capture.excerpt()).toEqual({ head: "one", tail: "", omitted: 0 });
    expect(capture.trouble).toMatch(/ENOENT/);
  });

  test("the end does not wait for a disk that hangs", async () => {
    const never = new Promise<never>(() => undefined);
    const openSink: OpenSink = async () => ({ writev: () => never, close: async () => undefined });
    const capture = captured({ openSink });
    capture.take("stdout", Buffer.from("x"));
    const ended = capture.end();
    await clock.advance(FLUSH_MS_MAX);
    await ended;
    expect(capture.trouble).toMatch(/longer than 2000 ms/);
    expect(await capture.read()).toMatchObject({ text: "x", end: true });
  });
});

describe("the end", () => {
  test("G23: output after the end is dropped, even if a process still holds the pipe", {
    meta: { id: "G23/output-after-end-dropped" },
  }, async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("last words\n"));
    const ended = capture.end();
    expect(capture.take("stdout", Buffer.from("from a descendant\n"))).toBe("go");
    await ended;
    capture.take("stderr", Buffer.from("and another\n"));
    expect(capture.counts).toMatchObject({ bytes: { all: 11 }, kept: { all: 11 }, lines: 1 });
    expect(readFileSync(join(dir, "all.log"), "utf8")).toBe("last words\n");
  });

  test("returns the same promise each time, and leaves no open file and no timer", async () => {
    const capture = captured();
    capture.take("stdout", Buffer.from("x"));
    expect(capture.end()).toBe(capture.end());
    await capture.end();
    expect(clock.pending).toEqual([]);
    const links = existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd") : [];
    const targets = links.flatMap(targetOf);
    expect(targets.filter((target) => target.startsWith(dir))).toEqual([]);
  });

  test("a child without output leaves counts, and no other file", async () => {
    await captured().end();
    expect(readdirSync(dir)).toEqual(["counts.json"]);
  });
});

test("counts that cannot be written are reported, and nothing is thrown", async () => {
  const capture = captured();
  rmSync(dir, { recursive: true });
  await capture.end();
  expect(capture.trouble).toContain(`The counts could not be written to ${dir}: ENOENT`);
});

test("an empty piece does not change the time of the last output", async () => {
  const moving = manualClock();
  const capture = captured({ clock: moving });
  await moving.advance(5);
  capture.take("stdout", Buffer.alloc(0));
  expect(capture.lastAt).toBe(0);
  await capture.end();
});

test("the time of the last output is on the monotonic clock", () => {
  const capture = captured();
  const start = clock.elapsed();
  expect(capture.lastAt).toBe(start);
  clock.tick(500);
  clock.jump(3_600_000);
  capture.take("stderr", Buffer.from("x"));
  clock.tick(500);
  expect(capture.lastAt).toBe(start + 500);
  return capture.end();
});

test("a terminal has one stream and one file: all is stdout", async () => {
  const capture = captured({ streams: "one" });
  capture.take("stdout", Buffer.from("a\n"));
  capture.take("stderr", Buffer.from("b\n"));
  expect(capture.counts.bytes).toEqual({ stdout: 4, stderr: 0, all: 4 });
  expect(await capture.read()).toMatchObject({ stream: "all", text: "a\nb\n" });
  await capture.end();
  expect(readdirSync(dir).toSorted()).toEqual(["counts.json", "stdout.log"]);
});

function targetOf(fd: string): string[] {
  try {
    return [readlinkSync(`/proc/self/fd/${fd}`)];
  } catch {
    // It was the handle of the listing itself.
    return [];
  }
}

test("a page in plain text keeps the offsets of the raw text", async () => {
  const capture = captured();
  capture.take("stdout", Buffer.from("\u001b[31mred\u001b[0m\u0000 50 %\r\u001b[K100 %\n"));
  await capture.end();
  const raw = await capture.read();
  expect(await capture.read({ plain: true })).toEqual({ ...raw, text: "100 %\n" });
  expect(capture.excerpt({ plain: true })).toEqual({ head: "100 %\n", tail: "", omitted: 0 });
  expect(raw.text).toContain("\u001b[31m");
});
