// Runs the probe against the ACP agent with mistakes in it.
import { huntIn } from "../mistakes/hunt.ts";
import { editModules, type Mistake } from "../mistakes/mistake.ts";

/** A scenario takes some milliseconds. One that is silent for this long waits for something that never happens. */
const SILENT_MS = 4_000;

/** What detected the mistakes; undefined if nothing did. */
export const hunt = async (mistakes: readonly Mistake[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), editModules(mistakes), SILENT_MS);
