// Permission modes: which tools an agent has, and which of them need approval first.
import { ControlError } from "../core/errors.ts";
import { suggest } from "../core/suggest.ts";
import type { AgentMode } from "../ports/agent.ts";
import { fileTools } from "./tools/files/file-tools.ts";
import type { FileToolName, FileToolsOptions } from "./tools/files/file-tools-options.ts";
import { processTools } from "./tools/processes/process-tools.ts";
import type { ProcessToolName, ProcessToolsOptions } from "./tools/processes/process-tools-options.ts";
import type { Judged, Tool } from "./tools/tool.ts";
import { chain } from "./tools/tool-schema.ts";

/**
 * - `ask`: reads without approval; asks people before it writes a file or runs a command.
 * - `auto`: never asks for approval.
 * - `read-only`: has no tool that writes or runs anything.
 */
export type PermissionMode = "ask" | "auto" | "read-only";

export const PERMISSION_MODES: readonly PermissionMode[] = ["ask", "auto", "read-only"];

/** The permission modes with their names and descriptions, for menus and for `modelAgent({ modes })`. */
export const WORK_MODES: readonly (AgentMode & { readonly id: PermissionMode })[] = [
  {
    id: "ask",
    name: "Ask",
    description: "Reads freely. Asks for approval before it writes a file or runs a command.",
  },
  { id: "auto", name: "Auto", description: "Writes files and runs commands without approval." },
  { id: "read-only", name: "Read only", description: "Reads, lists and searches files. It cannot change anything." },
];

export type WorkToolName = FileToolName | ProcessToolName;

/** `free`: available. `asks`: needs approval first. `absent`: the model does not know it. */
export type Permission = "free" | "asks" | "absent";

type Nature = "reads" | "changes" | "attends";

/** What each tool does. The tools that attend a process are useless where no process can be started. */
const NATURES: Readonly<Record<WorkToolName, Nature>> = {
  read_file: "reads",
  list_files: "reads",
  search_files: "reads",
  write_file: "changes",
  edit_file: "changes",
  shell: "changes",
  start_process: "changes",
  read_output: "attends",
  wait_process: "attends",
  stop_process: "attends",
};

const PERMITTED: Readonly<Record<PermissionMode, Readonly<Record<Nature, Permission>>>> = {
  ask: { reads: "free", attends: "free", changes: "asks" },
  auto: { reads: "free", attends: "free", changes: "free" },
  "read-only": { reads: "free", attends: "absent", changes: "absent" },
};

/** The permission of each tool in a mode. Throws `invalid` for an unknown mode, so that a typo cannot widen access. */
export function permissionsOf(mode: PermissionMode): Readonly<Record<WorkToolName, Permission>> {
  if (!PERMISSION_MODES.includes(mode)) {
    const meant = suggest(String(mode), PERMISSION_MODES);
    const advice = meant === undefined ? `The modes are ${PERMISSION_MODES.join(", ")}.` : `Did you mean ${meant}?`;
    throw new ControlError("invalid", `There is no mode ${JSON.stringify(mode)}. ${advice}`);
  }
  const of = (name: WorkToolName): Permission => PERMITTED[mode][NATURES[name]];
  return {
    ...{ read_file: of("read_file"), list_files: of("list_files"), search_files: of("search_files") },
    ...{ write_file: of("write_file"), edit_file: of("edit_file") },
    ...{ shell: of("shell"), start_process: of("start_process") },
    ...{ read_output: of("read_output"), wait_process: of("wait_process"), stop_process: of("stop_process") },
  };
}

export interface WorkToolsOptions {
  readonly files?: FileToolsOptions;
  readonly processes?: ProcessToolsOptions;
}

/**
 * The tools for files and processes that a mode allows. `approval` in the options overrides whether a tool asks; it
 * does not add a tool that the mode removes.
 */
export function workTools(mode: PermissionMode, options: WorkToolsOptions = {}): Readonly<Record<string, Tool>> {
  const { files = {}, processes = {} } = options;
  const permitted = permissionsOf(mode);
  const asks = (name: WorkToolName): boolean => permitted[name] === "asks";
  const all: Readonly<Record<WorkToolName, Tool>> = {
    ...fileTools({
      ...files,
      approval: { write_file: asks("write_file"), edit_file: asks("edit_file"), ...files.approval },
    }),
    ...processTools({
      ...processes,
      approval: { shell: asks("shell"), start_process: asks("start_process"), ...processes.approval },
    }),
  };
  const left = Object.entries(permitted).filter(([, permission]) => permission !== "absent");
  return Object.fromEntries(Object.entries(all).filter(([name]) => left.some(([one]) => one === name)));
}

/**
 * All tools for files and processes, each of which asks according to the mode of its session; for an agent whose modes
 * are `WORK_MODES`. All modes share one set, so a file that a session has read in one mode counts as read in the
 * others. `approval` in the options takes precedence here too.
 */
export function modalTools({ files = {}, processes = {} }: WorkToolsOptions = {}): Readonly<Record<string, Tool>> {
  const all: Readonly<Record<WorkToolName, Tool>> = { ...fileTools(files), ...processTools(processes) };
  const own = new Set([...Object.keys(files.approval ?? {}), ...Object.keys(processes.approval ?? {})]);
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, own.has(name) ? one : asked(name, one)]));
}

/** Whether a mode has this built-in tool. True for any other name. */
export const modeHas = (mode: PermissionMode, name: string): boolean =>
  !isWorkTool(name) || permissionsOf(mode)[name] !== "absent";

export const isPermissionMode = (word: string | undefined): word is PermissionMode =>
  PERMISSION_MODES.some((mode) => mode === word);

const isWorkTool = (name: string): name is WorkToolName => Object.hasOwn(NATURES, name);

/** Asks where the session's mode asks. Without a known mode the tool's own default applies. */
function asked(name: string, one: Tool): Tool {
  return {
    ...one,
    judge: (input, about) =>
      chain(one.judge(input, about), (judged): Judged => {
        const isFree = isPermissionMode(about.mode) && isWorkTool(name) && permissionsOf(about.mode)[name] === "free";
        return judged.kind === "takes" && isFree ? { kind: "takes", approval: false } : judged;
      }),
  };
}
