// The same trees without Belay: the kernel's own time to end them, for comparison.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { childrenOf, identityOf, presenceOf } from "../../src/process/tree/proc.ts";
import { percentile } from "./figures.ts";
import { markOf, SHAPES } from "./shapes.ts";

/** Long enough for bubblewrap to finish its setup. */
const SETTLE_MS = 20;

export interface BareKill {
  readonly trees: number;
  readonly bareKillP50Ms: number | undefined;
  readonly bareKillP99Ms: number | undefined;
}

/** Kills trees in a PID namespace by their leader, and waits until the kernel has ended the last of them. */
export async function bareKill(bwrap: string, rounds: number, firstMark: number): Promise<BareKill> {
  const times: number[] = [];
  let mark = firstMark;
  for (let round = 0; round < rounds; round += 1) {
    for (const shape of SHAPES) {
      if (shape.end === "alone") continue;
      mark += 1;
      times.push(await killOne(bwrap, shape.command(markOf(mark))));
    }
  }
  return { trees: times.length, bareKillP50Ms: percentile(times, 0.5), bareKillP99Ms: percentile(times, 0.99) };
}

async function killOne(bwrap: string, command: string): Promise<number> {
  const mounts = ["--dev-bind", "/", "/", "--proc", "/proc"];
  const args = ["--die-with-parent", "--new-session", "--unshare-pid", ...mounts, "--", "/bin/sh", "-c", command];
  const child = spawn(bwrap, args, { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child, "close");
  await once(child.stdout, "data");
  // Without a gate a command may print before the kernel knows to end it with its leader, and would survive.
  await pause(SETTLE_MS);
  const first = identityOf(childrenOf(child.pid ?? 0)[0] ?? 0);
  const began = performance.now();
  child.kill("SIGKILL");
  await closed;
  // The pipe closes before the last of them is gone; the first process of a namespace is the last.
  while (first !== undefined && presenceOf(first) !== "gone") await new Promise((resolve) => setImmediate(resolve));
  return performance.now() - began;
}
