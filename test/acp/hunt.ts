// Lets the probe loose on the door with one mistake in it.
import { Worker } from "node:worker_threads";
import type { Edit } from "../../sim/bugs/bug.ts";
import type { Heard } from "./mistake-worker.ts";

/** A scene takes some milliseconds. One that is silent for so long waits for something that does not come. */
const SILENT_MS = 4_000;

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
      else timer = setTimeout(() => end(`no end: ${heard.what}`), SILENT_MS);
    });
    worker.on("error", reject);
  });
}
