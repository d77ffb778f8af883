import { expect, test } from "vitest";
import { AUDIT_BLOCK_BYTES, AUDIT_LINE_BYTES_MAX } from "../limits.ts";
import { linesBefore, type ScannedLine } from "./audit-scan.ts";

/** Reads the lines of a text as if it were a file, backwards from `end`. */
async function scan(text: string, end = Buffer.byteLength(text)): Promise<readonly ScannedLine[]> {
  const bytes = Buffer.from(text, "utf8");
  const read = async (buffer: Buffer, offset: number, length: number, position: number) => {
    // Returns less than requested, as a disk may do.
    const bytesRead = bytes.subarray(position, position + Math.min(length, 50_000)).copy(buffer, offset);
    return { bytesRead, buffer };
  };
  const lines: ScannedLine[] = [];
  for await (const line of linesBefore({ read: read as never }, end)) lines.push(line);
  return lines;
}

test("lines are returned newest first, each with its offset", async () => {
  expect(await scan("a\nbé\n\nc\n")).toEqual([
    { text: "c", at: 7 },
    { text: "", at: 6 },
    { text: "bé", at: 2 },
    { text: "a", at: 0 },
  ]);
});

test("bytes after the last line break are not a line, and neither is half a line before a cursor", async () => {
  expect(await scan("a\nb\ntorn")).toEqual([
    { text: "b", at: 2 },
    { text: "a", at: 0 },
  ]);
  expect(await scan("aaa\nbbb\nccc\n", 6)).toEqual([{ text: "aaa", at: 0 }]);
  expect(await scan("aaa\n", 0)).toEqual([]);
});

test("a line is complete wherever the block boundaries are", async () => {
  for (const around of [-2, -1, 0, 1, 2]) {
    const long = "é".repeat(AUDIT_BLOCK_BYTES / 4);
    const texts = ["first", "x".repeat(AUDIT_BLOCK_BYTES / 2 + around), long, "last"];
    const lines = await scan(`${texts.join("\n")}\n`);
    expect(lines.map(({ text }) => text)).toEqual(texts.toReversed());
  }
});

test("G33: a line longer than any record is never buffered, and the lines before it are found", async () => {
  const lines = await scan(`first\n${"x".repeat(AUDIT_LINE_BYTES_MAX * 20)}\nlast\n`);
  expect(lines.filter(({ text }) => text !== "").map(({ text }) => text)).toEqual(["last", "first"]);
});

test("a file that was truncated ends the scan", async () => {
  expect(await scan("a\nb\n", 1_000_000)).toEqual([]);
});
