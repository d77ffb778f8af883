// Opens a file that may be damaged, reads everything in it, and says whether the damage was told.
import { ControlError, messageOf } from "../../src/core/errors.ts";
import { openReadOnly } from "../../src/store/sqlite/database.ts";
import { callRow, eventsOf, processRow, runRow } from "../../src/store/sqlite/decode.ts";
import { openFile } from "../../src/store/sqlite/file/open-file.ts";
import { queries } from "../../src/store/sqlite/log-reader.ts";
import { storeError } from "../../src/store/sqlite/sqlite-errors.ts";
import { decodeLane } from "../../src/wire/lane.ts";
import { check } from "../power/check.ts";
import type { Told } from "../power/told.ts";

/**
 * `whole`: everything is there and right. `refused`: somebody was told, with a code. `silent`: what was read is shorter
 * or different, and nobody was told. `broken`: something failed without a code.
 */
export interface Verdict {
  readonly kind: "whole" | "refused" | "silent" | "broken";
  readonly code?: string;
  readonly message: string;
}

export function examine(file: string, told: Told): Verdict {
  try {
    const opened = openFile(file);
    try {
      return read(file, told);
    } finally {
      opened.close();
    }
  } catch (error) {
    return failed(error, file);
  }
}

function read(file: string, told: Told): Verdict {
  const database = openReadOnly(file);
  try {
    readAll(queries(database), told);
    const [finding] = check(database, told);
    return finding === undefined ? { kind: "whole", message: "" } : { kind: "silent", message: finding.message };
  } catch (error) {
    return failed(error, file);
  } finally {
    database.close();
  }
}

/** As the store answers everything that is asked of it. */
function readAll(answers: ReturnType<typeof queries>, told: Told): void {
  for (const [session, { lane }] of told.sessions) {
    const loaded = answers.load(session);
    if (loaded !== null) {
      eventsOf(loaded.rows, loaded.after, loaded.head - loaded.after);
      if (loaded.snapshot !== null) decodeLane(loaded.snapshot);
    }
    answers.session(session);
    answers.runs({ session, before: lane.head + 1, limit: 1_000 }).map(runRow);
    answers.processes({ session, before: lane.head + 1, limit: 1_000 }).map(processRow);
  }
  for (const id of told.book.calls.keys()) {
    const found = answers.call(id);
    if (found !== null) callRow(found);
  }
}

function failed(error: unknown, file: string): Verdict {
  const coded = error instanceof ControlError || (error instanceof Error && "errcode" in error);
  if (!coded) return { kind: "broken", message: messageOf(error) };
  const { code, message } = storeError(error, file);
  return { kind: "refused", code, message };
}
