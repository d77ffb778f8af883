// Loaded into the server before anything else (`--import`): makes the changes it is told to make, and answers what the
// process has in its memory when it is asked. It changes nothing by itself.
import { syncBuiltinESMExports } from "node:module";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { getHeapSpaceStatistics, writeHeapSnapshot } from "node:v8";
import workerThreads, { isMainThread, Worker, type WorkerOptions } from "node:worker_threads";
import type { Edit } from "../../sim/bugs/bug.ts";
import { patchModules } from "../../sim/patch.ts";
import { type Ask, EDITS_VARIABLE, type Memory } from "./memory.ts";
import { countOf } from "./outside.ts";

const COLLECTIONS = 2;

/** Where the engine keeps the code that it compiles of what runs often. It goes on with that for thousands of runs. */
const CODE = /^(code|trusted)_/;

const edits = JSON.parse(process.env[EDITS_VARIABLE] ?? "[]") as readonly Edit[];
if (edits.length > 0) {
  patchModules(edits);
  changeThreadsToo();
}
if (isMainThread && process.channel !== undefined) {
  process.on("message", (asked: Ask) => {
    void answer(asked).then((said) => process.send?.(said));
  });
  // Whoever looks must not be what keeps it alive.
  process.channel?.unref?.();
}

/** The threads of the store are started without the flags of the program: they would be as they are on disk. */
function changeThreadsToo(): void {
  workerThreads.Worker = class extends Worker {
    constructor(file: string | URL, options: WorkerOptions = {}) {
      super(file, { ...options, execArgv: [...(options.execArgv ?? []), "--import", import.meta.url] });
    }
  };
  syncBuiltinESMExports();
}

async function answer(asked: Ask): Promise<Memory> {
  // What one collection has let go is told to whoever waits for it, and is gone after the next. The engine keeps the
  // pages it has emptied for later, ever more of them as the load has its peaks; only its last resort gives them back.
  for (let times = 0; times < COLLECTIONS; times += 1) {
    globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
    await turnOfTheLoop();
  }
  const { external } = process.memoryUsage();
  const heapBytes = getHeapSpaceStatistics()
    .filter(({ space_name: name }) => !CODE.test(name))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0);
  const resources = countOf(process.getActiveResourcesInfo());
  if (asked.type === "snapshot") writeHeapSnapshot(asked.file);
  return { heapBytes, externalBytes: external, resources };
}
