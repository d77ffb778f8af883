// Lets the faults loose on a house with one known mistake in it.
import type { Edit } from "../../sim/bugs/bug.ts";
import { huntIn } from "../mistake-hunt.ts";

/** A mistake may make the house go round in circles. */
const SILENT_MS = 20_000;

/** What gave it away; undefined if nothing did. */
export const hunt = (edits: readonly Edit[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), edits, SILENT_MS);
