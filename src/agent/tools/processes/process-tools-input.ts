// The inputs of the process tools, as JSON Schema and hand-written checks: this folder does not load a schema library.
import type { CommandLine, Stream } from "../../../ports/spawner.ts";
import { COMMAND_CHARS_MAX, OUTPUT_RESULT_BYTES_MAX, PROCESS_WAIT_MS, PROCESS_WAIT_MS_MAX } from "../../limits.ts";
import { type Field, inputOf } from "../tool-fields.ts";

export interface StartInput {
  readonly command: CommandLine;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

export interface ShellInput extends StartInput {
  readonly background?: boolean;
}

export interface ReadInput {
  readonly processId: string;
  readonly offset?: number;
  readonly stream?: Stream;
  readonly bytesMax?: number;
}

export interface WaitInput {
  readonly processId: string;
  readonly limitMs?: number;
}

export interface StopInput {
  readonly processId: string;
  readonly reason?: string;
}

/** A day, the maximum for processes everywhere. What runs longer is a service. */
const TIMEOUT_MS_MAX = 24 * 60 * 60_000;
const ID_CHARS_MAX = 256;
const PATH_CHARS_MAX = 4_096;
const REASON_CHARS_MAX = 1_000;
const STREAMS: readonly Stream[] = ["all", "stdout", "stderr"];

const COMMAND: Field<CommandLine> = {
  json: {
    description: 'A text for sh -c, or a list that is passed to the program unchanged: ["git", "status"].',
    anyOf: [
      { type: "string", minLength: 1, maxLength: COMMAND_CHARS_MAX },
      { type: "array", items: { type: "string" }, minItems: 1 },
    ],
  },
  read: (given, name) => {
    const parts = typeof given === "string" ? [given] : given;
    if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string") || isBlank(parts[0])) {
      throw new Error(`${name} must be a text for the shell, or a list of arguments that begins with a program`);
    }
    if (parts.reduce((sum, part) => sum + part.length, 0) > COMMAND_CHARS_MAX) {
      throw new Error(
        `${name} must have at most ${COMMAND_CHARS_MAX} characters; write a longer one into a file and run that`,
      );
    }
    const [program = "", ...rest] = parts;
    return typeof given === "string" ? given : [program, ...rest];
  },
};

const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === "";

const CWD = text(
  "Its working directory: absolute, or relative to the workspace. Default the workspace.",
  PATH_CHARS_MAX,
);
const TIMEOUT = whole("Stop it after so many milliseconds.", 1, TIMEOUT_MS_MAX);
const PROCESS = text("Its id, as returned when it was started: proc_…", ID_CHARS_MAX);
const BACKGROUND: Field<boolean> = {
  json: { type: "boolean", description: "Do not wait for it: it continues in the background. Default false." },
  read: (given, name) => {
    if (typeof given !== "boolean") throw new Error(`${name} must be true or false`);
    return given;
  },
};
const STREAM: Field<Stream> = {
  json: { type: "string", enum: [...STREAMS], description: "Default all: both, in the order of arrival." },
  read: (given, name) => {
    const found = STREAMS.find((one) => one === given);
    if (found === undefined) throw new Error(`${name} must be one of ${STREAMS.join(", ")}`);
    return found;
  },
};

export const SHELL_INPUT = inputOf<ShellInput>(
  { command: COMMAND, cwd: CWD, timeoutMs: TIMEOUT, background: BACKGROUND },
  ["command"],
);

export const START_INPUT = inputOf<StartInput>({ command: COMMAND, cwd: CWD, timeoutMs: TIMEOUT }, ["command"]);

export const READ_INPUT = inputOf<ReadInput>(
  {
    processId: PROCESS,
    offset: whole(
      "The byte to start at. Default: as far from the end as one result holds.",
      0,
      Number.MAX_SAFE_INTEGER,
    ),
    stream: STREAM,
    bytesMax: whole("How much at most.", 1, OUTPUT_RESULT_BYTES_MAX),
  },
  ["processId"],
);

export const WAIT_INPUT = inputOf<WaitInput>(
  {
    processId: PROCESS,
    limitMs: whole(`How long to wait. Default ${PROCESS_WAIT_MS}.`, 1, PROCESS_WAIT_MS_MAX),
  },
  ["processId"],
);

export const STOP_INPUT = inputOf<StopInput>(
  { processId: PROCESS, reason: text("Why, for people who read the log.", REASON_CHARS_MAX) },
  ["processId"],
);

function text(description: string, charsMax: number): Field<string> {
  return {
    json: { type: "string", description, minLength: 1, maxLength: charsMax },
    read: (given, name) => {
      if (typeof given === "string" && !isBlank(given) && given.length <= charsMax) return given;
      throw new Error(`${name} must be a text of at most ${charsMax} characters`);
    },
  };
}

function whole(description: string, min: number, max: number): Field<number> {
  return {
    json: { type: "integer", description, minimum: min, ...(max === Number.MAX_SAFE_INTEGER ? {} : { maximum: max }) },
    read: (given, name) => {
      if (typeof given === "number" && Number.isSafeInteger(given) && given >= min && given <= max) return given;
      throw new Error(`${name} must be a whole number from ${min} to ${max}`);
    },
  };
}
