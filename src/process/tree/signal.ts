// Signals to children, and never to a stranger (G21).
//
// Invariants
// 1. Identity is proven in the same tick, right before the signal. For a child of ours that is airtight: until we reap
//    it, and that happens in a later tick, its pid stays its own. For any other there remain the microseconds between
//    two system calls, because Node has no handle on a process that is not its child.
// 2. Neither this program nor its group nor the first process is ever signalled from here, whoever asks.
// 3. Nothing here throws: it is called where a tree must die, whatever else goes wrong.
import { constants } from "node:os";
import { type Identity, type Presence, pinsGroup, presenceOf, statOf } from "./proc.ts";

/** `gone`: there is nobody of that identity. `refused`: not ours to signal, or nobody can tell whose it is. */
export type Sent = "sent" | "gone" | "refused";

/** How signals go out and identities are proven. Another platform, or a test, brings its own. */
export interface SignalPort {
  readonly presenceOf: (identity: Identity) => Presence;
  /** Whether this identity is the leader of a group of its own number, which nobody else can get meanwhile. */
  readonly pinsGroup: (identity: Identity) => Presence;
  readonly kill: (pid: number, signal: NodeJS.Signals) => void;
  /** This program, and the group it is in, which may be changed under way. */
  readonly pid: number;
  readonly group: () => number | undefined;
}

/** By /proc. */
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

/** To one process. */
export function send(identity: Identity, signal: NodeJS.Signals, means: SignalPort = REAL): Sent {
  if (!isOrdinary(identity.pid) || identity.pid === means.pid) return "refused";
  return deliver(identity.pid, signal, means.presenceOf(identity), means);
}

/**
 * To all of a group, by its leader. The leader may have ended, as long as nobody has reaped it: until then its number
 * belongs to this group. Once it is reaped the number may be anybody's, and the answer is `gone`.
 */
export function sendGroup(leader: Identity, signal: NodeJS.Signals, means: SignalPort = REAL): Sent {
  const group = means.group();
  // Our own group not being known is a reason to signal none.
  if (!isOrdinary(leader.pid) || group === undefined) return "refused";
  if (leader.pid === means.pid || leader.pid === group) return "refused";
  return deliver(-leader.pid, signal, means.pinsGroup(leader), means);
}

/** The name of a signal: 15 is SIGTERM. */
export function signalName(number: number): string {
  return NAMES.get(number) ?? `SIG${number}`;
}

/** Where two names mean one number (SIGABRT, SIGIOT), the one that Node itself reports. */
const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals)
    .map(([name, number]): [number, string] => [number, name])
    .reverse(),
);

/** 0 and negative numbers mean groups to the kernel, -1 everybody, and 1 takes the machine with it. */
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
