// Lets worlds go by, one after the other, with the store as it is or with a mistake in it.
import { parentPort, workerData } from "node:worker_threads";
import { loadEdited } from "../mistakes/load-edited.ts";
import { type Task, type WorldReport, worldSeed } from "./task.ts";
import "./on-disk.ts";

const { seed, first, step, end, cutsPerWorld, modules, lies } = workerData as Task;
// A disk without power fails thousands of times, and nobody reads where.
Error.stackTraceLimit = 0;
loadEdited(modules);
const { runWorld } = await import("./world.ts");

for (let world = first; world < end; world += step) {
  const report: WorldReport = { world, ...runWorld({ seed: worldSeed(seed, world), cuts: cutsPerWorld, lies }) };
  parentPort?.postMessage(report);
}
