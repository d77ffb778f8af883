// A command of the operating system, in a process group of its own: when it is stopped, the whole group is.
//
// Simple on purpose, and in one file: the containment of processes will have a room of its own, and take its place.
import { type ChildProcess, spawn } from "node:child_process";
import type { Json } from "../core/prompt.ts";
import type { LiveCall } from "../ports.ts";

/** A group that was asked to end gets this long; then it is ended. Well within anybody's grace. */
const KILL_AFTER_MS = 250;

/** What of its output is kept. */
const OUTPUT_CHARS_MAX = 4_096;

/** Groups that are alive. Whichever way this program ends, they end with it. */
const living = new Set<number>();

/** Runs it to its end. Stopped, it has ended, with all that it had started, before the call does. */
export async function runCommand(command: string, folder: string, call: LiveCall): Promise<Json> {
  const child = spawn("sh", ["-c", command], {
    cwd: folder,
    detached: true,
    env: { PATH: process.env.PATH ?? "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = endOf(child);
  const { pid } = child;
  if (pid === undefined) return ended;
  const forget = remember(pid);
  try {
    return await stoppable(pid, ended, listen(child, pid, call), call);
  } finally {
    forget();
  }
}

async function stoppable(pid: number, ended: Promise<End>, output: () => string, call: LiveCall): Promise<Json> {
  const { clock, signal } = call;
  let takeBack = (): void => {};
  const stop = (): void => {
    kill(pid, "SIGTERM");
    takeBack = clock.after(KILL_AFTER_MS, () => kill(pid, "SIGKILL"));
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  try {
    const end = await ended;
    signal.throwIfAborted();
    return { ...end, output: output() };
  } finally {
    takeBack();
    signal.removeEventListener("abort", stop);
  }
}

type End = { readonly code: number | null; readonly signal: string | null };

/** Its output is closed when the last process that could write to it has ended, not only the first. */
function endOf(child: ChildProcess): Promise<End> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
}

/** Tells whoever follows what it says, and keeps it. */
function listen(child: ChildProcess, pid: number, { progress, partial }: LiveCall): () => string {
  let output = "";
  const hear = (text: string): void => {
    output = (output + text).slice(-OUTPUT_CHARS_MAX);
    progress({ pid, output: text });
    partial({ pid, output });
  };
  progress({ pid });
  partial({ pid });
  child.stdout?.setEncoding("utf8").on("data", hear);
  child.stderr?.setEncoding("utf8").on("data", hear);
  return () => output;
}

function remember(pid: number): () => void {
  if (living.size === 0) process.on("exit", killAll);
  living.add(pid);
  return () => {
    living.delete(pid);
    if (living.size === 0) process.removeListener("exit", killAll);
  };
}

function killAll(): void {
  for (const pid of living) kill(pid, "SIGKILL");
}

/** Negative: the group that it leads. */
function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended by itself.
  }
}
