// LangGraph with its SQLite saver, as `fromConnString` makes it: better-sqlite3, WAL, synchronous NORMAL.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Side } from "../turns/side.ts";
import { langgraph } from "./langgraph.ts";

export function open(): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
  const saver = SqliteSaver.fromConnString(join(folder, "checkpoints.db"));
  const close = (): void => {
    saver.db.close();
    rmSync(folder, { recursive: true });
  };
  return Promise.resolve(langgraph("LangGraph, SqliteSaver", saver, close));
}
