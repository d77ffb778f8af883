// Code that may not listen when it is asked to stop, run in a thread of its own, which can be ended from outside.
//
// What this is: the means to stop even an endless loop, and a call that fails instead of a server that dies when the
// code ends its process, runs out of memory or throws where nobody catches.
// What this is not: a boundary against malice. A thread shares the process, its files, its network and its rights; code
// that wants to do harm can. Such code belongs into a process or a machine of its own.
// What it cannot end: a thread inside a blocking call of the system (execSync, a read from a pipe). Its death is
// awaited all the same, and the engine gives the call up by name when its grace has passed.
//
// Invariants
// 1. A thread lives as long as its call: when the promise settles, the thread is gone.
// 2. What the thread said before it died counts, in the order in which it was said.
// 3. What it has said and nobody has read is bounded: it waits before it says more.
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { JsonInput } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { workerFile } from "../../system/worker-file.ts";

/** How long the code may take to stop by itself. Ending the thread takes some ms more, all well within GRACE_MS. */
export const UNTRUSTED_STOP_MS = 250;

/** Heap of one such thread, unless the tool says otherwise: enough to parse a large document, and no server's worth. */
export const UNTRUSTED_MEMORY_MB = 256;

/** Below this no thread starts, above it nobody means one tool. */
const MEMORY_MB_MIN = 8;
const MEMORY_MB_MAX = 64 * 1024;

/** Messages of a thread that may wait to be read. A loop that reports every step is slowed down instead of hoarded. */
export const UNTRUSTED_UNREAD_MAX = 16;

export interface Untrusted {
  /** `new URL("./tool.js", import.meta.url)`, the same as a string, or an absolute path. */
  readonly module: URL | string;
  /** Which of its exports is the function. Default `default`. */
  readonly name?: string;
  /** Its whole environment. Default none: the server's own holds secrets. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its heap; typed arrays and the like are not counted. Default UNTRUSTED_MEMORY_MB. */
  readonly memoryMb?: number;
}

/** What the function gets besides its input. */
export type UntrustedCall = Pick<LiveCall, "signal" | "partial" | "progress" | "changed">;

/** What the thread is started with. */
export interface Errand {
  readonly module: string;
  readonly name: string;
  readonly input: unknown;
  /** One counter: how many of its messages have been read. */
  readonly read: SharedArrayBuffer;
  readonly unreadMax: number;
}

/** What the thread says. The last thing is `done` or `failed`. */
export type WorkerMessage =
  | { readonly kind: "partial" | "progress"; readonly value: JsonInput }
  | { readonly kind: "changed"; readonly what: string }
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "failed"; readonly message: string };

/** What the thread is told: once, to stop. */
export interface ToolMessage {
  readonly stop: string;
}

type End = Extract<WorkerMessage, { kind: "done" | "failed" }>;

const OPTIONS: ReadonlySet<string> = new Set<keyof Untrusted>(["module", "name", "env", "memoryMb"]);

/** The function of a tool whose code is run this way. Throws `invalid` if it cannot be. */
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
  // An object, because the compiler does not see the listeners write to a variable.
  const heard: { end?: End } = {};
  const ended = (end: End): void => {
    heard.end ??= end;
    over.resolve();
  };
  worker.on("message", (said: WorkerMessage) => {
    hear(said, call, ended);
    Atomics.add(read, 0, 1);
    Atomics.notify(read, 0);
  });
  worker.on("messageerror", (error) => ended(failed(`The tool said what cannot be read: ${messageOf(error)}.`)));
  worker.on("error", (error) => ended(died(error, given)));
  worker.on("exit", (code) => ended(failed(`The tool's thread ended by itself, with code ${code}, without a result.`)));
  const forget = onCancel(worker, call, over.resolve);

  await over.promise;
  forget();
  // Also after a result: timers and connections that the code has left behind end with it. What was said before the
  // end is still heard, and what finished although it was asked to stop has finished.
  await worker.terminate();
  if (heard.end?.kind === "done") return heard.end.value;
  // Whatever it says of its end, it was asked for.
  call.signal.throwIfAborted();
  throw new Error(heard.end?.message ?? "The tool's thread was ended.");
}

function start(given: Untrusted, errand: Errand): Worker {
  const worker = new Worker(workerFile("untrusted-thread", import.meta.url), {
    workerData: errand,
    // Without the program's own flags: some of them, like --input-type, no thread can be started with.
    execArgv: [],
    env: { ...given.env },
    resourceLimits: { maxOldGenerationSizeMb: given.memoryMb ?? UNTRUSTED_MEMORY_MB },
    stdout: true,
    stderr: true,
  });
  // What it prints is read, so that it does not pile up, and dropped: the server's own output is not its to write to.
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

function hear(said: WorkerMessage, call: LiveCall, ended: (end: End) => void): void {
  try {
    switch (said.kind) {
      case "partial":
        call.partial(said.value);
        break;
      case "progress":
        call.progress(said.value);
        break;
      case "changed":
        call.changed(said.what);
        break;
      default:
        ended(said);
    }
  } catch (error) {
    // What it put aside is not JSON, or too large. A function in this thread would be thrown at, and end the same way.
    ended(failed(messageOf(error)));
  }
}

/** Tells the thread to stop, and no longer waits for it after a while. The answer takes that back. */
function onCancel(worker: Worker, call: LiveCall, stuck: () => void): () => void {
  let disarm = (): void => undefined;
  const tell = (): void => {
    const told: ToolMessage = { stop: messageOf(call.signal.reason) };
    worker.postMessage(told);
    disarm = call.clock.after(UNTRUSTED_STOP_MS, stuck);
  };
  if (call.signal.aborted) tell();
  else call.signal.addEventListener("abort", tell, { once: true });
  return () => {
    call.signal.removeEventListener("abort", tell);
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
    throw invalid("`untrusted.name` is the name of an export.");
  }
  if (env !== undefined && Object.values(env).some((value) => typeof value !== "string")) {
    throw invalid("`untrusted.env` is an object of strings.");
  }
  if (
    memoryMb !== undefined &&
    !(Number.isInteger(memoryMb) && memoryMb >= MEMORY_MB_MIN && memoryMb <= MEMORY_MB_MAX)
  ) {
    throw invalid(`\`untrusted.memoryMb\` is a whole number from ${MEMORY_MB_MIN} to ${MEMORY_MB_MAX}.`);
  }
  return moduleUrl(given.module);
}

function moduleUrl(module: URL | string): string {
  if (module instanceof URL) return module.href;
  if (typeof module === "string") {
    if (isAbsolute(module)) return pathToFileURL(module).href;
    if (/^(file|data):/.test(module)) return module;
  }
  // A relative one would be looked for beside Belay's own files.
  throw invalid('`untrusted.module` is an absolute path or a URL, like new URL("./tool.js", import.meta.url).');
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
