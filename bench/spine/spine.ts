// The spine's figures. Each part runs in a process of its own, so that none inherits another's heap.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Figures } from "../report.ts";

const run = promisify(execFile);
const PARTS = ["import", "throughput", "cancel", "memory", "growth", "start"] as const;

export async function spine(progress: (line: string) => void): Promise<Figures> {
  const all: { -readonly [K in keyof Figures]: Record<string, number> } = {
    ours: {},
    peers: {},
    floor: {},
    ratios: {},
  };
  for (const part of PARTS) {
    progress(`${part} …`);
    const file = new URL(`./${part}.ts`, import.meta.url).pathname;
    const { stdout } = await run(process.execPath, ["--expose-gc", file], { maxBuffer: 2 ** 24 });
    const figures: Partial<Figures> = JSON.parse(stdout);
    for (const key of ["ours", "peers", "floor", "ratios"] as const) Object.assign(all[key], figures[key]);
    progress(`${part}: ${JSON.stringify(figures.ratios ?? figures.ours)}`);
  }
  return all;
}
