// A promise that is rejected while nobody listens takes a Node program down. In a simulation it is a violation of the
// schedule that is going on: rejections are reported before the next step.
import type { Simulation } from "./simulation.ts";

let current: Simulation | undefined;
let listening = false;

/** From now on they are this simulation's. */
export function onRejections(simulation: Simulation): void {
  current = simulation;
  if (listening) return;
  listening = true;
  process.on("unhandledRejection", (error) => {
    current?.violate("G33", `A promise was rejected and nobody listened: ${String(error)}`);
  });
}
