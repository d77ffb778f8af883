// The worker of `scan-thread.ts`: reads the process table and reports its progress.
import { parentPort } from "node:worker_threads";
import { messageOf } from "../../core/errors.ts";
import { listProcesses } from "./proc.ts";
import { COUNT, OVER, READING, type ScanReply, type ScanRequest } from "./scan-thread.ts";

const port = parentPort;
if (port === null) throw new Error("This module is the entry of a worker thread.");

const reply = (one: ScanReply): void => port.postMessage(one);

port.on("message", ({ root, unread, progress }: ScanRequest) => {
  Atomics.add(progress, COUNT, 1);
  const scan = listProcesses(
    {
      cookies: true,
      unread: new Set(unread),
      reading: (pid) => {
        Atomics.store(progress, READING, pid);
        Atomics.add(progress, COUNT, 1);
      },
      meet: (one) => {
        if (one.cookies.length > 0) reply({ kind: "marked", one });
      },
    },
    root,
  );
  scan
    .then(
      (all) => reply({ kind: "all", all }),
      (error: unknown) => reply({ kind: "failed", message: messageOf(error) }),
    )
    .finally(() => {
      Atomics.store(progress, OVER, 1);
      Atomics.notify(progress, OVER);
    });
});
