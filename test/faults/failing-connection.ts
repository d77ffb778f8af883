// A connection to a real SQLite file that fails at the n-th thing it is asked, with one of SQLite's own codes.
import type { StatementSync } from "node:sqlite";
import { type Database, openDatabase } from "../../src/store/sqlite/database.ts";

/** What SQLite says when the disk is in trouble. */
export const SQLITE_CODES = {
  FULL: 13,
  IOERR: 10,
  IOERR_WRITE: 10 | (3 << 8),
  IOERR_FSYNC: 10 | (4 << 8),
  BUSY: 5,
  CORRUPT: 11,
} as const;

export type SqliteCode = keyof typeof SQLITE_CODES;

/**
 * `before`: nothing is done. `after`: it is done, and told to have failed; so only the errors of the disk itself, since
 * SQLite says the others only of what it has not done.
 */
export interface ConnectionFault {
  readonly code: SqliteCode;
  readonly when: "before" | "after";
  /** Counted over all connections, 1 being the next thing that is asked. */
  readonly at: number;
  /** How many things fail from there on. */
  readonly times: number;
}

export class FailingDisk {
  readonly #fault: ConnectionFault | undefined;
  #asked = 0;
  #armed = false;

  constructor(fault: ConnectionFault | undefined) {
    this.#fault = fault;
  }

  /** How much was asked since it was armed. */
  get asked(): number {
    return this.#asked;
  }

  /** Until now nothing counts, and nothing fails. */
  arm(): void {
    this.#armed = true;
  }

  heal(): void {
    this.#armed = false;
  }

  open = (file: string): Database => {
    const database = this.#meet(() => openDatabase(file));
    const prepare: Database["prepare"] = (sql) => {
      const statement = this.#meet(() => database.prepare(sql));
      return new Proxy<StatementSync>(statement, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (typeof value !== "function") return value;
          return (...given: readonly unknown[]): unknown => this.#meet(() => value.apply(target, given));
        },
      });
    };
    return {
      // Not durable: what is tested here is what is said, not what a power cut leaves.
      exec: (sql) => this.#meet(() => database.exec(sql.replaceAll("synchronous = FULL", "synchronous = OFF"))),
      prepare,
      close: () => database.close(),
    };
  };

  #meet<A>(act: () => A): A {
    if (!this.#armed || this.#fault === undefined) return act();
    this.#asked += 1;
    const { at, times, code, when } = this.#fault;
    if (this.#asked < at || this.#asked >= at + times) return act();
    if (when === "after") act();
    throw Object.assign(new Error(`${code}, says the test`), {
      code: "ERR_SQLITE_ERROR",
      errcode: SQLITE_CODES[code],
    });
  }
}
