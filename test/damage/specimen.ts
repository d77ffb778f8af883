// A file with a history, made by the real store, and what was told of it. What damage is done to it is done to a copy.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SeededChooser } from "../../sim/chooser.ts";
import { type OpenFile, openFile } from "../../src/store/sqlite/file/open-file.ts";
import { type Cell, packBatch, unpackBatches } from "../../src/store/sqlite/thread/message.ts";
import { type Sent, Told } from "../power/told.ts";
import { type Step, Workload } from "../power/workload.ts";

export interface Specimen {
  /** The file at rest. */
  readonly bytes: Buffer;
  readonly told: Told;
}

/** With so many appends. The same seed makes the same history. */
export function makeSpecimen(seed: number, appends: number): Specimen {
  const folder = mkdtempSync(join(tmpdir(), "belay-damage-"));
  try {
    const file = join(folder, "belay.db");
    const told = new Told();
    const workload = new Workload(new SeededChooser(seed));
    const opened = openFile(file);
    try {
      for (let done = 0; done < appends; ) if (appendNext(opened, workload, told)) done += 1;
    } finally {
      opened.close();
    }
    return { bytes: readFileSync(file), told };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One more append. False: this time nothing follows. */
export function appendNext({ writer }: OpenFile, workload: Workload, told: Told): boolean {
  const step = workload.next(told.known(workload.session()).lane);
  if (step === undefined) return false;
  const sent = sentOf(step);
  const [answer] = writer.append([sent.packed]);
  if (answer?.kind !== "appended") throw new Error(`it was not appended: ${JSON.stringify(answer)}`);
  told.confirm(sent);
  return true;
}

function sentOf(step: Step): Sent {
  const cells: Cell[] = [];
  packBatch(cells, step.batch);
  const [packed] = unpackBatches(cells);
  if (packed === undefined) throw new Error("a batch was not packed");
  return { ...step, packed, group: 0 };
}
