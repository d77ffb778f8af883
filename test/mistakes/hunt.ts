// Lets a search loose on code with one known mistake in it, in a thread that has modules of its own.
import { Worker } from "node:worker_threads";
import type { EditedModule } from "./mistake.ts";

/** `what`: what is tried now. `by`: what gave the mistake away; undefined if nothing did. */
export type Heard =
  | { readonly kind: "trying"; readonly what: string }
  | { readonly kind: "found"; readonly by: string | undefined };

/** What gave it away; undefined if nothing did. One that is silent for too long was found by that. */
export function huntIn(search: URL, modules: readonly EditedModule[], silentMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(search, { workerData: { modules } });
    let timer: NodeJS.Timeout | undefined;
    const end = (by: string | undefined): void => {
      clearTimeout(timer);
      void worker.terminate().then(() => resolve(by));
    };
    worker.on("message", (heard: Heard) => {
      clearTimeout(timer);
      if (heard.kind === "found") end(heard.by);
      else timer = setTimeout(() => end(`no end: ${heard.what}`), silentMs);
    });
    worker.on("error", reject);
  });
}
