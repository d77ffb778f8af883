// The public surface of `agent-belay/sqlite`, name by name: the store on one SQLite file.
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
