// The options of `fileTools()`, checked when the tools are created.
import { normalize, resolve } from "node:path";
import { messageOf } from "../../../core/errors.ts";
import type { Approval, LiveCall } from "../../../ports/agent.ts";
import type { AskFirst } from "../processes/process-tools-options.ts";
import { invalid } from "./file-errors.ts";
import { FILE_RESULT_BYTES, FILE_RESULT_BYTES_MAX, FILE_RESULT_BYTES_MIN } from "./file-limits.ts";
import type { Workspace } from "./file-path.ts";
import { SeenFiles } from "./file-seen.ts";
import type {
  EditFileInput,
  ListFilesInput,
  ReadFileInput,
  SearchFilesInput,
  WriteFileInput,
} from "./file-tools-input.ts";

export type FileToolName = "read_file" | "list_files" | "search_files" | "write_file" | "edit_file";

export interface FileToolsOptions {
  /** The directory that the tools work in; they cannot reach anything outside it. Default: the working directory. */
  readonly workspace?: string;
  /**
   * Whether a tool needs approval. Default: `write_file` and `edit_file` do, the others do not. An approval that is
   * remembered for the session covers the tool on the same file, unless it names a `scope`.
   */
  readonly approval?: {
    readonly read_file?: AskFirst<ReadFileInput>;
    readonly list_files?: AskFirst<ListFilesInput>;
    readonly search_files?: AskFirst<SearchFilesInput>;
    readonly write_file?: AskFirst<WriteFileInput>;
    readonly edit_file?: AskFirst<EditFileInput>;
  };
  /**
   * Paths that these tools treat as nonexistent, such as the store or files with keys. Absolute, or relative to the
   * workspace.
   */
  readonly hidden?: readonly string[];
  /** How much of a file one result contains. Default 64 KiB, from 1 to 256. */
  readonly bytesMax?: number;
}

/** The checked options and the state that the tools share. */
export interface FileToolsContext {
  readonly ground: Workspace;
  readonly bytesMax: number;
  readonly files: SeenFiles;
}

/** The session's directory if it has one, otherwise the configured workspace. `hidden` applies to both. */
export function groundOf({ ground }: FileToolsContext, { cwd }: Pick<LiveCall, "cwd">): Workspace {
  return cwd === undefined ? ground : { workspace: cwd, isReal: true, hidden: ground.hidden };
}

const OPTIONS: ReadonlySet<string> = new Set<keyof FileToolsOptions>([
  ...(["workspace", "approval", "hidden", "bytesMax"] as const),
]);
const NAMES: ReadonlySet<string> = new Set<FileToolName>([
  ...(["read_file", "list_files", "search_files", "write_file", "edit_file"] as const),
]);

export function checkFileOptions(options: FileToolsOptions): FileToolsContext {
  const { workspace = ".", hidden = [], bytesMax = FILE_RESULT_BYTES } = options;
  // A misspelled approval would otherwise never be requested.
  rejectUnknown(options, OPTIONS, "fileTools()");
  rejectUnknown(options.approval ?? {}, NAMES, "`approval` of fileTools()");
  if (typeof workspace !== "string" || workspace === "") throw invalid("`workspace` of fileTools() must be a path.");
  if (!Array.isArray(hidden) || hidden.some((one) => typeof one !== "string" || one === "")) {
    throw invalid("`hidden` of fileTools() must be a list of paths.");
  }
  if (!Number.isSafeInteger(bytesMax) || bytesMax < FILE_RESULT_BYTES_MIN || bytesMax > FILE_RESULT_BYTES_MAX) {
    throw invalid(
      `\`bytesMax\` of fileTools() must be a whole number from ${FILE_RESULT_BYTES_MIN} to ${FILE_RESULT_BYTES_MAX}.`,
    );
  }
  const home = resolve(workspace);
  return {
    ground: { workspace: home, hidden: hidden.map((one) => resolve(home, one)) },
    bytesMax,
    files: new SeenFiles(),
  };
}

function rejectUnknown(given: object, known: ReadonlySet<string>, what: string): void {
  const unknown = Object.keys(given).find((key) => !known.has(key));
  if (unknown !== undefined) throw invalid(`${what} has no \`${unknown}\`. It has ${[...known].join(", ")}.`);
}

/** The approval of a write: required unless the host decides otherwise, and remembered for this file only. */
export function writeApproval<Input extends { readonly path: string }>(
  name: FileToolName,
  wanted: AskFirst<Input> = true,
): AskFirst<Input> {
  if (wanted === false) return false;
  return async (input) => {
    const scope = `${name} ${JSON.stringify(normalize(input.path))}`;
    try {
      const approval = typeof wanted === "function" ? await wanted(input) : wanted;
      return approval === false ? false : { scope, ...(approval === true ? {} : approval) };
    } catch (error) {
      const note = `The approval callback failed: ${messageOf(error)}`;
      return { scope, note } satisfies Approval;
    }
  };
}
