// Runs code that may ignore its signal in a worker thread, which can be terminated from outside.
//
// Purpose: to stop even an endless loop, and to fail the call instead of the server when the code ends its process,
// runs out of memory or throws an uncaught error.
// Not a security boundary: a thread shares the process, its files, its network and its permissions, so malicious code
// can do harm. Run such code in a separate process or machine.
// Limit: a thread inside a blocking system call (execSync, a read from a pipe) cannot be terminated. Its end is awaited
// all the same, and the engine reports the call as abandoned when its grace period has passed.
//
// Invariants
// 1. A thread lives as long as its call: when the promise settles, the thread is gone.
// 2. Messages that the thread posted before it ended are handled, in order.
// 3. The number of unread messages is bounded: the thread blocks before it posts more.
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { JsonInput } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { workerFile } from "../../system/worker-file.ts";

/** How long the code may take to stop by itself. Terminating the thread takes some ms more, well within GRACE_MS. */
export const UNTRUSTED_STOP_MS = 250;

/** Default heap size of one thread: enough to parse a large document, much less than a server needs. */
export const UNTRUSTED_MEMORY_MB = 256;

/** No thread starts with less; more is a mistake. */
const MEMORY_MB_MIN = 8;
const MEMORY_MB_MAX = 64 * 1024;

/** Unread messages of one thread. Backpressure slows down a loop that reports every step. */
export const UNTRUSTED_UNREAD_MAX = 16;

export interface Untrusted {
  /** `new URL("./tool.js", import.meta.url)`, the same as a string, or an absolute path. */
  readonly module: URL | string;
  /** The export that is the function. Default: `default`. */
  readonly name?: string;
  /** Its whole environment. Default: empty, because the server's environment contains secrets. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its heap limit; typed arrays are not counted. Default UNTRUSTED_MEMORY_MB. */
  readonly memoryMb?: number;
}

/** The second argument of the function. */
export type UntrustedCall = Pick<LiveCall, "signal" | "partial" | "progress" | "changed">;

/** The `workerData` of the thread. */
export interface WorkerInput {
  readonly module: string;
  readonly name: string;
  readonly input: unknown;
  /** One counter: how many of the thread's messages have been handled. */
  readonly read: SharedArrayBuffer;
  readonly unreadMax: number;
}

/** Messages of the thread. The last one is `done` or `failed`. */
export type WorkerMessage =
  | { readonly kind: "partial" | "progress"; readonly value: JsonInput }
  | { readonly kind: "changed"; readonly what: string }
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "failed"; readonly message: string };

/** The message to the thread: sent once, to stop it. */
export interface ToolMessage {
  readonly stop: string;
}

type End = Extract<WorkerMessage, { kind: "done" | "failed" }>;

const OPTIONS: ReadonlySet<string> = new Set<keyof Untrusted>(["module", "name", "env", "memoryMb"]);

/** Returns the `execute` function of an untrusted tool. Throws `invalid` for bad options. */
export function untrusted(given: Untrusted): (input: unknown, call: LiveCall) => Promise<unknown> {
  const module = checkUntrusted(given);
  return (input, call) => runInThread({ ...given, module }, input, call);
}

async function runInThread(
  given: Untrusted & { readonly module: string },
  input: unknown,
  call: LiveCall,
): Promise<unknown> {
  const read = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = start(given, {
    module: given.module,
    name: given.name ?? "default",
    input,
    read: read.buffer,
    unreadMax: UNTRUSTED_UNREAD_MAX,
  });
  const over = Promise.withResolvers<void>();
  // An object, because the compiler does not track assignments to a variable in listeners.
  const result: { end?: End } = {};
  const ended = (end: End): void => {
    result.end ??= end;
    over.resolve();
  };
  worker.on("message", (message: WorkerMessage) => {
    handleMessage(message, call, ended);
    Atomics.add(read, 0, 1);
    Atomics.notify(read, 0);
  });
  worker.on("messageerror", (error) => ended(failed(`A message of the tool cannot be read: ${messageOf(error)}.`)));
  worker.on("error", (error) => ended(died(error, given)));
  worker.on("exit", (code) => ended(failed(`The tool's thread ended by itself, with code ${code}, without a result.`)));
  const forget = onCancel(worker, call, over.resolve);

  await over.promise;
  forget();
  // Terminated even after a result: timers and connections left behind by the code end with the thread. Messages posted
  // before the end are still handled, and code that finished despite the stop counts as finished.
  await worker.terminate();
  if (result.end?.kind === "done") return result.end.value;
  // A stop takes precedence over an error caused by it.
  call.signal.throwIfAborted();
  throw new Error(result.end?.message ?? "The tool's thread was ended.");
}

function start(given: Untrusted, workerInput: WorkerInput): Worker {
  const worker = new Worker(workerFile("untrusted-thread", import.meta.url), {
    workerData: workerInput,
    // Without the program's flags: a thread cannot start with some of them, such as --input-type.
    execArgv: [],
    env: { ...given.env },
    resourceLimits: { maxOldGenerationSizeMb: given.memoryMb ?? UNTRUSTED_MEMORY_MB },
    stdout: true,
    stderr: true,
  });
  // Its output is drained, so that it does not pile up, and dropped: the server's output is not the tool's.
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

function handleMessage(message: WorkerMessage, call: LiveCall, ended: (end: End) => void): void {
  try {
    switch (message.kind) {
      case "partial":
        call.partial(message.value);
        break;
      case "progress":
        call.progress(message.value);
        break;
      case "changed":
        call.changed(message.what);
        break;
      default:
        ended(message);
    }
  } catch (error) {
    // The partial result is not JSON or too large. In-process code would get this error thrown, and end the same way.
    ended(failed(messageOf(error)));
  }
}

/** Asks the thread to stop when the call is cancelled, and calls `stuck` if it does not. Returns a disposer. */
function onCancel(worker: Worker, call: LiveCall, stuck: () => void): () => void {
  let disarm = (): void => undefined;
  const requestStop = (): void => {
    const message: ToolMessage = { stop: messageOf(call.signal.reason) };
    worker.postMessage(message);
    disarm = call.clock.after(UNTRUSTED_STOP_MS, stuck);
  };
  if (call.signal.aborted) requestStop();
  else call.signal.addEventListener("abort", requestStop, { once: true });
  return () => {
    call.signal.removeEventListener("abort", requestStop);
    disarm();
  };
}

function died(error: unknown, given: Untrusted): End {
  if (error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY") {
    return failed(`The tool used more than ${given.memoryMb ?? UNTRUSTED_MEMORY_MB} MiB of memory, and was ended.`);
  }
  return failed(`The tool's thread died: ${messageOf(error)}`);
}

const failed = (message: string): End => ({ kind: "failed", message });

function checkUntrusted(given: Untrusted): string {
  const unknown = Object.keys(given).find((key) => !OPTIONS.has(key));
  if (unknown !== undefined) throw invalid(`\`untrusted\` has no \`${unknown}\`; it has ${[...OPTIONS].join(", ")}.`);
  const { name, env, memoryMb } = given;
  if (name !== undefined && (typeof name !== "string" || name === "")) {
    throw invalid("`untrusted.name` must be the name of an export.");
  }
  if (env !== undefined && Object.values(env).some((value) => typeof value !== "string")) {
    throw invalid("`untrusted.env` must be an object of strings.");
  }
  if (
    memoryMb !== undefined &&
    !(Number.isInteger(memoryMb) && memoryMb >= MEMORY_MB_MIN && memoryMb <= MEMORY_MB_MAX)
  ) {
    throw invalid(`\`untrusted.memoryMb\` must be a whole number from ${MEMORY_MB_MIN} to ${MEMORY_MB_MAX}.`);
  }
  return moduleUrl(given.module);
}

function moduleUrl(module: URL | string): string {
  if (module instanceof URL) return module.href;
  if (typeof module === "string") {
    if (isAbsolute(module)) return pathToFileURL(module).href;
    if (/^(file|data):/.test(module)) return module;
  }
  // A relative path would be resolved against Belay's own files.
  throw invalid('`untrusted.module` must be an absolute path or a URL, like new URL("./tool.js", import.meta.url).');
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
