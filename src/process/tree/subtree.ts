// Lists the processes that one command has started, and ends some of them while the command itself keeps running.
//
// Invariants
// 1. A process is a member only while the tree is proven to be ours: a pid that has changed hands is never signalled.
// 2. `endOthers` returns at its limit at the latest. It reports what it has ended and what is left.
// 3. The command itself, and the programs that hold its tree, are never members.
import type { Clock } from "../../ports/clock.ts";
import type { ProcessTree, TreeEnd, TreeEndLimits, TreeMember } from "../../ports/spawner.ts";
import type { HeldTree } from "../containment/containment.ts";
import { DESCRIPTION_CHARS_MAX } from "../limits.ts";
import { endAll } from "./kill-scan.ts";
import { until } from "./poll-until.ts";
import type { Identity } from "./proc.ts";
import { readProc } from "./proc-file.ts";
import type { ProcessTable } from "./process-table.ts";
import { send } from "./signal.ts";

export interface SubtreeParts {
  readonly held: Pick<HeldTree, "identity" | "left" | "members">;
  readonly processTable: Pick<ProcessTable, "kind" | "refresh" | "isStill" | "identityOf" | "means">;
  readonly clock: Clock;
}

export class Subtree implements ProcessTree {
  readonly #parts: SubtreeParts;

  constructor(parts: SubtreeParts) {
    this.#parts = parts;
  }

  async members(): Promise<readonly TreeMember[]> {
    return (await this.#find()).map((one) => this.#toMember(one));
  }

  /** Sends SIGTERM, in this tick, to every member that can be listed synchronously and is not in `kept`. */
  askOthers(kept: readonly TreeMember[]): readonly TreeMember[] {
    const found = others(this.#listed(), kept);
    // Before the signal: a process that has ended has no command line.
    const members = found.map((one) => this.#toMember(one));
    this.#sigterm(found);
    return members;
  }

  async endOthers(kept: readonly TreeMember[], { graceMs, limitMs }: TreeEndLimits): Promise<TreeEnd> {
    const { clock, processTable } = this.#parts;
    const deadline = clock.elapsed() + limitMs;
    const met = new Map<string, TreeMember>();
    const find = async (): Promise<readonly Identity[]> => {
      const found = others(await this.#find(), kept);
      for (const one of found) if (!met.has(keyOf(one))) met.set(keyOf(one), this.#toMember(one));
      return found;
    };
    const signalled = this.#sigterm(await find().catch(() => []));
    if (signalled.length > 0)
      await until(() => !signalled.some((one) => processTable.isStill(one)), { clock, waitMs: graceMs });
    const { left, sure } = await endAll({
      find,
      clock,
      send: (identity, signal) => send(identity, signal, processTable.means()),
      isStill: (identity) => processTable.isStill(identity),
      deadlineMs: Math.max(SCANS_MS, deadline - clock.elapsed()),
    });
    const survivors = new Set(left.map(keyOf));
    const isLeft = (one: TreeMember): boolean => survivors.has(keyOf(one));
    const all = [...met.values()];
    return { ended: all.filter((one) => !isLeft(one)), left: all.filter(isLeft), sure };
  }

  async #find(): Promise<readonly Identity[]> {
    const { held, processTable } = this.#parts;
    await processTable.refresh?.();
    if (held.members === undefined) return this.#listed();
    const found = processTable.isStill(held.identity) ? await held.members() : [];
    return processTable.isStill(held.identity) ? found : [];
  }

  /** Synchronous. Once the process that holds the tree is gone, its number may be reused. */
  #listed(): readonly Identity[] {
    const { held, processTable } = this.#parts;
    if (!processTable.isStill(held.identity)) return [];
    const found = held.left().flatMap(({ pid }) => processTable.identityOf(pid) ?? []);
    return processTable.isStill(held.identity) ? found : [];
  }

  /** A stopped process receives SIGTERM only once it continues. */
  #sigterm(found: readonly Identity[]): readonly Identity[] {
    const means = this.#parts.processTable.means();
    for (const one of found) {
      send(one, "SIGTERM", means);
      send(one, "SIGCONT", means);
    }
    return found;
  }

  #toMember({ pid, startTime }: Identity): TreeMember {
    return { pid, startTime, command: this.#parts.processTable.kind === "proc" ? commandOf(pid) : "" };
  }
}

/** The time two scans may take on a busy machine. */
const SCANS_MS = 100;

type Key = Pick<TreeMember, "pid" | "startTime">;

const keyOf = ({ pid, startTime }: Key): string => `${pid} ${startTime}`;

function others(found: readonly Identity[], kept: readonly Key[]): readonly Identity[] {
  const keys = new Set(kept.map(keyOf));
  return found.filter((one) => !keys.has(keyOf(one)));
}

function commandOf(pid: number): string {
  const text = readProc(`/proc/${pid}/cmdline`);
  if (typeof text === "string") return "";
  const words = text.toString("utf8").replaceAll("\0", " ").replaceAll(/\s+/g, " ").trim();
  return words.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed();
}
