// Tools with which a model runs commands, in the foreground and in the background, and manages running ones.
//
// Invariants
// 1. Any command needs approval by default, and an approval for the session covers only that command.
// 2. Results are bounded, with a way to read the rest. They never contain a stack trace.
import { ControlError } from "../../../core/errors.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import type { ProcessHandle, ProcessResult } from "../../../ports/spawner.ts";
import { OUTPUT_RESULT_BYTES_MAX, PROCESS_STOP_WAIT_MS, PROCESS_WAIT_MS, START_WATCH_MS } from "../../limits.ts";
import { type Tool, tool } from "../tool.ts";
import {
  READ_INPUT,
  type ReadInput,
  SHELL_INPUT,
  type ShellInput,
  START_INPUT,
  STOP_INPUT,
  type StartInput,
  type StopInput,
  WAIT_INPUT,
  type WaitInput,
} from "./process-tools-input.ts";
import {
  checkOptions,
  commandApproval,
  type ProcessToolName,
  type ProcessToolsContext,
  type ProcessToolsOptions,
} from "./process-tools-options.ts";
import {
  endReport,
  listReport,
  movedReport,
  outputReport,
  pageReport,
  startReport,
  stopReport,
  waitReport,
} from "./process-tools-report.ts";
import { watch } from "./process-tools-watch.ts";

/** Returns the tools by name. Pass all or some of them to an agent. */
export function processTools(options: ProcessToolsOptions = {}): Readonly<Record<ProcessToolName, Tool>> {
  const context = checkOptions(options);
  const { shell, start_process, read_output, wait_process, stop_process } = options.approval ?? {};
  return {
    shell: tool({
      description: SHELL,
      input: SHELL_INPUT,
      approval: commandApproval("shell", shell),
      execute: (input, call) => {
        const timeoutMs = shorter(context.timeoutMs, input.timeoutMs);
        const limited = { ...input, ...limitOf(timeoutMs) };
        return input.background === true ? start(context, limited, call) : run(context, limited, call);
      },
    }),
    start_process: tool({
      description: START,
      input: START_INPUT,
      approval: commandApproval("start_process", start_process),
      execute: (input, call) => start(context, input, call),
    }),
    read_output: tool({
      description: READ,
      input: READ_INPUT,
      approval: read_output ?? false,
      idempotent: true,
      execute: (input, call) => read(context, input, call),
    }),
    wait_process: tool({
      description: WAIT,
      input: WAIT_INPUT,
      approval: wait_process ?? false,
      idempotent: true,
      execute: (input, call) => wait(context, input, call),
    }),
    stop_process: tool({
      description: STOP,
      input: STOP_INPUT,
      approval: stop_process ?? false,
      idempotent: true,
      execute: (input, call) => stop(context, input, call),
    }),
  };
}

const SHELL =
  "Runs a command and returns its exit code and output. Every process that it has started ends with it. A command " +
  "that takes long continues in the background, and you get its id. Standard input is empty: it cannot ask anything.";
const START =
  "Starts a command in the background, such as a server or a long build, and returns its id at once. It runs until " +
  "it ends, is stopped, or the session ends.";
const READ =
  "Reads the output of a process, also after its end: the last part, or from an offset on. Says how much there is.";
const WAIT = "Waits until a process has ended, at most for a time limit, and returns its exit code and output.";
const STOP = "Stops a process and every process it has started, and returns how it ended.";

async function run(context: ProcessToolsContext, input: ShellInput, call: LiveCall): Promise<string> {
  const { backgroundAfterMs, feedback, bytesMax, given } = context;
  const { timeoutMs } = input;
  const watching = watch(call, { find: () => ownOf(call), bytesMax });
  try {
    const options = { ...given, ...placeOf(input), ...limitOf(timeoutMs), backgroundAfterMs, feedback };
    const ran = await call.processes.run(input.command, options);
    if (ran.kind === "ended") return endReport(ran, await finalOutput(context, ran, call));
    const output = await outputReport(await ran.process.output(), ran.process.id, bytesMax);
    return movedReport(ran.process.id, backgroundAfterMs, { feedback, timeoutMs }, output);
  } catch (error) {
    // Programs may write more output when they are stopped.
    if (call.signal.aborted) await watching.look();
    throw await advised(call, error);
  } finally {
    watching.end();
  }
}

async function start(context: ProcessToolsContext, input: StartInput, call: LiveCall): Promise<string> {
  const { feedback, bytesMax, given } = context;
  const { timeoutMs } = input;
  try {
    const handle = await call.processes.start(input.command, {
      ...given,
      ...placeOf(input),
      ...limitOf(timeoutMs),
      feedback,
    });
    // The result if the call is stopped now; the process belongs to the session already.
    call.partial(`${handle.id} was started, and runs in the background.`);
    // A wrong command usually fails at once, and is reported at once.
    const ended = await handle.wait({ limitMs: START_WATCH_MS, signal: call.signal });
    if (ended !== undefined) return endReport(ended, await finalOutput(context, ended, call));
    const output = await outputReport(await handle.output(), handle.id, bytesMax);
    return startReport(handle.info ?? { id: handle.id }, { feedback, timeoutMs }, output);
  } catch (error) {
    throw await advised(call, error);
  }
}

async function read(context: ProcessToolsContext, input: ReadInput, call: LiveCall): Promise<string> {
  const handle = await find(call, input.processId);
  const output = await handle.output();
  if (output === undefined) return `Nothing is kept of the output of ${handle.id}.`;
  const { stream = "all" } = input;
  const bytesMax = Math.min(input.bytesMax ?? context.bytesMax, OUTPUT_RESULT_BYTES_MAX);
  const offset = input.offset ?? Math.max(0, output.counts.bytes[stream] - bytesMax);
  const isLive = handle.info !== undefined;
  return pageReport(handle.id, await output.read({ stream, offset, bytesMax, plain: true }), output, isLive);
}

async function wait(context: ProcessToolsContext, input: WaitInput, call: LiveCall): Promise<string> {
  const { limitMs = PROCESS_WAIT_MS } = input;
  const handle = await find(call, input.processId);
  const watching = watch(call, { find: async () => handle, bytesMax: context.bytesMax });
  try {
    const ended = await handle.wait({ limitMs, signal: call.signal });
    if (ended !== undefined) return endReport(ended, await finalOutput(context, ended, call));
    return waitReport(handle.id, limitMs, await outputReport(await handle.output(), handle.id, context.bytesMax));
  } catch (error) {
    if (call.signal.aborted) await watching.look();
    throw error;
  } finally {
    watching.end();
  }
}

async function stop(context: ProcessToolsContext, { processId, reason }: StopInput, call: LiveCall): Promise<string> {
  const handle = await find(call, processId);
  await handle.cancel({ kind: "user", by: "the agent", ...(reason === undefined ? {} : { note: reason }) });
  const ended = await handle.wait({ limitMs: PROCESS_STOP_WAIT_MS, signal: call.signal });
  const output = await outputReport(await handle.output(), handle.id, context.bytesMax);
  return stopReport(ended, handle.id, PROCESS_STOP_WAIT_MS, output);
}

/** The output of a process that has ended: from its files or, if these are gone, the end that the log has kept. */
async function finalOutput(
  { bytesMax }: ProcessToolsContext,
  { processId, output }: ProcessResult,
  call: LiveCall,
): Promise<string> {
  const file = await (await call.processes.get(processId)).output();
  if (file !== undefined || output === undefined || output.tail === "") return outputReport(file, processId, bytesMax);
  return `Only the end of its output is kept, of ${output.bytes} bytes:\n${output.tail}`;
}

/** The process that this call runs. */
async function ownOf(call: LiveCall): Promise<ProcessHandle | undefined> {
  const own = (await call.processes.list()).find(({ owner }) => owner === call.callId);
  return own === undefined ? undefined : call.processes.get(own.id);
}

async function find(call: LiveCall, id: string): Promise<ProcessHandle> {
  try {
    return await call.processes.get(id);
  } catch (error) {
    throw await advised(call, error);
  }
}

const placeOf = ({ cwd }: StartInput): { readonly cwd?: string } => (cwd === undefined ? {} : { cwd });

const limitOf = (timeoutMs: number | undefined): { readonly timeoutMs?: number } =>
  timeoutMs === undefined ? {} : { timeoutMs };

const shorter = (host: number | undefined, model: number | undefined): number | undefined =>
  host === undefined || model === undefined ? (host ?? model) : Math.min(host, model);

/** Adds advice for the model to an error. The error's own hint is for the operator. */
async function advised(call: LiveCall, error: unknown): Promise<unknown> {
  if (!(error instanceof ControlError) || call.signal.aborted) return error;
  const { code, message } = error;
  const advice = await adviceFor(code, call);
  return new ControlError(code, advice === "" ? message : `${message}\n${advice}`, { cause: error });
}

async function adviceFor(code: ControlError["code"], call: LiveCall): Promise<string> {
  switch (code) {
    case "not_found":
      return listReport(await call.processes.list());
    case "overloaded":
      return `Stop one first, with stop_process. ${listReport(await call.processes.list())}`;
    case "queue_full":
      return "Results of background processes are waiting for you. End your turn, and start it in the next one.";
    case "not_started":
      return "Nothing was run. Check the name of the program and the working directory, then call it again.";
    case "uncontained":
      return "Nothing was run, and nothing will be until the host is changed. Do not try again: say what is missing.";
    case "invalid":
      return "Nothing was done. Correct the input and call it again.";
    default:
      return "";
  }
}
