import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KeptFile, type OpenSink } from "./kept-file.ts";
import { BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, WAITING_BYTES_MAX } from "./limits.ts";

let dir: string;
let path: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-output-"));
  path = join(dir, "stdout.log");
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A disk that completes writes on request, and records them. */
function scriptedDisk() {
  const taken: { readonly text: string; readonly position: number; answer(count?: number): void; fail(): void }[] = [];
  let told = Promise.withResolvers<void>();
  const openSink: OpenSink = async () => ({
    writev: (buffers, position) => {
      const bytes = Buffer.concat(buffers);
      const { promise, resolve, reject } = Promise.withResolvers<{ bytesWritten: number }>();
      taken.push({
        text: bytes.toString("latin1"),
        position,
        answer: (count = bytes.length) => resolve({ bytesWritten: count }),
        fail: () => reject(new Error("ENOSPC: no space left on device")),
      });
      told.resolve();
      told = Promise.withResolvers();
      return promise;
    },
    close: async () => undefined,
  });
  /** The write with this number, once it is made. */
  const write = async (index: number) => {
    while (taken[index] === undefined) await told.promise;
    return taken[index];
  };
  return { openSink, write, taken };
}

const make = (bytesMax: number, openSink?: OpenSink, onChange: () => void = () => undefined): KeptFile =>
  new KeptFile({ path, bytesMax, onChange, openSink });

test("G23: everything taken is on disk when the end resolves, byte for byte, readable by the owner only", async () => {
  const file = make(1_000_000);
  const given = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251));
  for (let at = 0; at < given.length; at += 7_919) file.take(given.subarray(at, at + 7_919));
  await file.end();
  expect(readFileSync(path).equals(given)).toBe(true);
  expect([file.written, file.waiting, file.trouble]).toEqual([given.length, 0, undefined]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("G23: the file ends at its limit, in the middle of a piece", async () => {
  const file = make(5);
  file.take(Buffer.from("abc"));
  file.take(Buffer.from("defg"));
  file.take(Buffer.from("h"));
  await file.end();
  expect(readFileSync(path, "utf8")).toBe("abcde");
  expect(file.trouble).toBeUndefined();
});

test("a limit of zero creates no file and no error", async () => {
  const file = make(0);
  file.take(Buffer.from("abc"));
  await file.end();
  expect(() => statSync(path)).toThrow("ENOENT");
  expect([file.written, file.trouble]).toEqual([0, undefined]);
});

test("one write is in progress at a time, and later bytes are written together", async () => {
  const disk = scriptedDisk();
  const file = make(100, disk.openSink);
  file.take(Buffer.from("a"));
  const first = await disk.write(0);
  file.take(Buffer.from("b"));
  file.take(Buffer.from("c"));
  expect(disk.taken).toHaveLength(1);
  first.answer();
  const second = await disk.write(1);
  expect([second.text, second.position]).toEqual(["bc", 1]);
  second.answer();
  await file.end();
  expect(file.written).toBe(3);
});

test("a partial write is continued where it stopped", async () => {
  const disk = scriptedDisk();
  const file = make(1_000_000, disk.openSink);
  file.take(Buffer.from(`${"x".repeat(70_000)}yz`));
  (await disk.write(0)).answer(69_999);
  const second = await disk.write(1);
  expect([second.text, second.position]).toEqual(["xyz", 69_999]);
  second.answer(1);
  (await disk.write(2)).answer();
  await file.end();
  expect([file.written, file.trouble]).toEqual([70_002, undefined]);
});

test("queued bytes can be read before they are on disk, even if the caller reuses its buffer", async () => {
  const disk = scriptedDisk();
  const file = make(100, disk.openSink);
  const given = Buffer.from("abc");
  file.take(given);
  const first = await disk.write(0);
  given.fill("-");
  file.take(Buffer.from("def"));
  const pending = (from: number, to: number) => Buffer.from(file.pending(from, to) ?? []).toString();
  expect([pending(0, 9), pending(1, 2), pending(3, 9), pending(6, 9)]).toEqual(["abc", "b", "def", ""]);
  first.answer();
  const second = await disk.write(1);
  expect(file.pending(0, 9)).toBeUndefined();
  expect(pending(4, 9)).toBe("ef");
  second.answer();
  await file.end();
  expect(pending(3, 9)).toBe("");
});

test("G23: if the reader does not pause, the queue stays bounded and the file ends there", async () => {
  const disk = scriptedDisk();
  const file = make(Number.MAX_SAFE_INTEGER, disk.openSink);
  const piece = Buffer.alloc(60_000, "x");
  for (let given = 0; given < 2 * WAITING_BYTES_MAX; given += piece.length) {
    file.take(piece);
    expect(file.waiting).toBeLessThanOrEqual(WAITING_BYTES_MAX);
    expect(file.heldBytes).toBeLessThanOrEqual(WAITING_BYTES_MAX + 2 * 64 * 1024);
  }
  expect(file.trouble).toMatch(/did not keep up/);
  (await disk.write(0)).answer();
  await file.end();
  file.take(piece);
  expect([file.written, file.waiting]).toEqual([WAITING_BYTES_MAX, 0]);
});

test("bytes taken one by one need no more memory than one piece", async () => {
  const disk = scriptedDisk();
  const file = make(1_000_000, disk.openSink);
  for (let count = 0; count < 20_000; count += 1) file.take(Buffer.from("x"));
  expect(file.heldBytes).toBeLessThanOrEqual(20_000 + 4_096);
  (await disk.write(0)).answer();
  await file.end();
});

test("a full disk ends the file: written bytes count, queued ones are dropped", async () => {
  const disk = scriptedDisk();
  let changes = 0;
  const file = make(100, disk.openSink, () => {
    changes += 1;
  });
  file.take(Buffer.from("abcdef"));
  (await disk.write(0)).answer(4);
  const second = await disk.write(1);
  file.take(Buffer.from("more"));
  second.fail();
  await file.end();
  file.take(Buffer.from("ignored"));
  expect([file.written, file.waiting, file.heldBytes, changes]).toEqual([4, 0, 0, 1]);
  expect(file.trouble).toMatch(/no space left/);
  expect(file.pending(4, 9)).toBeUndefined();
});

test("a missing directory is reported, and nothing throws", async () => {
  rmSync(dir, { recursive: true });
  const file = make(100);
  file.take(Buffer.from("abc"));
  await file.end();
  expect(file.trouble).toMatch(/ENOENT/);
});

test("an existing file is not overwritten, not even through a link", async () => {
  const target = join(dir, "precious");
  writeFileSync(target, "precious");
  symlinkSync(target, path);
  const file = make(100);
  file.take(Buffer.from("abc"));
  await file.end();
  expect(file.trouble).toMatch(/EEXIST/);
  expect(readFileSync(target, "utf8")).toBe("precious");
});

test("a disk that accepts no bytes is reported, and not retried forever", async () => {
  const { openSink, write } = scriptedDisk();
  const file = make(100, openSink);
  file.take(Buffer.from("abc"));
  (await write(0)).answer(0);
  await file.end();
  expect([file.trouble, file.written, file.waiting, file.heldBytes]).toEqual([
    "the disk accepts no more bytes.",
    0,
    0,
    0,
  ]);
});

test("a file that cannot be closed is reported, because its end may be missing", async () => {
  let changes = 0;
  const openSink: OpenSink = async () => ({
    writev: async (buffers) => ({ bytesWritten: Buffer.concat(buffers).length }),
    close: () => Promise.reject(new Error("EIO: i/o error, close")),
  });
  const file = make(100, openSink, () => {
    changes += 1;
  });
  file.take(Buffer.from("abc"));
  await file.end();
  expect([file.trouble, changes]).toEqual(["EIO: i/o error, close", 2]);
});

test("queued bytes take the memory of their blocks, and none once on disk", async () => {
  const { openSink, write } = scriptedDisk();
  const file = make(1_000_000, openSink);
  file.take(Buffer.alloc(10));
  const first = await write(0);
  // A separate block: the first is being written.
  file.take(Buffer.alloc(BLOCK_BYTES_MIN + 1));
  expect(file.heldBytes).toBe(BLOCK_BYTES_MIN + (BLOCK_BYTES_MIN + 1));
  first.answer();
  (await write(1)).answer();
  await file.end();
  expect(file.heldBytes).toBe(0);
  file.take(Buffer.alloc(10));
  expect([file.written, file.waiting]).toEqual([BLOCK_BYTES_MIN + 11, 0]);
});

test("a piece slightly longer than a block is counted and written exactly", async () => {
  const bytes = Buffer.alloc(BLOCK_BYTES_MAX + 10, "0123456789abcdef");
  const file = make(1_000_000);
  file.take(bytes);
  expect(file.waiting).toBe(bytes.length);
  await file.end();
  expect([file.written, readFileSync(path).equals(bytes)]).toEqual([bytes.length, true]);
});
