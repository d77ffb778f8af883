// The eye of `tree.ts`, in a thread of its own: it sleeps in the kernel until the last writer of a pipe is gone, and
// notes the time. Neither side's own work delays it.
import { closeSync, openSync, readSync } from "node:fs";
import { parentPort } from "node:worker_threads";

const bytes = Buffer.alloc(64);
parentPort?.on("message", ({ fifo, members }: { readonly fifo: string; readonly members: number }) => {
  const fd = openSync(fifo, "r");
  let seen = 0;
  let told = false;
  for (let read = readSync(fd, bytes); read > 0; read = readSync(fd, bytes)) {
    seen += read;
    if (!told && seen >= members) parentPort?.postMessage({ type: "up", fifo });
    told ||= seen >= members;
  }
  const at = Number(process.hrtime.bigint()) / 1e6;
  closeSync(fd);
  parentPort?.postMessage({ type: "gone", fifo, at });
});
