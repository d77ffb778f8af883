// What tools have really done: a file with one line at the beginning and one at the end of each, written before
// anything else can happen. The log is not asked: it is what is held against this.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { CallId, RunId } from "../../src/core/model/ids.ts";

export type Effect =
  | {
      readonly kind: "begin" | "end";
      readonly runId: RunId;
      readonly callId: CallId;
      /** Which step of its run it is: the same if a turn is asked again. */
      readonly step: string;
    }
  /** A turn was given a transcript that no provider would take. */
  | { readonly kind: "bad-transcript"; readonly runId: RunId; readonly why: string };

/** One write of a short line to a file that is opened for appending is there whole or not at all. */
export function note(file: string, effect: Effect): void {
  appendFileSync(file, `${JSON.stringify(effect)}\n`);
}

export function readEffects(file: string): readonly Effect[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  // The edge: what `note` has written.
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Effect);
}
