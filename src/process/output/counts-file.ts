// The record of complete output: its counts, and the head and tail of streams whose files do not have them.
//
// It is written under another name and renamed, so a reader finds all of it or none. It is not synced: a power loss
// loses the counts of running output, and the size of its files still shows what was kept.
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OutputCounts, Stream } from "../../ports/spawner.ts";
import { readRange } from "./disk-read.ts";
import { COUNTS_BYTES_MAX } from "./limits.ts";

const VERSION = 1;

/** The head and tail of a stream that is longer than its file: the file reached its limit, or could not be written. */
export interface Ends {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
}

export interface Saved {
  readonly counts: OutputCounts;
  readonly ends: Readonly<Partial<Record<Stream, Ends>>>;
}

export const streamPath = (dir: string, stream: Stream): string => join(dir, `${stream}.log`);

const countsPath = (dir: string): string => join(dir, "counts.json");

export async function saveCounts(dir: string, { counts, ends }: Saved): Promise<void> {
  const path = countsPath(dir);
  const written = Object.entries(ends).map(([stream, { head, tail }]) => [
    stream,
    { head: coded(head), tail: coded(tail) },
  ]);
  const text = JSON.stringify({ version: VERSION, ...counts, ends: Object.fromEntries(written) });
  try {
    await writeFile(`${path}.new`, text, { flag: "wx", mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    await rm(`${path}.new`, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Undefined: the output was never completed, or the file is not Belay's. */
export async function loadCounts(dir: string): Promise<Saved | undefined> {
  const bytes = await readRange(countsPath(dir), 0, COUNTS_BYTES_MAX);
  if (bytes === undefined) return undefined;
  try {
    return savedOf(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch {
    return undefined;
  }
}

function savedOf(value: unknown): Saved | undefined {
  if (!isRecord(value) || value.version !== VERSION || !isRecord(value.ends)) return undefined;
  const bytes = perStream(value.bytes);
  const kept = perStream(value.kept);
  const ends = Object.entries(value.ends).flatMap(([stream, one]) => {
    if (!isRecord(one) || typeof one.head !== "string" || typeof one.tail !== "string") return [];
    return [[stream, { head: decoded(one.head), tail: decoded(one.tail) }]];
  });
  if (bytes === undefined || kept === undefined || !isCount(value.lines)) return undefined;
  return { counts: { bytes, kept, lines: value.lines }, ends: Object.fromEntries(ends) };
}

function perStream(value: unknown): Record<Stream, number> | undefined {
  if (!isRecord(value)) return undefined;
  const { stdout, stderr, all } = value;
  return isCount(stdout) && isCount(stderr) && isCount(all) ? { stdout, stderr, all } : undefined;
}

const coded = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
const decoded = (text: string): Uint8Array => Buffer.from(text, "base64");
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
