// What threads of the simulation are asked, what they answer, and how they are started.
import { Worker } from "node:worker_threads";
import type { Edit } from "./bugs/bug.ts";
import type { Focus } from "./flavour.ts";
import type { Violation } from "./oracle.ts";
import type { Searched } from "./search.ts";

export type Errand =
  | {
      readonly kind: "seeds";
      readonly from: number;
      readonly count: number;
      readonly focus?: Focus | undefined;
      readonly twice?: boolean | undefined;
    }
  | { readonly kind: "scopes"; readonly ops: number; readonly share: { readonly index: number; readonly of: number } }
  | {
      readonly kind: "bug";
      readonly edits: readonly Edit[];
      readonly seed: number;
      readonly seeds: number;
      readonly focus?: Focus | undefined;
    };

export type Answer =
  | { readonly kind: "progress"; readonly done: number; readonly hashes?: readonly string[] }
  | ({ readonly kind: "searched" } & Searched)
  | {
      readonly kind: "broken";
      readonly scope: readonly string[];
      readonly violation: Violation & { readonly choices: readonly number[] };
    }
  | { readonly kind: "explored"; readonly scopes: number; readonly interleavings: number }
  /** `by`: what gave the mistake away. */
  | { readonly kind: "hunted"; readonly by: string | undefined };

/**
 * Runs an errand in a thread of its own; resolves when the thread has ended by itself, or has been ended at the limit.
 */
export function runErrand(
  errand: Errand,
  heard: (answer: Answer) => void,
  limitMs?: number,
): Promise<"ended" | "limit"> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: errand });
    let limited = false;
    const timer =
      limitMs === undefined
        ? undefined
        : setTimeout(() => {
            limited = true;
            void worker.terminate();
          }, limitMs);
    worker.on("message", heard);
    worker.on("error", reject);
    worker.on("exit", () => {
      clearTimeout(timer);
      resolve(limited ? "limit" : "ended");
    });
  });
}
