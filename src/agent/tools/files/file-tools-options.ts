// How the host wants the tools for files: where they work, whom they ask, how much they tell. Checked when made.
import { normalize, resolve } from "node:path";
import { messageOf } from "../../../core/errors.ts";
import type { Approval, LiveCall } from "../../../ports/agent.ts";
import type { AskFirst } from "../processes/process-tools-options.ts";
import { invalid } from "./file-errors.ts";
import { FILE_BYTES_TOLD, FILE_BYTES_TOLD_MAX, FILE_BYTES_TOLD_MIN } from "./file-limits.ts";
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
  /** The directory they work in; nothing outside of it can be reached. Default the working directory. */
  readonly workspace?: string;
  /**
   * Whether people are asked first. Default: before `write_file` and `edit_file`, and not before the others. An
   * approval that is remembered for the session covers that tool on that file, unless it names a `scope`.
   */
  readonly approval?: {
    readonly read_file?: AskFirst<ReadFileInput>;
    readonly list_files?: AskFirst<ListFilesInput>;
    readonly search_files?: AskFirst<SearchFilesInput>;
    readonly write_file?: AskFirst<WriteFileInput>;
    readonly edit_file?: AskFirst<EditFileInput>;
  };
  /** Places that do not exist for these tools: the store, files with keys. Absolute, or relative to the workspace. */
  readonly hidden?: readonly string[];
  /** How much of a file one result tells. Default 64 KiB, from 1 to 256. */
  readonly bytesMax?: number;
}

/** What the tools go by. */
export interface FileToolsContext {
  readonly ground: Workspace;
  readonly bytesMax: number;
  readonly files: SeenFiles;
}

/** The directory of the session, if it has one, and else what the host has said. The same is hidden in both. */
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
  const { workspace = ".", hidden = [], bytesMax = FILE_BYTES_TOLD } = options;
  // An approval that is misspelt would be one that nobody is asked for.
  rejectUnknown(options, OPTIONS, "fileTools()");
  rejectUnknown(options.approval ?? {}, NAMES, "`approval` of fileTools()");
  if (typeof workspace !== "string" || workspace === "") throw invalid("`workspace` of fileTools() is a directory.");
  if (!Array.isArray(hidden) || hidden.some((one) => typeof one !== "string" || one === "")) {
    throw invalid("`hidden` of fileTools() is a list of paths.");
  }
  if (!Number.isSafeInteger(bytesMax) || bytesMax < FILE_BYTES_TOLD_MIN || bytesMax > FILE_BYTES_TOLD_MAX) {
    throw invalid(
      `\`bytesMax\` of fileTools() is a whole number from ${FILE_BYTES_TOLD_MIN} to ${FILE_BYTES_TOLD_MAX}.`,
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

/** Asked unless the host says otherwise; and what is remembered is this file, and not every file there is. */
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
      const note = `Whether this needs an approval could not be told: ${messageOf(error)}`;
      return { scope, note } satisfies Approval;
    }
  };
}
