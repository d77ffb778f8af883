// The inputs of the file tools.

import { flag, inputOf, text, whole, words } from "../tool-fields.ts";
import { FILE_RESULT_LINES_MAX, GLOB_CHARS_MAX, PATH_CHARS_MAX, SEARCH_CHARS_MAX } from "./file-limits.ts";

export interface ReadFileInput {
  readonly path: string;
  readonly fromLine?: number;
  readonly toLine?: number;
}

export interface ListFilesInput {
  readonly path?: string;
  readonly pattern?: string;
}

export interface SearchFilesInput {
  readonly query: string;
  readonly regex?: boolean;
  readonly ignoreCase?: boolean;
  readonly path?: string;
  readonly pattern?: string;
}

export interface WriteFileInput {
  readonly path: string;
  readonly text: string;
}

export interface EditFileInput {
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

const FILE = words("A file of the workspace, relative to it.", PATH_CHARS_MAX);
const PLACE = words("A directory of the workspace, relative to it. Default all of it.", PATH_CHARS_MAX);
const PATTERN = words(
  "Only these, such as *.ts (names, at any depth) or src/**/*.{ts,tsx} (paths in the workspace).",
  GLOB_CHARS_MAX,
);

export const READ_FILE_INPUT = inputOf<ReadFileInput>(
  {
    path: FILE,
    fromLine: whole("The first line to read. Default 1.", 1),
    toLine: whole(`The last one. Default: as many as there is room for, at most ${FILE_RESULT_LINES_MAX}.`, 1),
  },
  ["path"],
);

export const LIST_FILES_INPUT = inputOf<ListFilesInput>({ path: PLACE, pattern: PATTERN }, []);

export const SEARCH_FILES_INPUT = inputOf<SearchFilesInput>(
  {
    query: words("What to look for, within a line.", SEARCH_CHARS_MAX),
    regex: flag("The query is a regular expression of JavaScript. Default false: it is a text, taken as it is."),
    ignoreCase: flag("Default false."),
    path: words("A directory or a file of the workspace. Default all of it.", PATH_CHARS_MAX),
    pattern: PATTERN,
  },
  ["query"],
);

export const WRITE_FILE_INPUT = inputOf<WriteFileInput>({ path: FILE, text: text("All of its new content.") }, [
  ...(["path", "text"] as const),
]);

export const EDIT_FILE_INPUT = inputOf<EditFileInput>(
  {
    path: FILE,
    old: text("The exact text to replace, without line numbers. Enough of it that it is there only once."),
    new: text("What to put in its place. Empty: it is removed."),
    all: flag("Replace it wherever it is. Default false: it must be there exactly once."),
  },
  ["path", "old", "new"],
);
