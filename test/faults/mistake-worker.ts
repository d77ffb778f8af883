// Loads the house with a mistake in it, and answers what the faults have brought to light.
import { parentPort, workerData } from "node:worker_threads";
import type { Heard } from "../mistakes/hunt.ts";
import { loadEdited } from "../mistakes/load-edited.ts";
import type { EditedModule } from "../mistakes/mistake.ts";

const say = (heard: Heard): void => parentPort?.postMessage(heard);

loadEdited((workerData as { readonly modules: readonly EditedModule[] }).modules);
const { searchPairs, searchStories } = await import("./search.ts");
const { STORIES } = await import("./stories.ts");

const single = await searchStories(STORIES, {
  violationsMax: 1,
  progress: () => say({ kind: "trying", what: "it goes round in circles" }),
});
const [first] = single.violations;
const [second] = first === undefined ? (await searchPairs(STORIES, { from: 1, count: 4_000 })).violations : [];
say({ kind: "found", by: (first ?? second)?.found });
