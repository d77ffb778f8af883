// The processes that one command has started, listed and ended selectively while the command itself runs on.
//
// Invariants
// 1. A process is a member only while the tree is proven to be ours: a pid that has changed hands is never signalled.
// 2. `endOthers` ends: at its limit at the latest. It reports what it has ended and what is left.
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
  readonly processTable: Pick<ProcessTable, "kind" | "look" | "isStill" | "identityOf" | "means">;
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

  /** Sends SIGTERM, in this tick, to every member that can be listed in it and is not in `kept`. */
  askOthers(kept: readonly TreeMember[]): readonly TreeMember[] {
    const found = others(this.#listed(), kept);
    // Before the signal: a process that has ended has no command line.
    const members = found.map((one) => this.#toMember(one));
    this.#ask(found);
    return members;
  }

  async endOthers(kept: readonly TreeMember[], { graceMs, limitMs }: TreeEndLimits): Promise<TreeEnd> {
    const { clock, processTable: sight } = this.#parts;
    const deadline = clock.elapsed() + limitMs;
    const met = new Map<string, TreeMember>();
    const find = async (): Promise<readonly Identity[]> => {
      const found = others(await this.#find(), kept);
      for (const one of found) if (!met.has(keyOf(one))) met.set(keyOf(one), this.#toMember(one));
      return found;
    };
    const asked = this.#ask(await find().catch(() => []));
    if (asked.length > 0) await until(() => !asked.some((one) => sight.isStill(one)), { clock, waitMs: graceMs });
    const { left, sure } = await endAll({
      find,
      clock,
      send: (identity, signal) => send(identity, signal, sight.means()),
      isStill: (identity) => sight.isStill(identity),
      deadlineMs: Math.max(LOOKS_MS, deadline - clock.elapsed()),
    });
    const survivors = new Set(left.map(keyOf));
    const isLeft = (one: TreeMember): boolean => survivors.has(keyOf(one));
    const all = [...met.values()];
    return { ended: all.filter((one) => !isLeft(one)), left: all.filter(isLeft), sure };
  }

  async #find(): Promise<readonly Identity[]> {
    const { held, processTable: sight } = this.#parts;
    await sight.look?.();
    if (held.members === undefined) return this.#listed();
    const found = sight.isStill(held.identity) ? await held.members() : [];
    return sight.isStill(held.identity) ? found : [];
  }

  /** In this tick. Once the process that holds the tree is gone, its number may belong to a stranger. */
  #listed(): readonly Identity[] {
    const { held, processTable: sight } = this.#parts;
    if (!sight.isStill(held.identity)) return [];
    const found = held.left().flatMap(({ pid }) => sight.identityOf(pid) ?? []);
    return sight.isStill(held.identity) ? found : [];
  }

  /** A stopped process receives SIGTERM only once it continues. */
  #ask(found: readonly Identity[]): readonly Identity[] {
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

/** What two looks at the process table may take on a busy machine. */
const LOOKS_MS = 100;

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
