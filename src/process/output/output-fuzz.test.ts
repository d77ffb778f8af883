// Any bytes in any pieces, read back in any pages, are the bytes that were written.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OutputFile, OutputPage, Stream } from "../../ports/spawner.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { Capture } from "./capture.ts";
import { openOutput } from "./saved-output.ts";

const STREAMS = ["stdout", "stderr", "all"] as const;

let root: string;
let count = 0;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "belay-output-"));
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

function newDir(): string {
  count += 1;
  const dir = join(root, String(count));
  mkdirSync(dir, { mode: 0o700 });
  return dir;
}

const whole = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Text, invalid bytes, and bytes that only just are or are not part of a character. */
const bytes = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }).map((text) => [...Buffer.from(text)]),
      fc.array(fc.constantFrom(0x0a, 0x41, 0x80, 0xa0, 0xbf, 0xc3, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xff), {
        maxLength: 6,
      }),
      fc.array(fc.nat({ max: 255 }), { maxLength: 12 }),
    ),
    { maxLength: 8 },
  )
  .map((pieces) => Uint8Array.from(pieces.flat()));

const takes = fc.array(fc.record({ from: fc.constantFrom("stdout" as const, "stderr" as const), bytes }), {
  maxLength: 20,
});
const sizes = fc.record({ headBytes: fc.nat({ max: 40 }), tailBytes: fc.integer({ min: 1, max: 40 }) });
const pageSizes = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 5 });

type Takes = readonly { readonly from: "stdout" | "stderr"; readonly bytes: Uint8Array }[];

const written = (given: Takes, stream: Stream): Buffer =>
  Buffer.concat(given.filter(({ from }) => stream === "all" || from === stream).map((one) => one.bytes));

const lineEnds = (given: Takes): number => written(given, "all").filter((byte) => byte === 0x0a).length;

/** Pages from `offset` on, until one is empty or the last. */
async function pagesFrom(file: OutputFile, stream: Stream, offset: number, max: readonly number[]) {
  const pages: OutputPage[] = [];
  for (let at = offset; ; ) {
    const bytesMax = max[pages.length % max.length] ?? 1;
    const page = await file.read({ stream, offset: at, bytesMax });
    expect(page.to - page.from).toBeLessThanOrEqual(Math.max(4, bytesMax));
    if (page.to > page.from || page.missing > 0) pages.push(page);
    if (page.end || page.to === at) return pages;
    at = page.to;
  }
}

const textOfAll = (pages: readonly OutputPage[]): string => pages.map((page) => page.text).join("");

test("G23: pages of any size, read during and after the capture, add up to the whole text", {
  meta: { id: "G23/pages-add-up" },
}, async () => {
  await fc.assert(
    fc.asyncProperty(takes, sizes, pageSizes, async (given, size, max) => {
      const dir = newDir();
      const capture = new Capture({ dir, clock: manualClock(), ...size });
      const live: Record<Stream, OutputPage[]> = { stdout: [], stderr: [], all: [] };
      for (const one of given) {
        capture.take(one.from, one.bytes);
        for (const stream of STREAMS) {
          live[stream].push(...(await pagesFrom(capture, stream, live[stream].at(-1)?.to ?? 0, max)));
        }
      }
      await capture.end();
      const saved = await openOutput(dir);
      for (const stream of STREAMS) {
        const expected = whole(written(given, stream));
        live[stream].push(...(await pagesFrom(capture, stream, live[stream].at(-1)?.to ?? 0, max)));
        expect(textOfAll(live[stream])).toBe(expected);
        expect(textOfAll(await pagesFrom(capture, stream, 0, max))).toBe(expected);
        expect(saved && textOfAll(await pagesFrom(saved, stream, 0, max))).toBe(expected);
      }
    }),
    { numRuns: 60 },
  );
});

test("G23: counts are exact, each file is its stream, and all.log has everything in order of arrival", async () => {
  await fc.assert(
    fc.asyncProperty(takes, async (given) => {
      const dir = newDir();
      const capture = new Capture({ dir, clock: manualClock() });
      for (const one of given) capture.take(one.from, one.bytes);
      await capture.end();
      const sizesOf = Object.fromEntries(STREAMS.map((stream) => [stream, written(given, stream).length]));
      const counts = { bytes: sizesOf, kept: sizesOf, lines: lineEnds(given) };
      expect(capture.counts).toEqual(counts);
      expect((await openOutput(dir))?.counts).toEqual(counts);
      for (const stream of STREAMS) {
        if (sizesOf[stream] === 0) continue;
        expect(readFileSync(join(dir, `${stream}.log`)).equals(written(given, stream))).toBe(true);
      }
    }),
    { numRuns: 60 },
  );
});

/** Every byte is in a page or reported missing; the text of each page is that of its range. */
function checkPages(pages: readonly OutputPage[], bytes: Buffer, kept: number, tailBytes: number): void {
  let at = 0;
  for (const page of pages) {
    expect(page.from).toBe(at + page.missing);
    expect(page.text).toBe(whole(bytes.subarray(page.from, page.to)));
    at = page.to;
  }
  expect(at).toBe(bytes.length);
  const holes = pages.filter((page) => page.missing > 0);
  const hole = Math.max(0, bytes.length - tailBytes - kept);
  // The rest of a character that was torn apart by the gap counts as missing.
  const missing = holes.reduce((sum, page) => sum + page.missing, 0);
  expect(holes.length).toBeLessThanOrEqual(1);
  expect(missing).toBeGreaterThanOrEqual(hole);
  expect(missing).toBeLessThanOrEqual(hole === 0 ? 0 : hole + 3);
}

test("G23: beyond the limit everything is counted, the end is kept, and the gap is reported to the byte", async () => {
  await fc.assert(
    fc.asyncProperty(takes, sizes, pageSizes, fc.nat({ max: 120 }), async (given, size, max, outputBytesMax) => {
      const dir = newDir();
      const capture = new Capture({ dir, clock: manualClock(), outputBytesMax, ...size });
      for (const one of given) capture.take(one.from, one.bytes);
      await capture.end();
      const saved = await openOutput(dir);
      expect(saved?.counts).toEqual(capture.counts);
      expect(capture.counts.lines).toBe(lineEnds(given));
      for (const stream of STREAMS) {
        const expected = written(given, stream);
        const kept = Math.min(expected.length, outputBytesMax);
        expect([capture.counts.bytes[stream], capture.counts.kept[stream]]).toEqual([expected.length, kept]);
        const pages = await pagesFrom(capture, stream, 0, max);
        checkPages(pages, expected, Math.max(kept, Math.min(expected.length, size.headBytes)), size.tailBytes);
        expect(saved && (await pagesFrom(saved, stream, 0, max))).toEqual(pages);
      }
    }),
    { numRuns: 80 },
  );
});

test("G23: an offset inside a character moves on to the next", async () => {
  await fc.assert(
    fc.asyncProperty(bytes, sizes, fc.nat({ max: 300 }), async (given, size, offset) => {
      const capture = new Capture({ dir: newDir(), clock: manualClock(), ...size });
      capture.take("stdout", given);
      await capture.end();
      const page = await capture.read({ stream: "stdout", offset });
      const before = whole(given.subarray(0, page.from));
      expect(page.from - offset).toBeLessThanOrEqual(3);
      expect(page.missing).toBe(0);
      expect(before + page.text).toBe(whole(given));
    }),
    { numRuns: 150 },
  );
});

test("G23: an excerpt is the beginning and the end, and the omitted bytes are counted exactly", async () => {
  await fc.assert(
    fc.asyncProperty(takes, fc.integer({ min: 4, max: 400 }), fc.nat({ max: 120 }), async (given, bytesMax, limit) => {
      const dir = newDir();
      const capture = new Capture({ dir, clock: manualClock(), outputBytesMax: limit });
      for (const one of given) capture.take(one.from, one.bytes);
      await capture.end();
      const bytes = written(given, "all");
      const { head, tail, omitted } = capture.excerpt({ bytesMax });
      expect((await openOutput(dir))?.excerpt({ bytesMax })).toEqual({ head, tail, omitted });
      if (bytes.length <= bytesMax)
        expect({ head, tail, omitted }).toEqual({ head: whole(bytes), tail: "", omitted: 0 });
      else {
        const half = Math.floor(bytesMax / 2);
        const fits = [0, 1, 2, 3].some((back) => {
          const headTo = half - back;
          const tailFrom = headTo + omitted;
          if (tailFrom < bytes.length - half || tailFrom > bytes.length - half + 3) return false;
          return whole(bytes.subarray(0, headTo)) === head && whole(bytes.subarray(tailFrom)) === tail;
        });
        expect(fits).toBe(true);
      }
    }),
    { numRuns: 150 },
  );
});
