// The entry point of the writer's thread, started by thread.ts.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { serveWriter } from "./serve-writer.ts";

serveWriter(parentPort as MessagePort, workerData.file);
