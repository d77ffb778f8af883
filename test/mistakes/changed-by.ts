// For tests that a known mistake applies to the source as it is.
import { readFileSync } from "node:fs";
import { editModules, type Mistake } from "./mistake.ts";

/** The files whose text is different with it, by their absolute paths. Throws if it does not apply to the source. */
export const changedBy = (mistake: Mistake): readonly string[] =>
  editModules([mistake])
    .filter(({ file, text }) => readFileSync(file, "utf8") !== text)
    .map(({ file }) => file);
