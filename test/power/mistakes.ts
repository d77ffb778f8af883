// Known mistakes of stores that lose what they have acknowledged, as edits of the source or as disks. Each must be
// found.
import type { StatementSync } from "node:sqlite";
import ts from "typescript";
import { type Mistake as Edited, mistake } from "../mistakes/mistake.ts";
import { inline } from "../mistakes/place.ts";
import type { Lie } from "./sim-disk.ts";

export interface Mistake extends Edited {
  readonly lies: readonly Lie[];
}

const source = (...[name, about, edit]: Parameters<typeof mistake>): Mistake => ({
  ...mistake(name, about, edit),
  lies: [],
});
const device = (name: string, about: string, ...lies: readonly Lie[]): Mistake => ({ name, about, edits: {}, lies });

/** A reserve that is soon written and soon spent. Its size is no part of what is tested here. */
export const SMALL_RESERVE: Edited = mistake("small-reserve", "The reserve of the store is small.", (at) =>
  at.value().become("16 * 1024"),
);

/** What `--sync normal` does. */
export const SYNC_NORMAL: Mistake = source("sync-normal", "A commit is answered before it is synced.", (at) =>
  at.value().arg(0, 1).swap("synchronous = FULL", "synchronous = NORMAL"),
);

const SOURCES: readonly Mistake[] = [
  SYNC_NORMAL,
  source("sync-off", "Nothing is ever synced.", (at) =>
    at.value().arg(0, 1).swap("synchronous = FULL", "synchronous = OFF"),
  ),
  source("commit-not-heard", "An append is answered whether or not its commit succeeded.", (at) =>
    at.become(`try { ${at.text} } catch {}`),
  ),
  source("no-transaction", "The rows of an append are written one by one.", {
    begin: (at) => at.literal("BEGIN IMMEDIATE").become('"SELECT 1"'),
    commit: (at) => at.literal("COMMIT").become('"SELECT 1"'),
  }),
  source("migration-in-pieces", "The steps of a migration are not one transaction.", {
    begin: (at) => at.remove(),
    commit: (at) => at.value().arg(0, 1).swap("; COMMIT", ""),
  }),
  source("no-journal", "A new file is made without a journal, so half of one may be left.", (at) =>
    at.value().swap("synchronous = FULL;", "synchronous = FULL; PRAGMA journal_mode = OFF;"),
  ),
  source(
    "marked-too-early",
    "The mark beside the file contains a position that is not durable, so an intact file is refused.",
    (at, other) => {
      const note = other("note").whenTrue().value().callee().text;
      const [session, standing] = [at.value().arg(0, 2), at.value().arg(1, 2)];
      return at.after(` ${note}(${session.text}, ${standing.part(1, 2).value().text});`);
    },
  ),
  source("epoch-not-heard", "A block of epochs is handed out whether or not its commit succeeded.", (at) => {
    const rows = at.value();
    return rows.become(
      inline((statement: StatementSync, since: number) => statement.iterate(since), rows.target(), rows.arg(0, 1)),
    );
  }),
  source("header-believed", "A file that was being made when the power failed is refused at every start.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  source("journal-in-the-way", "A file with a journal is opened by a reader, which cannot roll it back.", (at) => {
    const journal = at.condition().operand(1, 2).find(ts.isCallExpression, "a call");
    return at.condition().become(`${at.condition().operand(0, 2).text} || ${journal.text}`);
  }),
  source("left-open", "A connection that could not be set up is never closed.", (at) => at.remove()),
  source("reserve-throws", "A reserve that cannot be given back makes all appends of its group fail.", (at) => {
    const guarded = at.find((node) => ts.isBlock(node) && ts.isTryStatement(node.parent), "a guarded block");
    return at.become(guarded.text);
  }),
];

export const MISTAKES: readonly Mistake[] = [
  ...SOURCES,
  device("log-not-synced", "The disk does not sync the log.", "log"),
  device("database-not-synced", "The disk does not sync the database, so moving the log into it loses it.", "database"),
  device("directory-not-synced", "The disk does not sync names, so a log that was synced may be gone.", "directory"),
];
