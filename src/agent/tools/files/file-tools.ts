// Tools with which a model reads, searches, writes and edits the files of the workspace.
//
// Invariants
// 1. Only paths within the workspace are read, listed, searched or written, with links resolved (`file-path.ts`).
// 2. Writing and editing need approval by default.
// 3. A write is atomic. A file that has changed since the session read it is not overwritten.
// 4. Results are bounded, and say so where they are cut.

import { messageOf } from "../../../core/errors.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import { workerFile } from "../../../system/worker-file.ts";
import { type Tool, tool } from "../tool.ts";
import { untrusted } from "../untrusted.ts";
import { editFile, writeFile } from "./file-edit.ts";
import { invalid, listed, shown } from "./file-errors.ts";
import { globMatcher } from "./file-glob.ts";
import { LIST_RESULT_ENTRIES_MAX, SEARCH_MS } from "./file-limits.ts";
import { type LinesRead, readLines } from "./file-lines.ts";
import { locate, notThere, openFile } from "./file-path.ts";
import { leftOutReport, type SearchRequest, searchFiles } from "./file-search.ts";
import {
  EDIT_FILE_INPUT,
  LIST_FILES_INPUT,
  type ListFilesInput,
  READ_FILE_INPUT,
  type ReadFileInput,
  SEARCH_FILES_INPUT,
  type SearchFilesInput,
  WRITE_FILE_INPUT,
} from "./file-tools-input.ts";
import {
  checkFileOptions,
  type FileToolName,
  type FileToolsContext,
  type FileToolsOptions,
  groundOf,
  writeApproval,
} from "./file-tools-options.ts";
import { nothingLeftOut, type WalkEntry, walk } from "./file-walk.ts";
import { versionOf } from "./file-write.ts";

/** Returns the tools by name. Pass all or some of them to an agent. */
export function fileTools(options: FileToolsOptions = {}): Readonly<Record<FileToolName, Tool>> {
  const context = checkFileOptions(options);
  const { read_file, list_files, search_files, write_file, edit_file } = options.approval ?? {};
  return {
    read_file: tool({
      description: READ,
      input: READ_FILE_INPUT,
      approval: read_file ?? false,
      idempotent: true,
      execute: (input, call) => read(context, input, call),
    }),
    list_files: tool({
      description: LIST,
      input: LIST_FILES_INPUT,
      approval: list_files ?? false,
      idempotent: true,
      execute: (input, call) => list(context, input, call),
    }),
    search_files: tool({
      description: SEARCH,
      input: SEARCH_FILES_INPUT,
      approval: search_files ?? false,
      idempotent: true,
      execute: (input, call) => search(context, input, call),
    }),
    write_file: tool({
      description: WRITE,
      input: WRITE_FILE_INPUT,
      approval: writeApproval("write_file", write_file),
      execute: (input, call) => writeFile(context, input, call),
    }),
    edit_file: tool({
      description: EDIT,
      input: EDIT_FILE_INPUT,
      approval: writeApproval("edit_file", edit_file),
      execute: (input, call) => editFile(context, input, call),
    }),
  };
}

const READ =
  "Reads a text file of the workspace with line numbers: all of it, or some lines. Says where to continue if cut.";
const LIST =
  "Lists a directory of the workspace, or, with a pattern, all matching files below it. Directories end with /.";
const SEARCH =
  "Finds lines in files of the workspace that contain a text or match a regular expression. Returns path:line: text.";
const WRITE =
  "Writes a whole file of the workspace, new or replacing an existing one. To change a part of a file use edit_file.";
const EDIT =
  "Replaces a text in a file of the workspace. Read the file first: the old text must be exactly as it stands there.";

async function read(context: FileToolsContext, input: ReadFileInput, call: LiveCall): Promise<string> {
  const { fromLine = 1, toLine = Number.MAX_SAFE_INTEGER } = input;
  if (toLine < fromLine) throw invalid("`toLine` is before `fromLine`. Nothing was read.");
  const place = await locate(groundOf(context, call), input.path);
  const handle = await openFile(place);
  try {
    const before = await handle.stat({ bigint: true });
    const found = await readLines(handle, { from: fromLine, to: toLine, bytesMax: context.bytesMax }, call.signal);
    if (found.kind === "binary") {
      return `${shown(place.name)} is not text: ${before.size} bytes, with zero bytes among them. It is not shown.`;
    }
    context.files.note(call.sessionId, place.path, versionOf(before));
    return linesReport(place.name, found, fromLine);
  } finally {
    await handle.close();
  }
}

function linesReport(name: string, { lines, total, scanned, next, replaced, crlf }: LinesRead, from: number): string {
  const all = scanned === "whole" ? `${total}` : `more than ${total}`;
  const [first, last] = [lines[0], lines.at(-1)];
  if (first === undefined || last === undefined) {
    return total === 0 ? `${listed(name)} is empty.` : `${listed(name)} has ${all} lines, and none from ${from} on.`;
  }
  return [
    `${listed(name)}, lines ${first.number} to ${last.number} of ${all}.`,
    ...(next === undefined ? [] : [`The result is full: continue with fromLine ${next}.`]),
    ...(replaced ? ["Bytes that are not valid UTF-8 are shown as \uFFFD."] : []),
    ...(crlf ? ["Its lines end with CRLF."] : []),
    ...lines.map(({ number, text }) => `${number}\t${text}`),
  ].join("\n");
}

async function list(
  context: FileToolsContext,
  { path = ".", pattern }: ListFilesInput,
  call: LiveCall,
): Promise<string> {
  const { signal } = call;
  const place = await locate(groundOf(context, call), path);
  if (place.missing.length > 0) throw await notThere(place);
  const fits = pattern === undefined ? undefined : globMatcher(pattern);
  const left = nothingLeftOut();
  const found: string[] = [];
  let more = 0;
  for await (const entry of walk(place, { depth: fits === undefined ? "one" : "all", signal }, left)) {
    if (fits !== undefined && (entry.kind === "directory" || !fits(entry.name))) continue;
    if (found.length < LIST_RESULT_ENTRIES_MAX) found.push(entryLine(entry));
    else more += 1;
  }
  const where = `${listed(place.name)}${pattern === undefined ? "" : `, ${listed(pattern)}`}`;
  const head = found.length === 0 ? `${where}: nothing.` : `${where}: ${found.length + more} in all.`;
  const rest = more === 0 ? [] : [`… and ${more} more: narrow it with \`path\` or \`pattern\`.`];
  return [head, ...leftOutReport(left), ...found, ...rest].join("\n");
}

const MARKS: Readonly<Record<WalkEntry["kind"], string>> = {
  file: "",
  directory: "/",
  link: " (a link)",
  other: " (not a file)",
};

const entryLine = ({ name, kind }: WalkEntry): string => `${listed(name)}${MARKS[kind]}`;

/** Runs the search in a worker thread, which can be terminated: a regular expression may never finish. */
const searchInThread: ReturnType<typeof untrusted> = (...given) =>
  untrusted({ module: workerFile("file-search", import.meta.url), name: "searchFiles" })(...given);

async function search(context: FileToolsContext, input: SearchFilesInput, call: LiveCall): Promise<unknown> {
  const { query, regex = false, ignoreCase = false, path = ".", pattern } = input;
  if (regex) checkExpression(query);
  else if (query.includes("\n")) throw invalid("A search is within lines: `query` has no line break.");
  const kind = regex ? "expression" : "text";
  const ground = groundOf(context, call);
  const request: SearchRequest = { ground, query, kind, ignoreCase, path, pattern };
  // Resolved in this thread too, so that an error keeps its code.
  const place = await locate(ground, path);
  if (place.missing.length > 0) throw await notThere(place);
  const limit = new AbortController();
  const disarm = call.clock.after(SEARCH_MS, () => limit.abort(new Error("The search took too long.")));
  const signal = AbortSignal.any([call.signal, limit.signal]);
  let soFar = "";
  const partial: LiveCall["partial"] = (found) => {
    soFar = String(found);
    call.partial(found);
  };
  try {
    return await (regex
      ? searchInThread(request, bounded(call, signal, partial))
      : searchFiles(request, { signal, partial }));
  } catch (error) {
    if (!limit.signal.aborted || call.signal.aborted) throw error;
    const advice = regex ? "Use a simpler expression, a plain text, or a smaller place." : "Search a smaller place.";
    return `The search was ended after ${SEARCH_MS / 1_000} s. ${advice} Found by then:\n${soFar || "nothing"}`;
  } finally {
    disarm();
  }
}

function checkExpression(query: string): void {
  try {
    new RegExp(query);
  } catch (error) {
    throw invalid(`The query is not a regular expression: ${messageOf(error)}. Nothing was searched.`, error);
  }
}

/** A copy of the call with another signal. Copied field by field, because the engine's call has getters. */
function bounded(call: LiveCall, signal: AbortSignal, partial: LiveCall["partial"]): LiveCall {
  const { callId, name, input, sessionId, cwd, mode, runId, clock, processes } = call;
  return {
    ...{ callId, name, input, sessionId, cwd, mode, runId, clock, processes, signal, partial },
    get stopping() {
      return call.stopping;
    },
    progress: (data) => call.progress(data),
    changed: (what) => call.changed(what),
    ask: (question) => call.ask(question),
  };
}
