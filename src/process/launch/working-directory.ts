// Checks the working directory of a child: the workspace, or a directory below it.
//
// This validates a request and does not contain the child. Between the check and the start a directory can be replaced
// by a link, and a running child can go anywhere. File access is enforced by its mount namespace, where the profile has
// one.
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { problemOfPath } from "../../core/argument.ts";
import { ControlError } from "../../core/errors.ts";

/** The real path of `cwd`, absolute or relative to the workspace. Throws `invalid` if it is not allowed. */
export async function checkWorkingDirectory(cwd: string | undefined, workspace: string): Promise<string> {
  const home = await realDirectory(workspace, "The workspace");
  if (cwd === undefined || cwd === "") return home;
  const name = `The working directory ${shown(cwd)}`;
  const problem = problemOfPath(cwd, name);
  if (problem !== undefined) throw invalid(problem.message, problem.hint);
  const real = await realDirectory(resolve(home, cwd), name);
  if (isWithin(home, real)) return real;
  throw invalid(`${name} is outside of the workspace ${shown(home)}.`, "Use a directory of the workspace.");
}

/**
 * Checks a session's directory, which was a real path when it was set. Throws `invalid` if it no longer is: links in a
 * workspace could otherwise lead commands out of it.
 */
export async function checkSessionDirectory(path: string): Promise<string> {
  const name = `The directory ${shown(path)} of this session`;
  if ((await realDirectory(path, name)) === path) return path;
  throw invalid(`${name} is not what it was: there is a link in its place.`, "Make a session for another directory.");
}

/** Whether a real path is a directory or below it, by whole names: `/srv/main-2` is not below `/srv/main`. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function realDirectory(path: string, name: string): Promise<string> {
  try {
    const real = await realpath(path);
    // The entry `.` exists only in a directory, and needs permission to enter it.
    await stat(`${real}${sep}.`);
    return real;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const [problem, hint] = PROBLEMS[code] ?? ["cannot be used", undefined];
    throw invalid(`${name} ${problem}.`, hint, error);
  }
}

const PROBLEMS: Readonly<Record<string, readonly [problem: string, hint: string]>> = {
  ENOENT: ["does not exist", "Create it first, or leave it out to begin in the workspace."],
  ENOTDIR: ["is not a directory", "Name a directory."],
  EACCES: ["is not accessible", "Give the server's user the right to enter it."],
  EPERM: ["is not accessible", "Give the server's user the right to enter it."],
  ELOOP: ["is a link that leads back to itself", "Name a directory."],
  ENAMETOOLONG: ["has a name longer than a name may be", "Name a directory."],
};

const shown = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);

const invalid = (message: string, hint?: string, cause?: unknown): ControlError =>
  new ControlError("invalid", message, { ...(hint === undefined ? {} : { hint }), cause });
