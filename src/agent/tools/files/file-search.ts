// Searches the files of the workspace for a text or a regular expression.
//
// A regular expression from a model is not trusted: some never finish, and block their thread meanwhile.
// `file-tools.ts` therefore runs them in a worker thread, which can be terminated.
import { lstat } from "node:fs/promises";
import { listed } from "./file-errors.ts";
import { globMatcher } from "./file-glob.ts";
import {
  SEARCH_FILE_BYTES_MAX,
  SEARCH_FILES_AT_ONCE,
  SEARCH_LINE_CHARS,
  SEARCH_RESULT_LINES_MAX,
} from "./file-limits.ts";
import { isBinary } from "./file-lines.ts";
import { type FilePath, locate, openFile, type Workspace } from "./file-path.ts";
import { type LeftOut, nothingLeftOut, walk } from "./file-walk.ts";

/** Plain data, because it is passed to a worker thread. */
export interface SearchRequest {
  readonly ground: Workspace;
  readonly query: string;
  readonly kind: "text" | "expression";
  readonly ignoreCase: boolean;
  /** A directory or a file. */
  readonly path: string;
  readonly pattern: string | undefined;
}

interface SearchCall {
  readonly signal: AbortSignal;
  readonly partial: (found: string) => void;
}

interface Tally {
  readonly lines: string[];
  readonly left: LeftOut;
  searched: number;
  large: number;
  full: boolean;
}

/** Returns the report for the model. Reports partial results as they are found. */
export async function searchFiles(request: SearchRequest, { signal, partial }: SearchCall): Promise<string> {
  const place = await locate(request.ground, request.path);
  const fits = tester(request);
  const tally: Tally = { lines: [], left: nothingLeftOut(), searched: 0, large: 0, full: false };
  let batch: FilePath[] = [];
  const searchBatch = async (): Promise<void> => {
    const texts = await Promise.all(batch.map((file) => readText(file, tally, signal)));
    for (const [index, file] of batch.entries()) {
      const before = tally.lines.length;
      searchOne(file.name, texts[index], fits, tally);
      // Reported at once instead of after the batch: the expression may never finish on the next file.
      if (tally.lines.length > before) partial(tally.lines.join("\n"));
    }
    batch = [];
  };
  for await (const file of filesOf(place, request, tally.left, signal)) {
    batch.push(file);
    if (batch.length >= SEARCH_FILES_AT_ONCE) await searchBatch();
    if (tally.full) break;
  }
  await searchBatch();
  return report(tally);
}

function tester({ query, kind, ignoreCase }: SearchRequest): (line: string) => boolean {
  if (kind === "expression") {
    const expression = new RegExp(query, ignoreCase ? "i" : "");
    return (line) => expression.test(line);
  }
  if (!ignoreCase) return (line) => line.includes(query);
  const wanted = query.toLowerCase();
  return (line) => line.toLowerCase().includes(wanted);
}

async function* filesOf(
  place: FilePath,
  { pattern }: SearchRequest,
  left: LeftOut,
  signal: AbortSignal,
): AsyncGenerator<FilePath> {
  if (place.missing.length > 0 || !(await lstat(place.path)).isDirectory()) {
    // A file named by the model reports its error; among many files it is only counted.
    await (await openFile(place)).close();
    yield place;
    return;
  }
  const fits = pattern === undefined ? () => true : globMatcher(pattern);
  for await (const { kind, path, name } of walk(place, { depth: "all", signal }, left)) {
    if (kind === "file" && fits(name)) yield { ...place, path, name, there: path, missing: [] };
  }
}

function searchOne(name: string, text: string | undefined, fits: (line: string) => boolean, tally: Tally): void {
  if (text === undefined || tally.full) return;
  tally.searched += 1;
  for (const [index, given] of text.split("\n").entries()) {
    const line = given.endsWith("\r") ? given.slice(0, -1) : given;
    if (!fits(line)) continue;
    if (tally.lines.length >= SEARCH_RESULT_LINES_MAX) {
      tally.full = true;
      return;
    }
    const shownLine = line.length > SEARCH_LINE_CHARS ? `${line.slice(0, SEARCH_LINE_CHARS)}…` : line;
    tally.lines.push(`${listed(name)}:${index + 1}: ${shownLine}`);
  }
}

/** Undefined if the file is binary, too large or unreadable. */
async function readText(file: FilePath, tally: Tally, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted();
  const handle = await openFile(file).catch(() => undefined);
  if (handle === undefined) {
    tally.left.closed += 1;
    return undefined;
  }
  try {
    const { size } = await handle.stat();
    if (size > SEARCH_FILE_BYTES_MAX) {
      tally.large += 1;
      return undefined;
    }
    // Reads no more than its size now, in case it grows.
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size), 0, size, 0);
    const bytes = buffer.subarray(0, bytesRead);
    return isBinary(bytes) ? undefined : new TextDecoder().decode(bytes);
  } finally {
    await handle.close();
  }
}

function report({ lines, left, searched, large, full }: Tally): string {
  const count = `${lines.length} ${lines.length === 1 ? "line" : "lines"} in ${searched} files.`;
  const head = lines.length === 0 ? `Nothing was found in ${searched} files.` : full ? `The first ${count}` : count;
  return [
    head,
    ...(full ? ["There is more: narrow the search with `path`, `pattern` or a longer text."] : []),
    ...(large > 0 ? [`${large} files larger than ${SEARCH_FILE_BYTES_MAX} bytes were not searched.`] : []),
    ...leftOutReport(left),
    ...lines,
  ].join("\n");
}

/** Describes what a walk has left out. */
export function leftOutReport({ skipped, closed, cut }: LeftOut): readonly string[] {
  return [
    ...(skipped.size > 0 ? [`Not entered: ${[...skipped].toSorted().join(", ")}.`] : []),
    ...(closed > 0 ? [`${closed} could not be opened.`] : []),
    ...(cut ? ["The tree is too large for one search: name a directory of it."] : []),
  ];
}
