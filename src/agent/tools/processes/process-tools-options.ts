// How the host wants the tools for processes: whom they ask, how long they wait, how much they tell. Checked when made.
import { ControlError, messageOf } from "../../../core/errors.ts";
import type { Feedback } from "../../../core/model/event.ts";
import type { Approval } from "../../../ports/agent.ts";
import type { ProcessOptions } from "../../../ports/spawner.ts";
import { BACKGROUND_AFTER_MS, OUTPUT_BYTES_TOLD, OUTPUT_BYTES_TOLD_MAX, OUTPUT_BYTES_TOLD_MIN } from "../../limits.ts";
import type { Awaitable } from "../tool-schema.ts";
import type { ReadInput, ShellInput, StartInput, StopInput, WaitInput } from "./process-tools-input.ts";

export type ProcessToolName = "shell" | "start_process" | "read_output" | "wait_process" | "stop_process";

/** Whether people are asked first: always, never, with these words, or as a function of the input says. */
export type AskFirst<Input> = boolean | Approval | ((input: Input) => Awaitable<boolean | Approval>);

export interface ProcessToolsOptions {
  /**
   * Whether people are asked first. Default: before `shell` and `start_process`, and not before the others. An approval
   * that is remembered for the session covers the same command in the same directory, unless it names a `scope`.
   */
  readonly approval?: {
    readonly shell?: AskFirst<ShellInput>;
    readonly start_process?: AskFirst<StartInput>;
    readonly read_output?: AskFirst<ReadInput>;
    readonly wait_process?: AskFirst<WaitInput>;
    readonly stop_process?: AskFirst<StopInput>;
  };
  /** How long a command of `shell` may take, in the background too. A model may ask for less. Default: no limit. */
  readonly timeoutMs?: number;
  /** A command of `shell` that is not over by then goes on in the background. Default a minute. */
  readonly backgroundAfterMs?: number;
  /** What becomes of results of the background. Default `wake`: the model is told without being asked. */
  readonly feedback?: Feedback;
  /** How much of a process's output one result tells. Default 16 KiB, from 1 to 64. */
  readonly outputBytesMax?: number;
  /** For every process that is started: on top of what Belay was opened with. */
  readonly process?: Pick<ProcessOptions, "env" | "profile" | "limits" | "graceMs">;
}

/** What the tools go by. */
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
  // An approval that is misspelt would be one that nobody is asked for, or asked for in vain.
  rejectUnknown(options, OPTIONS, "processTools()");
  rejectUnknown(options.approval ?? {}, NAMES, "`approval` of processTools()");
  wholeNumber("timeoutMs", timeoutMs, 1);
  wholeNumber("backgroundAfterMs", backgroundAfterMs, 1);
  wholeNumber("outputBytesMax", outputBytesMax, OUTPUT_BYTES_TOLD_MIN);
  if (!FEEDBACKS.includes(feedback)) throw invalid(`\`feedback\` is one of ${FEEDBACKS.join(", ")}.`);
  return {
    ...{ timeoutMs, feedback },
    backgroundAfterMs: backgroundAfterMs ?? BACKGROUND_AFTER_MS,
    bytesMax: Math.min(outputBytesMax ?? OUTPUT_BYTES_TOLD, OUTPUT_BYTES_TOLD_MAX),
    given: options.process ?? {},
  };
}

function rejectUnknown(given: object, known: ReadonlySet<string>, what: string): void {
  const unknown = Object.keys(given).find((key) => !known.has(key));
  if (unknown !== undefined) throw invalid(`${what} has no \`${unknown}\`. It has ${[...known].join(", ")}.`);
}

function wholeNumber(name: string, value: unknown, min: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= min)) return;
  throw invalid(`\`${name}\` of processTools() is a whole number from ${min}.`);
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);

/** Asked unless the host says otherwise; and what is remembered is this command, and not every command there is. */
export function commandApproval<Input extends ShellInput>(name: ProcessToolName, wanted: AskFirst<Input> = true) {
  if (wanted === false) return false;
  return async (input: Input): Promise<boolean | Approval> => {
    const { command, cwd, background } = input;
    const scope = `${name} ${JSON.stringify([command, cwd ?? null, background ?? false])}`;
    try {
      const approval = typeof wanted === "function" ? await wanted(input) : wanted;
      return approval === false ? false : { scope, ...(approval === true ? {} : approval) };
    } catch (error) {
      // Also what nobody could judge is remembered for this command alone.
      return { scope, note: `Whether this needs an approval could not be told: ${messageOf(error)}` };
    }
  };
}
