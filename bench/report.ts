// What a bench brings home, and how people read it.
import { execFileSync } from "node:child_process";
import { cpus, totalmem } from "node:os";

export interface Figures {
  readonly ours: Readonly<Record<string, number>>;
  readonly peers: Readonly<Record<string, number>>;
  readonly floor: Readonly<Record<string, number>>;
  /** Against a floor: how many times the floor we cost. Against a peer: how many times faster we are. */
  readonly ratios: Readonly<Record<string, number>>;
}

export interface JudgedFigures extends Figures {
  /** The goals that do not hold, in words. A bench without goals has none to miss. */
  readonly missed?: readonly string[];
}

export function report(name: string, figures: Figures): string {
  const lines = [name];
  for (const part of ["ours", "peers", "floor", "ratios"] as const) {
    for (const [key, value] of Object.entries(figures[part]))
      lines.push(`  ${part.padEnd(7)} ${key.padEnd(40)} ${value}`);
  }
  return lines.join("\n");
}

/** Where figures come from: without it they cannot be compared with those of another day. */
export function origin(): { readonly machine: string; readonly commit: string } {
  const [cpu] = cpus();
  const gigabytes = round(totalmem() / 2 ** 30, 0);
  const machine = `${cpus().length} x ${cpu?.model.trim()}, ${gigabytes} GB, node ${process.version}`;
  try {
    const words = ["describe", "--always", "--dirty", "--exclude=*"];
    const commit = execFileSync("git", words, { cwd: import.meta.dirname, encoding: "utf8", stdio: "pipe" });
    return { machine, commit: commit.trim() };
  } catch {
    // An unpacked archive has no history.
    return { machine, commit: "unknown" };
  }
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const ascending = (values: readonly number[]): readonly number[] => [...values].sort((a, b) => a - b);
export const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
