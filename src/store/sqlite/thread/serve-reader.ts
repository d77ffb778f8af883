// The reader's thread. Its connection cannot write.
//
// Invariants
// 1. Each response is from one state of the file, even if it takes several queries.
// 2. After an error the next request opens the file again.
import type { MessagePort } from "node:worker_threads";
import { Bug } from "../../../core/bug.ts";
import { toControlError } from "../../../core/errors.ts";
import { type Database, openReadOnly } from "../database.ts";
import { queries } from "../log-reader.ts";
import { storeError } from "../sqlite-errors.ts";
import { type Ask, type Reply, refusal } from "./message.ts";

/** Responds to the requests on `port` until it is closed. */
export function serveReader(port: MessagePort, file: string, open: (file: string) => Database = openReadOnly): void {
  const context = new ReaderWorker(file, open);
  port.on("message", (ask: Ask) => port.postMessage([context.attempt(ask)]));
}

interface Opened {
  readonly database: Database;
  readonly answers: ReturnType<typeof queries>;
}

class ReaderWorker {
  readonly #file: string;
  readonly #open: (file: string) => Database;
  #opened: Opened | undefined;

  constructor(file: string, open: (file: string) => Database) {
    this.#file = file;
    this.#open = open;
  }

  attempt({ id, verb, ask }: Ask): Reply {
    try {
      this.#opened ??= this.#connect();
      return { id, answer: answer(this.#opened, verb, ask) };
    } catch (error) {
      this.#drop();
      return refusal(id, error instanceof Bug ? toControlError(error) : storeError(error, this.#file));
    }
  }

  #connect(): Opened {
    const database = this.#open(this.#file);
    return { database, answers: queries(database, this.#file) };
  }

  #drop(): void {
    try {
      this.#opened?.database.close();
    } catch {
      // A failed connection may fail to close, too. It is dropped either way.
    }
    this.#opened = undefined;
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
