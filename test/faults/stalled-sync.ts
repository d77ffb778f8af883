// Loaded before a server: while the file named by BELAY_TEST_STALL exists, a commit of the store stands still, as it
// does when a disk does not answer a sync. Beside it, a file tells that somebody does stand still.
import { existsSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { StatementSync } from "node:sqlite";
import workerThreads, { isMainThread, type WorkerOptions } from "node:worker_threads";

const LOOK_MS = 5;
const stall = process.env.BELAY_TEST_STALL ?? "";

if (isMainThread) followIntoThreads();
else standStill();

/** The store starts its threads without the program's flags, so they are given this file anew. */
function followIntoThreads(): void {
  workerThreads.Worker = new Proxy(workerThreads.Worker, {
    construct: (target, [entry, options]: [URL, WorkerOptions]) =>
      new target(entry, { ...options, execArgv: ["--import", import.meta.url] }),
  });
  syncBuiltinESMExports();
}

function standStill(): void {
  const { run } = StatementSync.prototype;
  StatementSync.prototype.run = function (this: StatementSync, ...given: unknown[]): unknown {
    if (this.sourceSQL === "COMMIT" && existsSync(stall)) {
      writeFileSync(`${stall}.reached`, "");
      // The whole thread, as in a call of the system that does not return.
      while (existsSync(stall)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
    }
    return Reflect.apply(run, this, given);
  } as typeof run;
}
