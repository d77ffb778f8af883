// Lets the faults loose on a house with one known mistake in it.
import { Worker } from "node:worker_threads";
import type { Edit } from "../../sim/bugs/bug.ts";

/** A mistake may make the house go round in circles. One that is silent for so long was found by that. */
const SILENT_MS = 20_000;

export type Heard = { readonly kind: "progress" } | { readonly kind: "found"; readonly by: string | undefined };

/** What gave it away; undefined if nothing did. */
export function hunt(edits: readonly Edit[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./mistake-worker.ts", import.meta.url), { workerData: { edits } });
    let timer: NodeJS.Timeout | undefined;
    const end = (by: string | undefined): void => {
      clearTimeout(timer);
      void worker.terminate().then(() => resolve(by));
    };
    worker.on("message", (heard: Heard) => {
      clearTimeout(timer);
      if (heard.kind === "found") end(heard.by);
      else timer = setTimeout(() => end("no end: it goes round in circles"), SILENT_MS);
    });
    worker.on("error", reject);
  });
}
