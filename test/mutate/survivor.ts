// A mutant that no test has noticed, by what it is and not by where it stands: lines move.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** As it is kept in looked-at.json. */
export interface Survivor {
  readonly file: string;
  /** The line it is in, without what is around it. */
  readonly line: string;
  readonly mutator: string;
  /** The text that was there, and what stood there instead. */
  readonly original: string;
  readonly replacement: string;
}

/** Why it may live. */
export interface LookedAt extends Survivor {
  readonly why: string;
}

/** Whom somebody has looked at. */
export const readLookedAt = (): readonly LookedAt[] =>
  JSON.parse(readFileSync(join(import.meta.dirname, "looked-at.json"), "utf8"));

export const keyOf = ({ file, line, mutator, original, replacement }: Survivor): string =>
  JSON.stringify([file, line, mutator, original, replacement]);

/** Short enough to stand in a figure, for each that survived. */
export const markOf = (one: Survivor): string => createHash("sha256").update(keyOf(one)).digest("hex").slice(0, 10);

interface Found {
  readonly fileName: string;
  readonly mutatorName: string;
  readonly replacement?: string | undefined;
  readonly location: {
    readonly start: { readonly line: number; readonly column: number };
    readonly end: { readonly line: number; readonly column: number };
  };
}

/** Lines and columns count from 1, as in the report. */
export function survivorOf({ fileName, mutatorName, replacement, location }: Found, source: string): Survivor {
  const { start, end } = location;
  const lines = source.split("\n").slice(start.line - 1, end.line);
  const [line = ""] = lines;
  const last = lines.length - 1;
  const original = lines
    .map((text, at) => text.slice(at === 0 ? start.column - 1 : 0, at === last ? end.column - 1 : undefined))
    .join("\n");
  return { file: fileName, line: line.trim(), mutator: mutatorName, original, replacement: replacement ?? "" };
}

/** Survivors nobody has looked at, and those looked at that are gone: killed by now, or the code has changed. */
export function compare(survivors: readonly Survivor[], lookedAt: readonly LookedAt[]) {
  const known = new Set(lookedAt.map(keyOf));
  const alive = new Set(survivors.map(keyOf));
  return {
    fresh: survivors.filter((one) => !known.has(keyOf(one))),
    gone: lookedAt.filter((one) => !alive.has(keyOf(one))),
  };
}
