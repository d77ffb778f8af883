// The output of a child that has ended, perhaps under an earlier server: the same pages, counts and excerpts, from
// files.
import { lstat } from "node:fs/promises";
import type { Excerpt, OutputCounts, OutputFile, OutputPage, OutputPageOptions, Stream } from "../../ports/spawner.ts";
import { type Ends, loadCounts, type Saved, streamPath } from "./counts-file.ts";
import { readRange, sizeOf } from "./disk-read.ts";
import { HEAD_BYTES, PAGE_BYTES_MAX, TAIL_BYTES } from "./limits.ts";
import { countLineEnds } from "./line-ends.ts";
import { excerptOf, readPage, streamOf } from "./output-page.ts";
import type { Source } from "./source.ts";

export interface SavedOutput extends OutputFile {
  /**
   * Whether the end of the child was recorded. Otherwise the server that captured it died first: only the bytes on disk
   * are known, and more may have been written.
   */
  readonly complete: boolean;
}

/** Undefined: the directory does not exist. */
export async function openOutput(dir: string): Promise<SavedOutput | undefined> {
  const folder = await lstat(dir).catch(() => undefined);
  if (!folder?.isDirectory()) return undefined;
  const saved = await loadCounts(dir);
  const found = saved ?? (await derive(dir));
  const sources = {
    stdout: await openStream(dir, "stdout", found),
    stderr: await openStream(dir, "stderr", found),
    all: await openStream(dir, "all", found),
  };
  const kept = { stdout: sources.stdout.kept, stderr: sources.stderr.kept, all: sources.all.kept };
  const counts: OutputCounts = { ...found.counts, kept };
  return {
    dir,
    counts,
    complete: saved !== undefined,
    read: async (options: OutputPageOptions = {}): Promise<OutputPage> => readPage(sources[streamOf(options)], options),
    excerpt: (options = {}): Excerpt => excerptOf(sources[streamOf(options)], options),
  };
}

/**
 * Counts from file sizes. Each file is written separately, so `all` may be shorter or longer than the sum of the
 * others.
 */
async function derive(dir: string): Promise<Saved> {
  const size = async (stream: Stream): Promise<number> => (await sizeOf(await pathOf(dir, stream))) ?? 0;
  const kept = { stdout: await size("stdout"), stderr: await size("stderr"), all: await size("all") };
  const bytes = { ...kept, all: Math.max(kept.all, kept.stdout + kept.stderr) };
  return { counts: { bytes, kept, lines: await linesIn(await pathOf(dir, "all")) }, ends: {} };
}

/** With only one stream, as for a terminal, `all` has no separate file. */
async function pathOf(dir: string, stream: Stream): Promise<string> {
  const path = streamPath(dir, stream);
  if (stream !== "all" || (await sizeOf(path)) !== undefined) return path;
  const others = [streamPath(dir, "stdout"), streamPath(dir, "stderr")];
  const sizes = await Promise.all(others.map(sizeOf));
  const [only, another] = others.filter((_, index) => sizes[index] !== undefined);
  return only !== undefined && another === undefined ? only : path;
}

async function linesIn(path: string): Promise<number> {
  let lines = 0;
  for (let at = 0; ; ) {
    const bytes = await readRange(path, at, at + PAGE_BYTES_MAX);
    if (bytes === undefined) return lines;
    lines += countLineEnds(bytes);
    at += bytes.length;
  }
}

async function openStream(dir: string, stream: Stream, { counts, ends }: Saved): Promise<Source & { kept: number }> {
  const path = await pathOf(dir, stream);
  const total = counts.bytes[stream];
  // The file may have been shortened since, and a write that failed half-way may have left more than was counted.
  const kept = Math.min(counts.kept[stream], (await sizeOf(path)) ?? 0);
  const { head, tail } = ends[stream] ?? (await endsIn(path, kept, total));
  const tailFrom = total - tail.length;
  return {
    stream,
    total,
    kept,
    ended: true,
    memory: (from, to) => {
      if (from < head.length) return head.subarray(from, to);
      return from >= tailFrom && from < total ? tail.subarray(from - tailFrom, to - tailFrom) : undefined;
    },
    disk: async (from, to) => (from < kept ? readRange(path, from, Math.min(to, kept)) : undefined),
    next: (from) => Math.max(from, tailFrom),
  };
}

/** The head and tail from the file. If it ends before the stream does, the tail is lost. */
async function endsIn(path: string, kept: number, total: number): Promise<Ends> {
  const nothing = new Uint8Array();
  const head = (await readRange(path, 0, Math.min(kept, HEAD_BYTES))) ?? nothing;
  const tailFrom = Math.max(head.length, kept - TAIL_BYTES);
  const tail = kept === total ? await readRange(path, tailFrom, kept) : undefined;
  return { head, tail: tail?.length === kept - tailFrom ? tail : nothing };
}
