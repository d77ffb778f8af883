import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { Capture, type CaptureOptions } from "./capture.ts";
import type { OpenSink } from "./kept-file.ts";
import { openOutput } from "./saved-output.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-output-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function ended(options: Partial<CaptureOptions>, ...said: readonly (readonly ["stdout" | "stderr", string])[]) {
  const capture = new Capture({ dir, clock: manualClock(), ...options });
  for (const [stream, text] of said) capture.take(stream, Buffer.from(text));
  await capture.end();
  return capture;
}

test("G23: a later server reads the same counts, pages and excerpts", async () => {
  const capture = await ended({}, ["stdout", "one\n"], ["stderr", "two €\n"], ["stdout", "three"]);
  const saved = await openOutput(dir);
  expect(saved).toMatchObject({ dir, complete: true, counts: capture.counts });
  for (const stream of ["stdout", "stderr", "all"] as const) {
    expect(await saved?.read({ stream })).toEqual(await capture.read({ stream }));
    expect(saved?.excerpt({ stream })).toEqual(capture.excerpt({ stream }));
  }
  expect(await saved?.read({ stream: "stderr", offset: 5 })).toMatchObject({ from: 7, text: "\n", end: true });
});

test("G23: beyond the limit a later server still has the tail and the full counts", async () => {
  const capture = await ended({ outputBytesMax: 4, headBytes: 2, tailBytes: 3 }, ["stdout", "abcdefghijkl\n"]);
  const saved = await openOutput(dir);
  expect(saved?.counts).toEqual(capture.counts);
  expect(saved?.counts).toMatchObject({ bytes: { stdout: 13 }, kept: { stdout: 4 }, lines: 1 });
  expect(await saved?.read()).toMatchObject({ from: 0, to: 4, text: "abcd", end: false });
  expect(await saved?.read({ offset: 4 })).toMatchObject({ from: 10, to: 13, text: "kl\n", missing: 6, end: true });
});

test("after a full disk head and tail remain, if the counts could be written", async () => {
  const openSink: OpenSink = () => Promise.reject(new Error("ENOSPC: no space left on device, open"));
  await ended({ openSink, headBytes: 3, tailBytes: 3 }, ["stderr", "abcdefghi"]);
  expect(readdirSync(dir)).toEqual(["counts.json"]);
  const saved = await openOutput(dir);
  expect(saved?.counts).toMatchObject({ bytes: { stderr: 9, all: 9 }, kept: { stderr: 0, all: 0 } });
  expect(saved?.excerpt({ stream: "stderr" })).toEqual({ head: "abc", tail: "ghi", omitted: 3 });
});

test("for a terminal, which has one file, all is that file", async () => {
  await ended({ streams: "one", outputBytesMax: 6 }, ["stdout", "prompt> \n"]);
  for (const complete of [true, false]) {
    if (!complete) unlinkSync(join(dir, "counts.json"));
    const saved = await openOutput(dir);
    expect(saved?.complete).toBe(complete);
    expect(await saved?.read({ stream: "all" })).toMatchObject({
      stream: "all",
      from: 0,
      text: complete ? "prompt> \n" : "prompt",
    });
    expect(saved?.counts.kept).toEqual({ stdout: 6, stderr: 0, all: 6 });
  }
});

test("after a crash the files show what was kept, marked as incomplete", async () => {
  writeFileSync(join(dir, "stdout.log"), "one\ntwo\n");
  writeFileSync(join(dir, "stderr.log"), "oops\n");
  writeFileSync(join(dir, "all.log"), "one\noops\n");
  const saved = await openOutput(dir);
  expect(saved?.complete).toBe(false);
  expect(saved?.counts).toEqual({
    bytes: { stdout: 8, stderr: 5, all: 13 },
    kept: { stdout: 8, stderr: 5, all: 9 },
    lines: 2,
  });
  expect(await saved?.read()).toMatchObject({ to: 9, text: "one\noops\n", end: false });
  expect(await saved?.read({ offset: 9 })).toMatchObject({ from: 13, to: 13, text: "", missing: 4, end: true });
  expect(await saved?.read({ stream: "stdout" })).toMatchObject({ text: "one\ntwo\n", end: true });
  expect(saved?.excerpt()).toEqual({ head: "one\noops\n", tail: "", omitted: 4 });
});

test("after a crash without all.log, two streams have no known order, and a single one is all", async () => {
  writeFileSync(join(dir, "stderr.log"), "oops\n");
  expect(await (await openOutput(dir))?.read()).toMatchObject({ text: "oops\n" });
  writeFileSync(join(dir, "stdout.log"), "one\n");
  expect(await (await openOutput(dir))?.read()).toMatchObject({ text: "", missing: 9, end: true });
});

const COUNTS = { bytes: { stdout: 9, stderr: 0, all: 9 }, kept: { stdout: 0, stderr: 0, all: 0 }, lines: 0, ends: {} };

test.each([
  ["nothing", ""],
  ["half a value", "{"],
  ["null", "null"],
  ["a list", "[1]"],
  ["a newer version", JSON.stringify({ ...COUNTS, version: 2 })],
  ["a negative number", JSON.stringify({ ...COUNTS, version: 1, bytes: { ...COUNTS.bytes, stdout: -1 } })],
  ["an invalid number", JSON.stringify({ ...COUNTS, version: 1, lines: "many" })],
  ["an invalid number of kept bytes", JSON.stringify({ ...COUNTS, version: 1, kept: { ...COUNTS.kept, all: 1.5 } })],
  ["no kept bytes", JSON.stringify({ ...COUNTS, version: 1, kept: undefined })],
  ["a string in place of counts", JSON.stringify({ ...COUNTS, version: 1, bytes: "many" })],
  ["null in place of counts", JSON.stringify({ ...COUNTS, version: 1, bytes: null })],
  ["no ends", JSON.stringify({ ...COUNTS, version: 1, ends: undefined })],
  ["null in place of ends", JSON.stringify({ ...COUNTS, version: 1, ends: null })],
  ["a text", '"counts"'],
])("invalid counts are ignored: %s", async (_, text) => {
  await ended({}, ["stdout", "hello\n"]);
  writeFileSync(join(dir, "counts.json"), text);
  const saved = await openOutput(dir);
  expect(saved).toMatchObject({ complete: false, counts: { bytes: { all: 6 }, kept: { all: 6 }, lines: 1 } });
});

test("after a crash a file that is shorter than its stream has no tail, rather than a wrong one", async () => {
  const text = "0123456789abcde\n".repeat(8_192);
  writeFileSync(join(dir, "stdout.log"), text);
  writeFileSync(join(dir, "stderr.log"), "oops\n");
  writeFileSync(join(dir, "all.log"), text);
  const saved = await openOutput(dir);
  expect(await saved?.read({ offset: text.length - 16 })).toMatchObject({ text: "0123456789abcde\n", end: false });
  expect(await saved?.read({ offset: text.length })).toMatchObject({ missing: 5, text: "", end: true });
  expect(saved?.excerpt({ bytesMax: 8 })).toEqual({ head: "0123", tail: "", omitted: text.length + 1 });
  expect(saved?.excerpt({ stream: "stdout", bytesMax: 8 }).tail).toBe("cde\n");
});

test("a file that was shortened since is served as far as it goes", async () => {
  await ended({}, ["stdout", "abcdef"]);
  truncateSync(join(dir, "stdout.log"), 2);
  const saved = await openOutput(dir);
  expect(saved?.counts).toMatchObject({ bytes: { stdout: 6 }, kept: { stdout: 2 } });
  expect(await saved?.read({ stream: "stdout" })).toMatchObject({ to: 2, text: "ab", end: false });
  expect(await saved?.read({ stream: "stdout", offset: 2 })).toMatchObject({
    from: 6,
    missing: 4,
    text: "",
    end: true,
  });
});

test("a missing directory has no output; an empty one belongs to a child without output at the crash", async () => {
  expect(await openOutput(join(dir, "none"))).toBeUndefined();
  const saved = await openOutput(dir);
  expect(saved).toMatchObject({ complete: false, counts: { bytes: { all: 0 }, lines: 0 } });
  expect(await saved?.read()).toMatchObject({ text: "", end: true });
  expect(saved?.excerpt()).toEqual({ head: "", tail: "", omitted: 0 });
});

test.each([
  ["null", null],
  ["a text", "abc"],
  ["no head", { tail: "eHl6" }],
  ["no tail", { head: "YWJj" }],
  ["numbers", { head: 1, tail: 2 }],
])("an invalid end is ignored, and the others are used: %s", async (_, stdout) => {
  const ends = { stdout, all: { head: "YWJj", tail: "eHl6" } };
  writeFileSync(join(dir, "counts.json"), JSON.stringify({ ...COUNTS, version: 1, ends }));
  const saved = await openOutput(dir);
  expect(saved?.complete).toBe(true);
  expect(saved?.excerpt({ stream: "all" })).toEqual({ head: "abc", tail: "xyz", omitted: 3 });
  expect(saved?.excerpt({ stream: "stdout" })).toEqual({ head: "", tail: "", omitted: 9 });
});

test("counts that cannot be renamed into place leave no draft, and are private to their owner", async () => {
  await ended({}, ["stdout", "hello\n"]);
  expect(statSync(join(dir, "counts.json")).mode & 0o777).toBe(0o600);
  rmSync(join(dir, "counts.json"));
  rmSync(join(dir, "stdout.log"));
  rmSync(join(dir, "all.log"));
  mkdirSync(join(dir, "counts.json"));
  const capture = await ended({}, ["stdout", "hello\n"]);
  expect(capture.trouble).toContain(`The counts could not be written to ${dir}: `);
  expect(readdirSync(dir).toSorted()).toEqual(["all.log", "counts.json", "stdout.log"]);
});

test("an existing draft is not overwritten", async () => {
  writeFileSync(join(dir, "counts.json.new"), "theirs");
  const capture = await ended({});
  expect(capture.trouble).toContain("EEXIST");
});

test("after a crash all.log is used even beside a single stream, and every line is counted", async () => {
  writeFileSync(join(dir, "stdout.log"), "one\n");
  writeFileSync(join(dir, "all.log"), `${"x".repeat(2 ** 20)}\ntwo\n`);
  const saved = await openOutput(dir);
  expect(saved?.counts).toMatchObject({ kept: { stdout: 4, stderr: 0, all: 2 ** 20 + 5 }, lines: 2 });
});

test("reading leaves no file open", async () => {
  await ended({}, ["stdout", "hello\n"], ["stderr", "oh\n"]);
  const openHere = (): readonly string[] =>
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/self/fd/${fd}`);
        return target.startsWith(dir) ? [target] : [];
      } catch {
        return [];
      }
    });
  const saved = await openOutput(dir);
  await saved?.read();
  expect(openHere()).toEqual([]);
});

test("bytes in a file beyond the counts are not output", async () => {
  await ended({ outputBytesMax: 4, headBytes: 2, tailBytes: 3 }, ["stdout", "abcdefghijkl\n"]);
  for (const name of ["stdout.log", "all.log"]) appendFileSync(join(dir, name), "JUNK");
  const saved = await openOutput(dir);
  expect(await saved?.read()).toMatchObject({ from: 0, to: 4, text: "abcd", end: false });
  expect(await saved?.read({ offset: 4 })).toMatchObject({ from: 10, to: 13, text: "kl\n", missing: 6, end: true });
});
