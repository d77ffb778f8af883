// The entry point of the reader's thread, started by thread.ts.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { serveReader } from "./serve-reader.ts";

serveReader(parentPort as MessagePort, workerData.file);
