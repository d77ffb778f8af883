// Lets the probe loose on the door with one mistake in it.
import type { Edit } from "../../sim/bugs/bug.ts";
import { huntIn } from "../mistake-hunt.ts";

/** A scene takes some milliseconds. One that is silent for so long waits for something that does not come. */
const SILENT_MS = 4_000;

/** What gave it away; undefined if nothing did. */
export const hunt = (edits: readonly Edit[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), edits, SILENT_MS);
