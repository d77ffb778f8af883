// Trees that can be found again from outside, by a mark in the arguments of each of their processes: an eye of its own,
// that shares nothing with what ends them.
import { readdirSync, readFileSync } from "node:fs";
import type { ProcessHandle } from "../../src/spawner.ts";

let count = 0;

/** A number no other process of this machine sleeps for. */
export function mark(): string {
  count += 1;
  return `9${process.pid}${String(count).padStart(4, "0")}`;
}

/** A shell with a daemon that has left its group, a child deaf to SIGTERM, and a plain one. Says that it is up. */
export const hostileTree = (id: string): string =>
  [
    `setsid sh -c 'exec sleep ${id}' &`,
    `sh -c 'trap "" TERM INT HUP; sleep ${id} & wait; sleep ${id}' &`,
    `(setsid env -i sleep ${id} &) &`,
    "echo up",
    `exec sleep ${id}`,
  ].join("\n");

/** Processes of this machine that carry the mark and have not ended. */
export function marked(id: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => carries(pid, id));
}

function carries(pid: number, id: string): boolean {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    // Not a shell that merely has it in its script, but who really sleeps for it.
    if (!args.includes(id)) return false;
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

/** Resolves when the process has said this. */
export async function heard(child: ProcessHandle, text: string): Promise<void> {
  let said = "";
  for await (const page of child.follow()) {
    said += page.text;
    if (said.includes(text)) return;
  }
  throw new Error(`It ended without saying ${text}: ${said}`);
}

/** Resolves when so many processes carry the mark. Turns the event loop; decides nothing by time. */
export async function markedAtLeast(id: string, many: number): Promise<void> {
  while (marked(id).length < many) await new Promise((resolve) => setImmediate(resolve));
}
