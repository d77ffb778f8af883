// The reader's thread. Its connection cannot write.
//
// Invariants
// 1. Each answer is of one state of the file, also if it takes several queries.
// 2. After trouble the next request opens the file again.
import { parentPort, workerData } from "node:worker_threads";
import { Bug } from "../../core/bug.ts";
import { toControlError } from "../../core/control-error.ts";
import { type Database, openReadOnly } from "./database.ts";
import { queries } from "./log-reader.ts";
import type { Ask, Reply } from "./message.ts";
import { troubleError } from "./trouble.ts";

const { file } = workerData as { readonly file: string };

interface Opened {
  readonly database: Database;
  readonly answers: ReturnType<typeof queries>;
}
let opened: Opened | undefined;

parentPort?.on("message", (ask: Ask) => parentPort?.postMessage([attempt(ask)]));

function attempt({ id, verb, ask }: Ask): Reply {
  try {
    opened ??= open();
    return { id, answer: answer(opened, verb, ask) };
  } catch (error) {
    drop();
    const { code, message } = error instanceof Bug ? toControlError(error) : troubleError(error, file);
    return { id, code, message };
  }
}

function answer({ database, answers }: Opened, verb: string, ask: unknown): unknown {
  if (!(verb in answers)) throw new Bug(`the reader knows no ${verb}`);
  const query = answers[verb as keyof typeof answers] as (ask: unknown) => unknown;
  database.exec("BEGIN");
  try {
    return query(ask);
  } finally {
    database.exec("COMMIT");
  }
}

function open(): Opened {
  const database = openReadOnly(file);
  return { database, answers: queries(database) };
}

function drop(): void {
  try {
    opened?.database.close();
  } catch {
    // A connection that failed may fail at this too. It is gone either way.
  }
  opened = undefined;
}
