// A tree that no kernel object holds: its members are found by their marks and ended one by one.
//
// A member carries the cookie in its environment, is in the leader's session or group, holds the liveness pipe, or
// descends from such a process. A process that sheds all of these at once has escaped: it cannot be distinguished from
// an unrelated one.
import type { Clock } from "../../ports/clock.ts";
import type { Leader, Leftover, Verified } from "../containment/containment.ts";
import { LIVENESS_FD } from "../launch/gate.ts";
import { endAll } from "./kill-scan.ts";
import { below, type Identity, type Seen } from "./proc.ts";
import { PROC_PROCESS_TABLE } from "./proc-process-table.ts";
import type { ProcessTable } from "./process-table.ts";
import type { SharedScan } from "./shared-scan.ts";
import { send } from "./signal.ts";

/**
 * The extra time for proving that a tree has ended, on top of the kernel's time to end it: several scans of all
 * processes, on a machine that may be busy with what it has just ended.
 */
const CERTAINTY_MS = 1_500;

/** A process that hops from pid to pid is among these. */
const NEWEST = 32;

export interface MarkedTreeOptions {
  readonly sharedScan: SharedScan;
  readonly clock: Clock;
  /** Default /proc. */
  readonly processTable?: ProcessTable;
}

export class MarkedTree {
  readonly #sharedScan: SharedScan;
  readonly #leader: Leader;
  readonly #cookie: string;
  readonly #clock: Clock;
  readonly #processTable: ProcessTable;
  /** Processes outside the leader's group and session, known by their other marks only. */
  readonly #reparented = new Set<number>();
  /** The tree's end of the liveness pipe, as /proc names it. Undefined where open files cannot be read. */
  readonly livenessLink: string | undefined;

  /** Must be called while the leader exists. */
  constructor(
    leader: Leader,
    cookie: string,
    { sharedScan, clock, processTable = PROC_PROCESS_TABLE }: MarkedTreeOptions,
  ) {
    this.#sharedScan = sharedScan;
    this.#leader = leader;
    this.#cookie = cookie;
    this.#clock = clock;
    this.#processTable = processTable;
    this.livenessLink = processTable.openFile(leader.identity.pid, LIVENESS_FD);
  }

  /** Ends every process that can be found, until none is. */
  async end(waitMs: number, scans?: number): Promise<Verified> {
    const ended = await endAll({
      find: () => this.find(),
      clock: this.#clock,
      send: (identity, signal) => send(identity, signal, this.#processTable.means()),
      isStill: (identity) => this.#processTable.isStill(identity),
      deadlineMs: Math.max(0, waitMs) + CERTAINTY_MS,
      ...(scans === undefined ? {} : { emptyScans: scans }),
    });
    const left = ended.left.map((one) => one.pid);
    // No process found, but not enough scans succeeded to prove the end.
    const killed = ended.killed.filter((one) => this.#reparented.has(one.pid)).length;
    return { killed, left: left.length === 0 && !ended.sure ? [this.#leader.identity.pid] : left };
  }

  async find(): Promise<readonly Identity[]> {
    const all = (await this.#sharedScan.take()).filter((one) => one.pid !== process.pid);
    const isOurs = this.#numberIsOurs();
    const { pid } = this.#leader.identity;
    const isMember = (one: Seen): boolean =>
      one.cookies.includes(this.#cookie) || (isOurs && (one.group === pid || one.session === pid));
    const members = all.filter(isMember);
    if (members.length === 0) return this.#holders();
    const pids = members.map((one) => one.pid);
    const found = [...members, ...below(all, pids)];
    for (const one of found) if (one.group !== pid && one.session !== pid) this.#reparented.add(one.pid);
    return found.map((one) => one.identity);
  }

  /** The processes in the group or session now, without leader and command. One synchronous pass. */
  companions(command: number): readonly Leftover[] {
    const { pid } = this.#leader.identity;
    if (this.#leader.released || !this.#numberIsOurs()) return [];
    // Where a scan takes time this answers from the last one, and starts the next for a later call.
    this.#processTable.refresh?.().catch(() => undefined);
    return this.#processTable.pids().flatMap((one) => {
      const stat = one === pid || one === command ? "gone" : this.#processTable.statOf(one);
      if (typeof stat === "string" || stat.state === "Z" || stat.state === "X") return [];
      return stat.group === pid || stat.session === pid ? [{ pid: one, signalled: stat.group === pid }] : [];
    });
  }

  /**
   * A process that has shed all other marks may still hold the pipe. Checked last, because it costs most, and
   * synchronously, newest pid first, because such a process may hop from pid to pid.
   */
  #holders(): readonly Identity[] {
    const link = this.livenessLink;
    if (this.#leader.released || (link === undefined && this.#processTable.kind === "proc")) return [];
    // Where open files cannot be read, some process holds the pipe and cannot be identified: it is reported, not ended.
    if (link === undefined) throw new Error(HELD);
    const pids = this.#processTable.pids().filter((pid) => pid !== process.pid);
    const newest = pids.toSorted((one, other) => other - one);
    for (const some of [newest.slice(0, NEWEST), newest.slice(NEWEST)]) {
      const found = some
        .filter((pid) => this.#processTable.hasOpen(pid, [link]))
        .flatMap((pid) => this.#processTable.identityOf(pid) ?? []);
      if (found.length === 0) continue;
      for (const { pid } of found) this.#reparented.add(pid);
      return found;
    }
    // The end of the pipe may still be on its way to us, or its holder hops too fast. Without it no process counts as
    // dead.
    throw new Error(HELD);
  }

  /**
   * The number of a group or session is not reused while it has members. So it is ours, unless another process has that
   * pid by now: then all our members were gone, and the present ones are that process's.
   */
  #numberIsOurs(): boolean {
    const stat = this.#processTable.statOf(this.#leader.identity.pid);
    return typeof stat === "string" ? stat === "gone" : stat.startTime === this.#leader.identity.startTime;
  }
}

const HELD = "A process that cannot be found holds the liveness pipe.";
