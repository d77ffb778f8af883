// Known mistakes of stores that lose what they have promised, as changes of the source or as disks. Each must be found.
import type { Edit } from "../../sim/bugs/bug.ts";
import type { Lie } from "./sim-disk.ts";

export interface Mistake {
  readonly name: string;
  readonly about: string;
  readonly edits: readonly Edit[];
  readonly lies: readonly Lie[];
}

const DATABASE = "src/store/sqlite/database.ts";
const WRITER = "src/store/sqlite/log-writer.ts";
const MIGRATE = "src/store/sqlite/migrate.ts";
const STATEMENTS = "src/store/sqlite/statements.ts";

const source = (name: string, about: string, ...edits: readonly Edit[]): Mistake => ({ name, about, edits, lies: [] });
const device = (name: string, about: string, ...lies: readonly Lie[]): Mistake => ({ name, about, edits: [], lies });

const LOG_SYNC = "    PRAGMA synchronous = FULL;\n    PRAGMA wal_autocheckpoint";

/** What `--sync normal` does: a commit is told before it is synced. */
export const SYNC_NORMAL: Edit = {
  file: DATABASE,
  find: LOG_SYNC,
  replace: LOG_SYNC.replace("FULL", "NORMAL"),
};

export const MISTAKES: readonly Mistake[] = [
  source("sync-normal", "A commit is answered before it is synced.", SYNC_NORMAL),
  source("sync-off", "Nothing is ever synced.", {
    ...SYNC_NORMAL,
    replace: LOG_SYNC.replace("FULL", "OFF"),
  }),
  source("commit-not-heard", "An append is answered whatever became of its commit.", {
    file: WRITER,
    find: "this.#stage(statements, batch));\n      statements.commit.run();",
    replace: "this.#stage(statements, batch));\n      try { statements.commit.run(); } catch {}",
  }),
  source(
    "no-transaction",
    "The rows of an append are written one by one.",
    { file: STATEMENTS, find: 'sql("BEGIN IMMEDIATE")', replace: 'sql("SELECT 1")' },
    { file: STATEMENTS, find: 'sql("COMMIT")', replace: 'sql("SELECT 1")' },
  ),
  source(
    "migration-in-pieces",
    "The steps of a migration are not one transaction.",
    { file: MIGRATE, find: 'database.exec("BEGIN IMMEDIATE");', replace: "" },
    { file: MIGRATE, find: "; COMMIT`", replace: "`" },
  ),
  source("no-journal", "A new file is made without a journal, so half of one may be left.", {
    file: DATABASE,
    find: "PRAGMA synchronous = FULL;`",
    replace: "PRAGMA synchronous = FULL; PRAGMA journal_mode = OFF;`",
  }),
  source("marked-too-early", "The mark beside the file speaks of what is not durable, so a whole file is refused.", {
    file: WRITER,
    find: "    this.#staged.set(session, { number, head: expected + count });",
    replace:
      "    this.#staged.set(session, { number, head: expected + count });\n" +
      "    this.#options.mark?.note(session, expected + count);",
  }),
  source("epoch-not-heard", "A block of epochs is handed out whatever became of its commit.", {
    file: "src/store/sqlite/owner.ts",
    find: ".all(owner.pid, owner.since);",
    replace: ".iterate(owner.pid, owner.since);",
  }),
  source("header-believed", "A file that was being made when the power went is refused for ever.", {
    file: "src/store/sqlite/inspect.ts",
    find: "header === undefined || wasBeingMade(file)",
    replace: "header === undefined",
  }),
  source("journal-in-the-way", "A file with a journal is looked into by somebody who may not take it back.", {
    file: "src/store/sqlite/inspect.ts",
    find: "`) && !existsSync(",
    replace: "`) || existsSync(",
  }),
  source("left-open", "A connection that could not be set up is never closed.", {
    file: DATABASE,
    find: "      database.close();\n    } catch {",
    replace: "      // Left as it is.\n    } catch {",
  }),
  source("reserve-throws", "A reserve that cannot be given back takes the answers of a whole group with it.", {
    file: "src/store/sqlite/reserve.ts",
    find: "      return true;\n    } catch {\n      return false;",
    replace: "      return true;\n    } finally {",
  }),
  device("log-not-synced", "The disk does not sync the log.", "log"),
  device("database-not-synced", "The disk does not sync the database, so moving the log into it loses it.", "database"),
  device("directory-not-synced", "The disk does not sync names, so a log that was synced may be gone.", "directory"),
];
