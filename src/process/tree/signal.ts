// Sends signals to our processes only (G21).
//
// Invariants
// 1. Identity is proven in the same tick, right before the signal. For our own child that is race-free: its pid stays
//    its own until we reap it, and that happens in a later tick. For any other process a gap of microseconds between
//    two system calls remains, because Node has no handle on a process that is not its child.
// 2. This program, its group and pid 1 are never signalled from here.
// 3. Nothing here throws, because it is called where a tree must die whatever else fails.
import { constants } from "node:os";
import { type Identity, type Presence, pinsGroup, presenceOf, statOf } from "./proc.ts";

/** `gone`: no process has that identity. `refused`: not ours to signal, or its identity cannot be read. */
export type Sent = "sent" | "gone" | "refused";

/** How signals are sent and identities proven. Another platform, or a test, supplies its own. */
export interface SignalPort {
  readonly presenceOf: (identity: Identity) => Presence;
  /** Whether this process leads the group numbered by its pid, which no other process can get meanwhile. */
  readonly pinsGroup: (identity: Identity) => Presence;
  readonly kill: (pid: number, signal: NodeJS.Signals) => void;
  /** This program, and its group, which can change while it runs. */
  readonly pid: number;
  readonly group: () => number | undefined;
}

/** The implementation over /proc. */
export const REAL: SignalPort = {
  presenceOf: (identity) => presenceOf(identity),
  pinsGroup: (identity) => pinsGroup(identity),
  kill: (pid, signal) => {
    process.kill(pid, signal);
  },
  pid: process.pid,
  group: () => {
    const own = statOf(process.pid);
    return typeof own === "string" ? undefined : own.group;
  },
};

/** Signals one process. */
export function send(identity: Identity, signal: NodeJS.Signals, means: SignalPort = REAL): Sent {
  if (!isOrdinary(identity.pid) || identity.pid === means.pid) return "refused";
  return deliver(identity.pid, signal, means.presenceOf(identity), means);
}

/**
 * Signals a whole group, by its leader. The leader may have ended, as long as it is not reaped: until then its number
 * belongs to this group. After that the number can be reused, and the result is `gone`.
 */
export function sendGroup(leader: Identity, signal: NodeJS.Signals, means: SignalPort = REAL): Sent {
  const group = means.group();
  // Without knowing our own group we could signal it by mistake, so no group is signalled.
  if (!isOrdinary(leader.pid) || group === undefined) return "refused";
  if (leader.pid === means.pid || leader.pid === group) return "refused";
  return deliver(-leader.pid, signal, means.pinsGroup(leader), means);
}

/** The name of a signal: 15 is SIGTERM. */
export function signalName(number: number): string {
  return NAMES.get(number) ?? `SIG${number}`;
}

/** Where two names mean one number (SIGABRT, SIGIOT), the one that Node reports. */
const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals)
    .map(([name, number]): [number, string] => [number, name])
    .reverse(),
);

/** To the kernel, 0 and negative numbers mean groups, -1 means every process, and the end of pid 1 ends the machine. */
const isOrdinary = (pid: number): boolean => Number.isSafeInteger(pid) && pid > 1;

function deliver(target: number, signal: NodeJS.Signals, presence: Presence, means: SignalPort): Sent {
  if (presence !== "there") return presence === "gone" ? "gone" : "refused";
  try {
    means.kill(target, signal);
    return "sent";
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH" ? "gone" : "refused";
  }
}
