// Reads one run from the log, as `run.view()` and `run.result()` give it.
import { ControlError } from "../core/errors.ts";
import type { RunId } from "../core/model/ids.ts";
import type { RunRow } from "../core/model/rows.ts";
import { RunReader } from "../core/read/run-view.ts";
import type { Engine } from "../engine/engine.ts";
import { readAll } from "../engine/log/replay.ts";

export async function readRun(engine: Engine, runId: RunId): Promise<RunReader> {
  for (;;) {
    const row = await rowOf(engine, runId);
    const reader = new RunReader(row);
    for await (const event of readAll(engine.store, row.session, row.acceptedAt - 1)) {
      reader.note(event);
      if (event.seq === row.settledAt) break;
    }
    // It may have settled meanwhile: the row and the events must agree.
    if (row.settledAt !== undefined || (await rowOf(engine, runId)).phase === row.phase) return reader;
  }
}

async function rowOf(engine: Engine, runId: RunId): Promise<RunRow> {
  const row = await engine.store.run(runId);
  if (row === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
  return row;
}
