// Tools with which a model reads, finds, writes and edits the files of the workspace, and nothing else.
//
// Invariants
// 1. What is read, listed, searched or written is within the workspace, links resolved (`file-path.ts`).
// 2. Unless the host says otherwise, people are asked before a file is written or edited.
// 3. A file is either as it was or as it shall be. One that has changed since the session saw it is left alone.
// 4. Whatever is told is bounded, and says so where it is cut.

import { messageOf } from "../../../core/errors.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import { workerFile } from "../../../system/worker-file.ts";
import { type Tool, tool } from "../tool.ts";
import { untrusted } from "../untrusted.ts";
import { editFile, writeFile } from "./file-edit.ts";
import { invalid, listed, shown } from "./file-errors.ts";
import { globMatcher } from "./file-glob.ts";
import { LIST_ENTRIES_TOLD, SEARCH_MS } from "./file-limits.ts";
import { type LinesRead, readLines } from "./file-lines.ts";
import { locate, notThere, openFile } from "./file-path.ts";
import { leftOutReport, type SearchErrand, searchFiles } from "./file-search.ts";
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

/** The tools, to be given to an agent as they are, or some of them. */
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
  "Reads a text file of the workspace, with line numbers: all of it, or some lines. Says where to go on if it is long.";
const LIST =
  "Lists a directory of the workspace, or, with a pattern, all files below it that fit. Directories end with /.";
const SEARCH =
  "Finds the lines of files in the workspace that hold a text, or fit a regular expression. Answers path:line: text.";
const WRITE =
  "Writes a whole file of the workspace, new or in place of the one there is. To change a part of it use edit_file.";
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
      return `${shown(place.name)} is no text: ${before.size} bytes, with zero bytes among them. It is not shown.`;
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
    ...(next === undefined ? [] : [`There was no room for more: go on with fromLine ${next}.`]),
    ...(replaced ? ["Some of it is no valid UTF-8, and shown as \uFFFD."] : []),
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
    if (found.length < LIST_ENTRIES_TOLD) found.push(entryLine(entry));
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
  other: " (no file)",
};

const entryLine = ({ name, kind }: WalkEntry): string => `${listed(name)}${MARKS[kind]}`;

/** A regular expression is looked for in a thread that can be ended, for it may never come to an end by itself. */
const searchApart: ReturnType<typeof untrusted> = (...given) =>
  untrusted({ module: workerFile("file-search", import.meta.url), name: "searchFiles" })(...given);

async function search(context: FileToolsContext, input: SearchFilesInput, call: LiveCall): Promise<unknown> {
  const { query, regex = false, ignoreCase = false, path = ".", pattern } = input;
  if (regex) checkExpression(query);
  else if (query.includes("\n")) throw invalid("A search is within lines: `query` has no line break.");
  const kind = regex ? "expression" : "text";
  const ground = groundOf(context, call);
  const errand: SearchErrand = { ground, query, kind, ignoreCase, path, pattern };
  // In this thread too: here an error is told as what it is.
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
      ? searchApart(errand, bounded(call, signal, partial))
      : searchFiles(errand, { signal, partial }));
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
    throw invalid(`The query is no regular expression: ${messageOf(error)}. Nothing was searched.`, error);
  }
}

/** The same call with a limit of its own. Field by field: the engine's has getters, which do not copy. */
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
