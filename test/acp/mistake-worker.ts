// Loads the door with a mistake in it, and answers what the probe has found.
import { parentPort, workerData } from "node:worker_threads";
import type { Edit } from "../../sim/bugs/bug.ts";
import { patchModules } from "../../sim/patch.ts";
import type { Heard } from "../mistake-hunt.ts";

const say = (heard: Heard): void => parentPort?.postMessage(heard);

patchModules((workerData as { readonly edits: readonly Edit[] }).edits);
const { probe } = await import("./probe.ts");
say({ kind: "found", by: await probe((what) => say({ kind: "trying", what })) });
