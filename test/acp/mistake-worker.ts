// Loads the ACP agent with a mistake in it, and reports what the probe has found.
import { parentPort, workerData } from "node:worker_threads";
import type { Heard } from "../mistakes/hunt.ts";
import { loadEdited } from "../mistakes/load-edited.ts";
import type { EditedModule } from "../mistakes/mistake.ts";

const say = (heard: Heard): void => parentPort?.postMessage(heard);

loadEdited((workerData as { readonly modules: readonly EditedModule[] }).modules);
const { probe } = await import("./probe.ts");
say({ kind: "found", by: await probe((what) => say({ kind: "trying", what })) });
