// The options of `processTools()`, checked when the tools are created.
import { ControlError, messageOf } from "../../../core/errors.ts";
import type { Feedback } from "../../../core/model/event.ts";
import type { Approval } from "../../../ports/agent.ts";
import type { ProcessOptions } from "../../../ports/spawner.ts";
import {
  BACKGROUND_AFTER_MS,
  OUTPUT_RESULT_BYTES,
  OUTPUT_RESULT_BYTES_MAX,
  OUTPUT_RESULT_BYTES_MIN,
} from "../../limits.ts";
import type { Awaitable } from "../tool-schema.ts";
import type { ReadInput, ShellInput, StartInput, StopInput, WaitInput } from "./process-tools-input.ts";

export type ProcessToolName = "shell" | "start_process" | "read_output" | "wait_process" | "stop_process";

/** Whether approval is required: always, never, with the given text, or as a function of the input decides. */
export type AskFirst<Input> = boolean | Approval | ((input: Input) => Awaitable<boolean | Approval>);

export interface ProcessToolsOptions {
  /**
   * Whether a tool needs approval. Default: `shell` and `start_process` do, the others do not. An approval that is
   * remembered for the session covers the same command in the same directory, unless it names a `scope`.
   */
  readonly approval?: {
    readonly shell?: AskFirst<ShellInput>;
    readonly start_process?: AskFirst<StartInput>;
    readonly read_output?: AskFirst<ReadInput>;
    readonly wait_process?: AskFirst<WaitInput>;
    readonly stop_process?: AskFirst<StopInput>;
  };
  /** Time limit of a `shell` command, also in the background. A model may set a shorter one. Default: none. */
  readonly timeoutMs?: number;
  /** After this time a `shell` command continues in the background. Default: one minute. */
  readonly backgroundAfterMs?: number;
  /** How the end of a background process reaches the model. Default `wake`: it starts a run. */
  readonly feedback?: Feedback;
  /** How much of a process's output one result contains. Default 16 KiB, from 1 to 64. */
  readonly outputBytesMax?: number;
  /** Options for every process that is started, in addition to Belay's own. */
  readonly process?: Pick<ProcessOptions, "env" | "profile" | "limits" | "graceMs">;
}

/** The checked options. */
export interface ProcessToolsContext {
  readonly timeoutMs: number | undefined;
  readonly backgroundAfterMs: number;
  readonly feedback: Feedback;
  readonly bytesMax: number;
  readonly given: Pick<ProcessOptions, "env" | "profile" | "limits" | "graceMs">;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof ProcessToolsOptions>([
  ...(["approval", "timeoutMs", "backgroundAfterMs", "feedback", "outputBytesMax", "process"] as const),
]);
const NAMES: ReadonlySet<string> = new Set<ProcessToolName>([
  ...(["shell", "start_process", "read_output", "wait_process", "stop_process"] as const),
]);
const FEEDBACKS: readonly unknown[] = ["wake", "next-turn", "silent"] satisfies readonly Feedback[];

export function checkOptions(options: ProcessToolsOptions): ProcessToolsContext {
  const { timeoutMs, backgroundAfterMs, outputBytesMax, feedback = "wake" } = options;
  // A misspelled approval would otherwise never be requested.
  rejectUnknown(options, OPTIONS, "processTools()");
  rejectUnknown(options.approval ?? {}, NAMES, "`approval` of processTools()");
  wholeNumber("timeoutMs", timeoutMs, 1);
  wholeNumber("backgroundAfterMs", backgroundAfterMs, 1);
  wholeNumber("outputBytesMax", outputBytesMax, OUTPUT_RESULT_BYTES_MIN);
  if (!FEEDBACKS.includes(feedback)) throw invalid(`\`feedback\` must be one of ${FEEDBACKS.join(", ")}.`);
  return {
    ...{ timeoutMs, feedback },
    backgroundAfterMs: backgroundAfterMs ?? BACKGROUND_AFTER_MS,
    bytesMax: Math.min(outputBytesMax ?? OUTPUT_RESULT_BYTES, OUTPUT_RESULT_BYTES_MAX),
    given: options.process ?? {},
  };
}

function rejectUnknown(given: object, known: ReadonlySet<string>, what: string): void {
  const unknown = Object.keys(given).find((key) => !known.has(key));
  if (unknown !== undefined) throw invalid(`${what} has no \`${unknown}\`. It has ${[...known].join(", ")}.`);
}

function wholeNumber(name: string, value: unknown, min: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= min)) return;
  throw invalid(`\`${name}\` of processTools() must be a whole number from ${min}.`);
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);

/** The approval of a command: required unless the host decides otherwise, and remembered for this command only. */
export function commandApproval<Input extends ShellInput>(name: ProcessToolName, wanted: AskFirst<Input> = true) {
  if (wanted === false) return false;
  return async (input: Input): Promise<boolean | Approval> => {
    const { command, cwd, background } = input;
    const scope = `${name} ${JSON.stringify([command, cwd ?? null, background ?? false])}`;
    try {
      const approval = typeof wanted === "function" ? await wanted(input) : wanted;
      return approval === false ? false : { scope, ...(approval === true ? {} : approval) };
    } catch (error) {
      // Even if the callback fails, an approval is remembered for this command only.
      return { scope, note: `The approval callback failed: ${messageOf(error)}` };
    }
  };
}
