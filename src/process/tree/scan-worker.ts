// The thread of `scan-thread.ts`: reads the table of processes, and says how far it is.
import { parentPort } from "node:worker_threads";
import { messageOf } from "../../core/errors.ts";
import { listProcesses } from "./proc.ts";
import { COUNT, type LookReply, type LookRequest, OVER, READING } from "./scan-thread.ts";

const port = parentPort;
if (port === null) throw new Error("This module is the entry of a worker thread.");

const reply = (one: LookReply): void => port.postMessage(one);

port.on("message", ({ root, unread, progress }: LookRequest) => {
  Atomics.add(progress, COUNT, 1);
  const look = listProcesses(
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
  look
    .then(
      (all) => reply({ kind: "all", all }),
      (error: unknown) => reply({ kind: "failed", message: messageOf(error) }),
    )
    .finally(() => {
      Atomics.store(progress, OVER, 1);
      Atomics.notify(progress, OVER);
    });
});
