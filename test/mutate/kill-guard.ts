// Holds mutated code back from signalling the hunt itself: its tester, its other runner, and this process.
//
// Where the hunt has a PID namespace to itself (`apart.ts`) everybody else in sight was started by a test, and may have
// lost its parent since. Elsewhere whoever has no parent of ours is a stranger.
import { readFileSync } from "node:fs";
import { isMarkedApart } from "./apart.ts";

export interface Kin {
  readonly parent: number;
  readonly group: number;
}

/** Undefined: nobody has this pid. */
export type Table = (pid: number) => Kin | undefined;

const FIRST = 1;

/** Whether `own` may signal `target`, which is a pid, or a group as a negative number. */
export function maySignal(target: number, own: number, table: Table, apart: boolean): boolean {
  const pid = Math.abs(target);
  if (!Number.isSafeInteger(target) || pid <= FIRST || pid === own) return false;
  if (target < 0 && pid === table(own)?.group) return false;
  const line = lineOf(pid, table);
  if (!apart || line.includes(own)) return line.includes(own);
  // Of those that stand below the first process, one is the hunt.
  return line.at(-1) !== lineOf(own, table).at(-1);
}

/** From a process up to the one below the first. */
function lineOf(pid: number, table: Table): readonly number[] {
  const line = [pid];
  for (let at = table(pid)?.parent; at !== undefined && at > FIRST; at = table(at)?.parent) line.push(at);
  return line;
}

const byProc: Table = (pid) => {
  try {
    // After the name, which may hold anything: state, parent, group.
    const [, parent, group] = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ") ?? [];
    return { parent: Number(parent), group: Number(group) };
  } catch {
    return undefined;
  }
};

/** From here on this program signals nobody whom it may not. `onRefused` hears of every try. */
export function guardKill(onRefused: (error: Error) => void, table: Table = byProc): void {
  const kill = process.kill.bind(process);
  const apart = isMarkedApart();
  process.kill = (target, signal) => {
    // To ask whether somebody is there does no harm.
    if (signal === 0 || maySignal(target, process.pid, table, apart)) return kill(target, signal);
    const error = Object.assign(new Error(`The hunt does not let ${target} be signalled.`), { code: "EPERM" });
    onRefused(error);
    throw error;
  };
}
