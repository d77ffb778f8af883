// The lines that report what a stop did in a file that no server has open. Parked work has ended with the stop; work of
// a worker that died is ended by the next server that opens the file.

import { isRunId } from "../../core/model/ids.ts";
import type { BelayControl } from "../../ports/control.ts";
import type { Connection } from "./connect.ts";
import type { StopPart } from "./format/format-receipt.ts";

/** If there are more than this, they are counted and not named. */
const NAMED_MAX = 5;

export async function offlineStopLines(
  { control, kind }: Connection,
  parts: readonly StopPart[],
): Promise<readonly string[]> {
  const stopping = parts.filter(({ receipt }) => receipt.kind === "stopping");
  if (kind !== "store" || stopping.length === 0) return [];
  const left: string[] = [];
  for (const part of stopping) if (!(await hasEnded(control, part))) left.push(part.id);
  if (left.length === 0) return ["No server has the file open, and no worker was driving it: it has ended."];
  const named = left.length > NAMED_MAX ? `${left.length} of these` : left.join(", ");
  const rest = left.length < stopping.length ? "; the rest has ended" : "";
  return [`No server has the file open: the next one that opens it ends ${named}${rest}.`];
}

async function hasEnded(control: BelayControl, { id, receipt }: StopPart): Promise<boolean> {
  if (receipt.ended?.kind === "settled") return true;
  return isRunId(id) && (await (await control.run(id)).row()).phase === "settled";
}
