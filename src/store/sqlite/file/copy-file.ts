// Copies a store that may be in use: one consistent state of it, without unused pages.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import { autoVacuum, INCREMENTAL, openReadOnly } from "../database.ts";
import { MIGRATIONS } from "../schema.ts";
import { storeError } from "../sqlite-errors.ts";
import { requireOurs } from "./inspect.ts";

/** Copies `file` to `copy`, which must not exist. Refuses a file of a newer version or of another program. */
export function copyFile(file: string, copy: string): void {
  try {
    requireOurs(file, MIGRATIONS);
    const database = openReadOnly(file);
    try {
      // Lets the copy shrink, even if the original's version could not.
      if (autoVacuum(database) !== INCREMENTAL) database.exec(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
      database.prepare("VACUUM INTO ?").run(copy);
    } finally {
      database.close();
    }
  } catch (error) {
    const refused = storeError(error, file);
    if (refused.code !== "unavailable") throw refused;
    throw new ControlError(refused.code, refused.message, {
      hint: "Check that you may read the store and the directory it is in, and that there is space for the copy.",
      cause: error,
    });
  }
  sync(copy);
}

/** Flushes the copy: it is a backup only once it is on disk. */
function sync(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
