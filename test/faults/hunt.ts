// Lets the faults loose on a house with one known mistake in it.
import { huntIn } from "../mistakes/hunt.ts";
import { editModules, type Mistake } from "../mistakes/mistake.ts";

/** A mistake may make the house go round in circles. */
const SILENT_MS = 20_000;

/** What gave them away; undefined if nothing did. */
export const hunt = async (mistakes: readonly Mistake[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), editModules(mistakes), SILENT_MS);
