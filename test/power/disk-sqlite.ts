// What the store imports as `node:sqlite`, on the simulated disk. Only what the store uses of it.
//
// The engine is told two things that the store does not say: the size of a page, which is the native one's, and to move
// the write-ahead log into the database sooner than the store asks for, so that a short life sees it happen.
import { lastError, memory, sqlite } from "./disk-vfs.ts";

export type Value = string | number | bigint | null;
type Row = Record<string, Value>;
/** By position, or one object with the values by name. */
type Values = readonly Value[] | readonly [Readonly<Record<string, Value>>];

const native = {
  bindDouble: sqlite("bind_double"),
  bindInt64: sqlite("bind_int64"),
  bindNull: sqlite("bind_null"),
  bindParameterIndex: sqlite("bind_parameter_index"),
  bindText: sqlite("bind_text"),
  changes: sqlite("changes"),
  clearBindings: sqlite("clear_bindings"),
  closeV2: sqlite("close_v2"),
  columnBytes: sqlite("column_bytes"),
  columnCount: sqlite("column_count"),
  columnDouble: sqlite("column_double"),
  columnInt64: sqlite("column_int64"),
  columnName: sqlite("column_name"),
  columnText: sqlite("column_text"),
  columnType: sqlite("column_type"),
  exec: sqlite("exec"),
  extendedResultCodes: sqlite("extended_result_codes"),
  finalize: sqlite("finalize"),
  lastInsertRowid: sqlite("last_insert_rowid"),
  openV2: sqlite("open_v2"),
  prepareV3: sqlite("prepare_v3"),
  reset: sqlite("reset"),
  step: sqlite("step"),
};

const ROW = 100;
const DONE = 101;
const OK = 0;
const READ_ONLY = 1;
const READ_WRITE_CREATE = 6;
const URI = 0x40;
const NATIVE_PAGE_BYTES = 4_096;

let checkpointPages: number | undefined;

/** After how many pages of the log it is moved into the database, for connections that ask for it from now on. */
export function useCheckpointPages(pages: number): void {
  checkpointPages = pages;
}

const cell = memory.alloc(8);

/** Text of any length for the engine: the stack of a call is too small for a large event. */
function withText<A>(text: string, act: (pointer: number, bytes: number) => A): A {
  const bytes = Buffer.from(text, "utf8");
  const pointer = memory.alloc(bytes.length + 1);
  try {
    const heap = memory.heap8u();
    heap.set(bytes, pointer);
    heap[pointer + bytes.length] = 0;
    return act(pointer, bytes.length);
  } finally {
    memory.dealloc(pointer);
  }
}

export class DatabaseSync {
  readonly #statements = new Set<StatementSync>();
  #pointer = 0;

  constructor(path: string, options: { readonly readOnly?: boolean } = {}) {
    const flags = options.readOnly === true ? READ_ONLY : READ_WRITE_CREATE;
    const code = withText(path, (name) => native.openV2(name, cell, flags | URI, 0));
    this.#pointer = memory.peek(cell, "i32");
    if (code !== OK) {
      const error = this.#error(code);
      this.close();
      throw error;
    }
    native.extendedResultCodes(this.#pointer, 1);
    this.exec(`PRAGMA page_size = ${NATIVE_PAGE_BYTES}`);
  }

  exec(sql: string): void {
    this.#require(withText(sql, (text) => native.exec(this.#open, text, 0, 0, 0)));
    if (checkpointPages === undefined || !sql.includes("wal_autocheckpoint")) return;
    const sooner = `PRAGMA wal_autocheckpoint = ${checkpointPages}`;
    this.#require(withText(sooner, (text) => native.exec(this.#open, text, 0, 0, 0)));
  }

  prepare(sql: string): StatementSync {
    this.#require(withText(sql, (text, bytes) => native.prepareV3(this.#open, text, bytes, 1, cell, 0)));
    const statement = new StatementSync(memory.peek(cell, "i32"), this.#open, (code) => this.#error(code));
    this.#statements.add(statement);
    return statement;
  }

  close(): void {
    for (const statement of this.#statements) statement.end();
    this.#statements.clear();
    const pointer = this.#pointer;
    this.#pointer = 0;
    if (pointer !== 0) native.closeV2(pointer);
  }

  get #open(): number {
    if (this.#pointer === 0) throw new Error("database is not open");
    return this.#pointer;
  }

  #require(code: number): void {
    if (code !== OK) throw this.#error(code);
  }

  #error(code: number): Error {
    const said = this.#pointer === 0 ? "out of memory" : lastError(this.#pointer);
    return Object.assign(new Error(said), { code: "ERR_SQLITE_ERROR", errcode: code });
  }
}

export class StatementSync {
  readonly #database: number;
  readonly #error: (code: number) => Error;
  #pointer: number;
  readonly #names: string[] = [];

  constructor(pointer: number, database: number, error: (code: number) => Error) {
    this.#pointer = pointer;
    this.#database = database;
    this.#error = error;
    for (let at = 0; at < native.columnCount(pointer); at += 1) {
      this.#names.push(memory.cstrToJs(native.columnName(pointer, at)) ?? "");
    }
  }

  run(...values: Values): { readonly changes: number; readonly lastInsertRowid: number } {
    this.#bind(values);
    while (this.#step());
    return {
      changes: native.changes(this.#database),
      lastInsertRowid: Number(native.lastInsertRowid(this.#database)),
    };
  }

  get(...values: Values): Row | undefined {
    this.#bind(values);
    const row = this.#step() ? this.#row() : undefined;
    native.reset(this.#pointer);
    return row;
  }

  all(...values: Values): Row[] {
    return [...this.iterate(...values)];
  }

  *iterate(...values: Values): Generator<Row, void> {
    this.#bind(values);
    try {
      while (this.#step()) yield this.#row();
    } finally {
      native.reset(this.#pointer);
    }
  }

  end(): void {
    native.finalize(this.#pointer);
    this.#pointer = 0;
  }

  /** True: there is a row. */
  #step(): boolean {
    const code = native.step(this.#pointer);
    if (code === ROW) return true;
    const error = code === DONE ? undefined : this.#error(code);
    native.reset(this.#pointer);
    if (error !== undefined) throw error;
    return false;
  }

  #bind(values: Values): void {
    native.reset(this.#pointer);
    native.clearBindings(this.#pointer);
    for (const [at, value] of this.#placed(values)) {
      const code = this.#bindOne(at, value);
      if (code !== OK) throw this.#error(code);
    }
  }

  #placed(values: Values): readonly (readonly [at: number, value: Value])[] {
    const [first] = values;
    if (typeof first !== "object" || first === null) {
      return (values as readonly Value[]).map((value, index) => [index + 1, value]);
    }
    return Object.entries(first).map(([name, value]) => [
      withText(`$${name}`, (text) => native.bindParameterIndex(this.#pointer, text)),
      value,
    ]);
  }

  #bindOne(at: number, value: Value): number {
    if (value === null) return native.bindNull(this.#pointer, at);
    if (typeof value === "string") {
      // -1: SQLite makes a copy of its own.
      return withText(value, (text, bytes) => native.bindText(this.#pointer, at, text, bytes, -1));
    }
    if (typeof value === "number" && !Number.isInteger(value)) return native.bindDouble(this.#pointer, at, value);
    return native.bindInt64(this.#pointer, at, BigInt(value));
  }

  #row(): Row {
    const row: Row = {};
    for (const [at, name] of this.#names.entries()) row[name] = this.#column(at);
    return row;
  }

  #column(at: number): Value {
    const pointer = this.#pointer;
    switch (native.columnType(pointer, at)) {
      case 1:
        return Number(native.columnInt64(pointer, at));
      case 2:
        return native.columnDouble(pointer, at);
      case 3: {
        const text = native.columnText(pointer, at);
        const length = native.columnBytes(pointer, at);
        return Buffer.from(memory.heap8u().buffer, text, length).toString("utf8");
      }
      default:
        return null;
    }
  }
}
