// What goes wrong while the server is soaked. Each fault is over after a moment; what was refused meanwhile was refused
// with a code, and what was not is carried out.
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { type ActionContext, VICTIM } from "./actions.ts";

export type Fault = (stage: ActionContext) => Promise<void>;

/** Long enough to be met by whatever is being written, and shorter than a lease. */
const FAULT_MS = 400;

const clientsCut: Fault = async ({ doors }) => doors.cut();

/** Somebody else writes into the file. */
const storeLocked: Fault = async ({ server }) => {
  const file = new DatabaseSync(server.note.store, { timeout: FAULT_MS });
  try {
    file.exec("BEGIN IMMEDIATE");
    await pause(FAULT_MS);
    file.exec("ROLLBACK");
  } finally {
    file.close();
  }
};

/** Whatever is found of the processes that a deed has started is killed, from outside. */
const treeKilled: Fault = async ({ server, chance }) => {
  const found = server.outside().descendants.filter(({ command }) => command.includes(VICTIM));
  const [first, ...rest] = found;
  if (first === undefined) return;
  try {
    process.kill(chance.pick([first, ...rest]).pid, "SIGKILL");
  } catch {
    // It was faster.
  }
};

const diskFull: Fault = async ({ server }) => {
  const makeRoom = server.disk?.fill();
  await pause(FAULT_MS);
  makeRoom?.();
};

/** The whole server stands still, as on a machine that sleeps. */
const frozen: Fault = async ({ server }) => {
  const thaw = server.freeze();
  await pause(FAULT_MS);
  thaw();
};

export const FAULTS: Readonly<Record<string, Fault>> = { clientsCut, storeLocked, treeKilled, diskFull, frozen };
