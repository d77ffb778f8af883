// Loaded into the server before anything else (`--import`): loads the given modules in place of those on disk, and
// answers what the process has in its memory when it is asked. It changes nothing by itself.
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { getHeapSpaceStatistics, writeHeapSnapshot } from "node:v8";
import workerThreads, { isMainThread, Worker, type WorkerOptions } from "node:worker_threads";
import { loadEdited } from "../mistakes/load-edited.ts";
import type { EditedModule } from "../mistakes/mistake.ts";
import { type Ask, type Memory, MODULES_VARIABLE } from "./memory.ts";
import { countOf } from "./outside.ts";

const COLLECTIONS = 2;

/** Where the engine keeps the code that it compiles of what runs often. It goes on with that for thousands of runs. */
const CODE = /^(code|trusted)_/;

const modules = process.env[MODULES_VARIABLE] ?? "";
if (modules !== "") {
  // The edge: written by the soak.
  loadEdited(JSON.parse(readFileSync(modules, "utf8")) as readonly EditedModule[]);
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
