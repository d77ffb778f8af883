// The reader's thread.
import { parentPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import { serveReader } from "./serve-reader.ts";

if (parentPort === null) throw new Bug("the reader runs in a thread of its own");
serveReader(parentPort, workerData.file);
