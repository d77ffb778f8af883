// Loads the engine with a mistake in it, and answers what the table of situations has found.
import { parentPort, workerData } from "node:worker_threads";
import type { Heard } from "../mistakes/hunt.ts";
import { loadEdited } from "../mistakes/load-edited.ts";
import type { EditedModule } from "../mistakes/mistake.ts";

const say = (heard: Heard): void => parentPort?.postMessage(heard);

loadEdited((workerData as { readonly modules: readonly EditedModule[] }).modules);
const { search } = await import("./search.ts");
say({ kind: "found", by: await search((what) => say({ kind: "trying", what })) });
