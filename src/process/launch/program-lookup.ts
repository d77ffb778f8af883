// Finds programs before anything is started, so that a misspelled name is reported as such.
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { ControlError } from "../../core/errors.ts";

/** The path of a program. Undefined: no program has that name. */
export function findProgram(name: string, path: string | undefined = process.env.PATH): string | undefined {
  if (name.includes("/")) return isProgram(name) ? name : undefined;
  for (const directory of [...(path ?? "").split(delimiter), ...FALLBACK]) {
    // To a shell an empty entry means the working directory. Our own programs must not be found there.
    if (isAbsolute(directory) && isProgram(join(directory, name))) return join(directory, name);
  }
  return undefined;
}

/** Lets a server with a bare environment find the programs of the system. */
const FALLBACK = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/** The path of the program that a command names, found by its own environment. Throws `not_started`. */
export function resolveProgram(name: string, cwd: string, env: Readonly<Record<string, string>>): string {
  if (name.includes("/")) {
    const path = resolve(cwd, name);
    const problem = problemOf(path);
    if (problem === undefined) return path;
    throw notStarted(`"${name}" was not started: ${problem}.`);
  }
  let denied: string | undefined;
  for (const directory of (env.PATH ?? "").split(delimiter)) {
    const path = resolve(cwd, directory, name);
    const problem = problemOf(path);
    if (problem === undefined) return path;
    if (problem === DENIED) denied ??= path;
  }
  if (denied !== undefined) throw notStarted(`"${name}" was not started: ${denied} ${NOT_EXECUTABLE}.`);
  throw notStarted(`"${name}" was not started: there is no program of that name on the PATH.`, {
    hint: "Check its name, install it, or give its path.",
  });
}

const NOT_EXECUTABLE = "is not executable for the server's user";
const DENIED = `it ${NOT_EXECUTABLE}`;

function problemOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return "it is not a file";
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EACCES" || code === "EPERM" ? DENIED : "there is no such file";
  }
}

const isProgram = (path: string): boolean => problemOf(path) === undefined;

const notStarted = (message: string, options?: { readonly hint: string }): ControlError =>
  new ControlError("not_started", message, options);
