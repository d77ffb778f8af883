// The worker thread of an untrusted tool: loads the module, calls its function, and posts the result.
import { parentPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import type { ToolMessage, UntrustedCall, WorkerInput, WorkerMessage } from "./untrusted.ts";

const workerInput = workerData as WorkerInput;
const port = parentPort;
if (port === null) throw new Bug("an untrusted tool must run in a worker thread");

const read = new Int32Array(workerInput.read);
const controller = new AbortController();
let posted = 0;

// The port stays referenced: a function may wait for nothing but its signal.
port.on("message", ({ stop }: ToolMessage) => controller.abort(new DOMException(stop, "AbortError")));

const call: UntrustedCall = {
  signal: controller.signal,
  partial: (value) => post({ kind: "partial", value }),
  progress: (value) => post({ kind: "progress", value }),
  changed: (what) => post({ kind: "changed", what }),
};

void runTool();

async function runTool(): Promise<void> {
  try {
    const module: Readonly<Record<string, unknown>> = await import(workerInput.module);
    const execute = module[workerInput.name];
    if (typeof execute !== "function") {
      throw new Error(`${moduleName()} exports no function \`${workerInput.name}\`; it exports ${exportsOf(module)}.`);
    }
    post({ kind: "done", value: await execute(workerInput.input, call) });
  } catch (error) {
    post({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

/** Posts a message. Blocks the calling code while too many messages are unread. */
function post(message: WorkerMessage): void {
  for (let seen = Atomics.load(read, 0); posted - seen >= workerInput.unreadMax; seen = Atomics.load(read, 0)) {
    Atomics.wait(read, 0, seen);
  }
  port?.postMessage(message);
  posted += 1;
}

const moduleName = (): string => (workerInput.module.startsWith("data:") ? "The module" : workerInput.module);

const exportsOf = (module: object): string => Object.keys(module).join(", ") || "nothing";
