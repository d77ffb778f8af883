// The writer's thread.
import { parentPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import { serveWriter } from "./serve-writer.ts";

if (parentPort === null) throw new Bug("the writer runs in a thread of its own");
serveWriter(parentPort, workerData.file);
