// The reader's thread: started by thread.ts, and by nobody else.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { serveReader } from "./serve-reader.ts";

serveReader(parentPort as MessagePort, workerData.file);
