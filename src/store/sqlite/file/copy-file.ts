// A copy of a store that may be in use: one consistent state of it, in a file that takes up no more than it needs.
import { closeSync, fsyncSync, openSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import { autoVacuum, INCREMENTAL, openReadOnly } from "../database.ts";
import { MIGRATIONS } from "../schema.ts";
import { storeError } from "../sqlite-errors.ts";
import { requireOurs } from "./inspect.ts";

/** Reads `file` and writes `copy`, which must not exist. Refuses a newer version, and another program's file. */
export function copyFile(file: string, copy: string): void {
  try {
    requireOurs(file, MIGRATIONS);
    const database = openReadOnly(file);
    try {
      // The copy can shrink, even if the file is of a version that could not.
      if (autoVacuum(database) !== INCREMENTAL) database.exec(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
      database.prepare("VACUUM INTO ?").run(copy);
    } finally {
      database.close();
    }
  } catch (error) {
    const told = storeError(error, file);
    if (told.code !== "unavailable") throw told;
    throw new ControlError(told.code, told.message, {
      hint: "Check that you may read the store and the directory it is in, and that there is space for the copy.",
      cause: error,
    });
  }
  sync(copy);
}

/** It is a backup once it is on the disk. */
function sync(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
