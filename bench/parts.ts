// A bench in parts, each in a process of its own, so that none inherits another's heap.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Figures } from "./report.ts";

const run = promisify(execFile);
const KINDS = ["ours", "peers", "floor", "ratios"] as const;

/** The figures of all parts together. A part is a file beside `place` that prints its own as JSON. */
export async function runParts(
  place: string,
  parts: readonly string[],
  progress: (line: string) => void,
): Promise<Readonly<Record<keyof Figures, Record<string, number>>>> {
  const all: Record<keyof Figures, Record<string, number>> = { ours: {}, peers: {}, floor: {}, ratios: {} };
  for (const part of parts) {
    progress(`${part} …`);
    const file = new URL(`./${part}.ts`, place).pathname;
    const { stdout } = await run(process.execPath, ["--expose-gc", file], { maxBuffer: 2 ** 24 });
    const figures: Partial<Figures> = JSON.parse(stdout);
    for (const kind of KINDS) Object.assign(all[kind], figures[kind]);
    progress(`${part}: ${JSON.stringify(figures.ratios ?? figures.ours)}`);
  }
  return all;
}
