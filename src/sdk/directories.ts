// The working directories of sessions: which ones a caller may choose, and their real paths.
//
// Checked synchronously: a prompt that creates a session is registered in the same tick, and must record nothing if
// its directory is refused. The real path is recorded, so that a symbolic link created later is detected
// (`file-path.ts`, `working-directory.ts`).
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, resolve, sep } from "node:path";
import { ControlError } from "../core/errors.ts";
import { invalid } from "../core/input.ts";
import { DIRECTORY_CHARS_MAX } from "../core/limits.ts";
import { isWithin } from "../process/launch/working-directory.ts";

/** `workspace`: only inside the host's workspace. `any`: every directory. */
export type Directories = "workspace" | "any";

/** The real path of the chosen directory, if one was given. Throws `invalid`, or `forbidden` if it is not allowed. */
export type ChooseDirectory = (given: unknown) => string | undefined;

export function directoryChoice(rule: Directories, workspace: string): ChooseDirectory {
  return (given) => {
    if (given === undefined) return undefined;
    const path = checkPath(given);
    const found = inspect(path);
    if (rule === "workspace" && !isInside(workspace, path, found)) throw forbidden(path);
    if (found.kind === "trouble") {
      throw new ControlError("invalid", `The directory ${shown(path)} ${found.problem}. Nothing was recorded.`, {
        hint: "Name a directory that exists, and that the user of this program may enter.",
        cause: found.cause,
      });
    }
    return found.path;
  };
}

function checkPath(given: unknown): string {
  if (typeof given !== "string" || given === "" || given.length > DIRECTORY_CHARS_MAX) {
    throw invalid(`\`cwd\` must be the path of a directory, at most ${DIRECTORY_CHARS_MAX} characters long.`);
  }
  if (given.includes("\0") || !given.isWellFormed())
    throw invalid("`cwd` must not contain NUL or unpaired surrogates.");
  if (!isAbsolute(given)) throw invalid(`\`cwd\` must be an absolute path (got ${shown(given)}).`);
  return resolve(given);
}

type Found =
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "trouble"; readonly problem: string; readonly cause: unknown };

function inspect(path: string): Found {
  try {
    const real = realpathSync(path);
    // Only a directory has an entry for itself, and reading it requires permission to enter.
    statSync(`${real}${sep}.`);
    return { kind: "directory", path: real };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    return { kind: "trouble", problem: PROBLEMS[code] ?? "cannot be used", cause };
  }
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "is not a directory",
  EACCES: "may not be entered",
  EPERM: "may not be entered",
  ELOOP: "is a link that leads back to itself",
  ENAMETOOLONG: "has a name longer than a name may be",
};

/** A path that does not exist is checked as text, so that a caller learns nothing about places it may not use. */
function isInside(workspace: string, path: string, found: Found): boolean {
  const home = inspect(workspace);
  if (home.kind === "trouble") return false;
  if (found.kind === "directory") return isWithin(home.path, found.path);
  return isWithin(home.path, path) || isWithin(workspace, path);
}

const forbidden = (path: string): ControlError =>
  new ControlError("forbidden", `A session may not work in ${shown(path)}: it is outside of the workspace.`, {
    hint: "Choose a directory inside the workspace. To allow every directory, start Belay with --directories any.",
  });

const shown = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
