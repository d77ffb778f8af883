// Limits of commands and paths that hold on every machine. Checked before anything is recorded, and before a start.
import { ARGUMENT_BYTES_MAX, ARGUMENT_OVERHEAD_BYTES, ARGUMENTS_BYTES_MAX, PATH_BYTES_MAX } from "./limits.ts";
import { utf8Bytes } from "./model/prompt.ts";

export interface Problem {
  readonly message: string;
  readonly hint?: string;
}

/** What is wrong with a shell command, or with a program and its arguments. Undefined: nothing. */
export function problemOfCommand(command: string | readonly string[]): Problem | undefined {
  if (typeof command === "string") return problemOfArgument(command, "The command");
  let bytes = 0;
  for (const [index, arg] of command.entries()) {
    const problem = problemOfArgument(arg, `Argument ${index} of the command`);
    if (problem !== undefined) return problem;
    bytes += utf8Bytes(arg) + ARGUMENT_OVERHEAD_BYTES;
  }
  if (bytes <= ARGUMENTS_BYTES_MAX) return undefined;
  const message = `The arguments have ${bytes} bytes together; at most ${ARGUMENTS_BYTES_MAX} are taken.`;
  return { message, hint: TOO_LONG };
}

/** What is wrong with a working directory. */
export function problemOfPath(path: string, name: string): Problem | undefined {
  const problem = problemOfText(path, name);
  if (problem !== undefined) return problem;
  const bytes = utf8Bytes(path);
  return bytes < PATH_BYTES_MAX
    ? undefined
    : { message: `${name} has ${bytes} bytes; a path has less than ${PATH_BYTES_MAX}.` };
}

function problemOfArgument(arg: string, name: string): Problem | undefined {
  const problem = problemOfText(arg, name);
  if (problem !== undefined) return problem;
  const bytes = utf8Bytes(arg);
  if (bytes < ARGUMENT_BYTES_MAX) return undefined;
  const message = `${name} has ${bytes} bytes; the system takes less than ${ARGUMENT_BYTES_MAX}.`;
  return { message, hint: TOO_LONG };
}

function problemOfText(text: string, name: string): Problem | undefined {
  if (text.includes("\0")) return { message: `${name} holds a NUL byte, which would end it there.` };
  // A lone surrogate cannot be encoded: the command would differ from the one that was given.
  return text.isWellFormed() ? undefined : { message: `${name} is not well-formed Unicode.` };
}

const TOO_LONG = "Put it into a file, and pass the file's name.";
