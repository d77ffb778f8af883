// What a bench brings home, and how people read it.

export interface Figures {
  readonly ours: Readonly<Record<string, number>>;
  readonly peers: Readonly<Record<string, number>>;
  readonly floor: Readonly<Record<string, number>>;
  /** Against a floor: how many times the floor we cost. Against a peer: how many times faster we are. */
  readonly ratios: Readonly<Record<string, number>>;
}

export function report(name: string, figures: Figures): string {
  const lines = [name];
  for (const part of ["ours", "peers", "floor", "ratios"] as const) {
    for (const [key, value] of Object.entries(figures[part]))
      lines.push(`  ${part.padEnd(7)} ${key.padEnd(40)} ${value}`);
  }
  return lines.join("\n");
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const ascending = (values: readonly number[]): readonly number[] => [...values].sort((a, b) => a - b);
export const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
