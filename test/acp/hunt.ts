// Lets the probe loose on the door with one mistake in it.
import { huntIn } from "../mistakes/hunt.ts";
import { editModules, type Mistake } from "../mistakes/mistake.ts";

/** A scene takes some milliseconds. One that is silent for so long waits for something that does not come. */
const SILENT_MS = 4_000;

/** What gave them away; undefined if nothing did. */
export const hunt = async (mistakes: readonly Mistake[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), editModules(mistakes), SILENT_MS);
