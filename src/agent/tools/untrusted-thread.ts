// The worker thread of an untrusted tool: loads the module, calls its function, and posts the result.
import { parentPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import type { Errand, ToolMessage, UntrustedCall, WorkerMessage } from "./untrusted.ts";

const errand = workerData as Errand;
const port = parentPort;
if (port === null) throw new Bug("an untrusted tool must run in a worker thread");

const read = new Int32Array(errand.read);
const controller = new AbortController();
let said = 0;

// The port stays referenced: a function may wait for nothing but its signal.
port.on("message", ({ stop }: ToolMessage) => controller.abort(new DOMException(stop, "AbortError")));

const call: UntrustedCall = {
  signal: controller.signal,
  partial: (value) => say({ kind: "partial", value }),
  progress: (value) => say({ kind: "progress", value }),
  changed: (what) => say({ kind: "changed", what }),
};

void runTool();

async function runTool(): Promise<void> {
  try {
    const module: Readonly<Record<string, unknown>> = await import(errand.module);
    const execute = module[errand.name];
    if (typeof execute !== "function") {
      throw new Error(`${moduleName()} exports no function \`${errand.name}\`; it exports ${exportsOf(module)}.`);
    }
    say({ kind: "done", value: await execute(errand.input, call) });
  } catch (error) {
    say({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

/** Posts a message. Blocks the calling code while too many messages are unread. */
function say(message: WorkerMessage): void {
  for (let seen = Atomics.load(read, 0); said - seen >= errand.unreadMax; seen = Atomics.load(read, 0)) {
    Atomics.wait(read, 0, seen);
  }
  port?.postMessage(message);
  said += 1;
}

const moduleName = (): string => (errand.module.startsWith("data:") ? "The module" : errand.module);

const exportsOf = (module: object): string => Object.keys(module).join(", ") || "nothing";
