// Where sessions work: which directories whoever makes one may choose, and which of this machine's they really are.
//
// Looked at in the tick in which it is asked: a prompt that begins a session is registered in that tick too, and
// nothing of it may be recorded if its directory is refused. What is recorded is the real path, so that a link that is
// put there later is seen as one (`file-path.ts`, `working-directory.ts`).
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, resolve, sep } from "node:path";
import { ControlError } from "../core/errors.ts";
import { invalid } from "../core/input.ts";
import { DIRECTORY_CHARS_MAX } from "../core/limits.ts";
import { isWithin } from "../process/launch/working-directory.ts";

/** `workspace`: inside the host's workspace, and nowhere else. `any`: wherever there is a directory. */
export type Directories = "workspace" | "any";

/** The real path of what was chosen, if anything was. Throws `invalid`, or `forbidden` if nobody may choose it. */
export type ChooseDirectory = (given: unknown) => string | undefined;

export function directoryChoice(rule: Directories, workspace: string): ChooseDirectory {
  return (given) => {
    if (given === undefined) return undefined;
    const asked = checkPath(given);
    const found = lookAt(asked);
    if (rule === "workspace" && !isInside(workspace, asked, found)) throw forbidden(asked);
    if (found.kind === "trouble") {
      throw new ControlError("invalid", `The directory ${shown(asked)} ${found.problem}. Nothing was recorded.`, {
        hint: "Name a directory that exists, and that the user of this program may enter.",
        cause: found.cause,
      });
    }
    return found.path;
  };
}

function checkPath(given: unknown): string {
  if (typeof given !== "string" || given === "" || given.length > DIRECTORY_CHARS_MAX) {
    throw invalid(`\`cwd\` is the path of a directory, of at most ${DIRECTORY_CHARS_MAX} characters.`);
  }
  if (given.includes("\0") || !given.isWellFormed()) throw invalid("`cwd` holds characters that no path has.");
  if (!isAbsolute(given)) throw invalid(`\`cwd\` is an absolute path, and ${shown(given)} is relative.`);
  return resolve(given);
}

type Found =
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "trouble"; readonly problem: string; readonly cause: unknown };

function lookAt(path: string): Found {
  try {
    const real = realpathSync(path);
    // Its own entry for itself is found only in a directory, and only by whoever may enter it.
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

/** What is not there is judged by its words: who may not go somewhere is not told what there is. */
function isInside(workspace: string, asked: string, found: Found): boolean {
  const home = lookAt(workspace);
  if (home.kind === "trouble") return false;
  if (found.kind === "directory") return isWithin(home.path, found.path);
  return isWithin(home.path, asked) || isWithin(workspace, asked);
}

const forbidden = (path: string): ControlError =>
  new ControlError("forbidden", `A session may not work in ${shown(path)}: it is outside of the workspace.`, {
    hint: "Choose a directory of the workspace. Whoever starts Belay can allow all of them: --directories any.",
  });

const shown = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
