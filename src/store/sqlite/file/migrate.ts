// Migrates a file to the current version.
//
// Invariants
// 1. All steps are one transaction: a failed step or a crash leaves the file unchanged.
// 2. A file of a newer version is not touched.
import { ControlError } from "../../../core/errors.ts";
import { type Database, userVersion } from "../database.ts";
import { APPLICATION_ID, type Migrations } from "../schema.ts";

export function migrate(database: Database, migrations: Migrations): void {
  const version = userVersion(database);
  requireKnown(version, migrations);
  if (version === migrations.length) return;
  database.exec("BEGIN IMMEDIATE"); // @fault migration-in-pieces:begin
  try {
    for (const step of migrations.slice(version)) database.exec(step); // @fault migration-in-steps
    // @fault migration-in-pieces:commit
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${migrations.length}; COMMIT`);
  } catch (error) {
    try {
      database.exec("ROLLBACK");
    } catch {
      // A full disk has ended the transaction already. This error would hide the original one.
    }
    throw error;
  }
}

export function requireKnown(version: number, migrations: Migrations): void {
  if (version <= migrations.length) return;
  const message = `The file is of version ${version}; this Belay knows versions up to ${migrations.length}.`;
  throw new ControlError("store_newer", message);
}
