// A tree that no kernel object holds: it is found by everything that marks its members, and ended one by one.
//
// A member is whoever carries the cookie in its environment, is in the session or the group of the leader, holds the
// liveness pipe, or is below somebody of these. Who sheds all of it at once has escaped, and cannot be told from a
// stranger.
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
 * How much longer than the kernel may take to end a tree we may take to be sure of it: that takes several looks at
 * everybody, on a machine that may be busy with what it has just ended.
 */
const CERTAINTY_MS = 1_500;

/** Who hops is among these. */
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
  /** Whom only the marks have told from strangers: neither in the group nor in the session. */
  readonly #reparented = new Set<number>();
  /** The tree's end of the liveness pipe, as /proc names it. Undefined where no files can be seen. */
  readonly livenessLink: string | undefined;

  /** To be made while the leader is there. */
  constructor(
    leader: Leader,
    cookie: string,
    { sharedScan: census, clock, processTable: sight = PROC_PROCESS_TABLE }: MarkedTreeOptions,
  ) {
    this.#sharedScan = census;
    this.#leader = leader;
    this.#cookie = cookie;
    this.#clock = clock;
    this.#processTable = sight;
    this.livenessLink = sight.openFile(leader.identity.pid, LIVENESS_FD);
  }

  /** Ends everybody who can be found, again and again, until nobody is. */
  async end(waitMs: number, looks?: number): Promise<Verified> {
    const ended = await endAll({
      find: () => this.find(),
      clock: this.#clock,
      send: (identity, signal) => send(identity, signal, this.#processTable.means()),
      isStill: (identity) => this.#processTable.isStill(identity),
      deadlineMs: Math.max(0, waitMs) + CERTAINTY_MS,
      ...(looks === undefined ? {} : { emptyScans: looks }),
    });
    const left = ended.left.map((one) => one.pid);
    // Nobody found and nobody sure: the table of processes could not be read. That is no proof of an end.
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

  /** Who else is in the group or the session now, besides the leader and the command. Nobody waits for it: one pass. */
  companions(command: number): readonly Leftover[] {
    const { pid } = this.#leader.identity;
    if (this.#leader.released || !this.#numberIsOurs()) return [];
    // Where a look takes time this is told by the last one, and the next is begun for whoever asks again.
    this.#processTable.look?.().catch(() => undefined);
    return this.#processTable.pids().flatMap((one) => {
      const stat = one === pid || one === command ? "gone" : this.#processTable.statOf(one);
      if (typeof stat === "string" || stat.state === "Z" || stat.state === "X") return [];
      return stat.group === pid || stat.session === pid ? [{ pid: one, asked: stat.group === pid }] : [];
    });
  }

  /**
   * Whoever has shed everything else may still have the pipe. Asked last, because it costs most, and at once, because
   * who does that may hop from pid to pid: the newest first.
   */
  #holders(): readonly Identity[] {
    const link = this.livenessLink;
    if (this.#leader.released || (link === undefined && this.#processTable.kind === "proc")) return [];
    // Where files cannot be seen, somebody is there, and nobody knows who: it is told, and not ended.
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
    // Its end may be on its way to us, or whoever holds it hops too fast. Nobody is declared dead before it is here.
    throw new Error(HELD);
  }

  /**
   * The number of a group or session is given to nobody else while it has members. So it is ours, unless somebody else
   * is that pid by now: then all members were gone, and those that follow are theirs.
   */
  #numberIsOurs(): boolean {
    const stat = this.#processTable.statOf(this.#leader.identity.pid);
    return typeof stat === "string" ? stat === "gone" : stat.startTime === this.#leader.identity.startTime;
  }
}

const HELD = "Somebody holds the liveness pipe, and cannot be found.";
