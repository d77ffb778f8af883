// Who is left of a server, told by where it works. Not by what its own commands have in their arguments: what a server
// starts for itself, to test what holds processes, has none of that, and may have shed its environment as well.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export interface LeftOver {
  readonly pid: number;
  /** Its arguments, as far as they say what it is. */
  readonly args: string;
}

/** What is in no ledger ends by itself within this long after its server. It takes a tenth of a second. */
const END_MS_MAX = 5_000;
const LOOK_MS = 20;
const ARGS_CHARS_MAX = 200;

/** Everybody alive who works in this directory or below it, also if it was removed by now. `known` are left out. */
export function workingIn(dir: string, known: readonly string[] = []): readonly LeftOver[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      if (!/^\d+$/.test(name) || !`${readlinkSync(`/proc/${name}/cwd`)}/`.startsWith(`${dir}/`)) return [];
      const args = readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ").trim();
      if (known.some((one) => args.includes(one))) return [];
      return [{ pid: Number(name), args: args.slice(0, ARGS_CHARS_MAX) }];
    } catch {
      return []; // Gone meanwhile, or the kernel's own.
    }
  });
}

/** Those who are still there when they have had their time. Nobody waits where nobody is. */
export async function outliving(look: () => readonly LeftOver[]): Promise<readonly LeftOver[]> {
  const began = performance.now();
  for (;;) {
    const left = look();
    if (left.length === 0 || performance.now() - began > END_MS_MAX) return left;
    await pause(LOOK_MS);
  }
}

/** It may have ended by itself. */
export function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone meanwhile.
  }
}
