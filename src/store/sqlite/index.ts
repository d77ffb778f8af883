// The public surface of `agent-belay/sqlite`: the store on one SQLite file.
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";
