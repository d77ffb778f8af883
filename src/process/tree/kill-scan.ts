// Ends every process that a scan finds, and scans again until none is found.
//
// Invariants
// 1. No process is signalled without proof of identity: its pid may have changed hands between the scan and the signal.
// 2. Gone means missing from several scans in a row. A scan that failed does not count.
// 3. It returns at its deadline at the latest, even if a scan never settles.
import type { Clock } from "../../ports/clock.ts";
import {
  EMPTY_SCANS,
  FORCE_WAIT_MS,
  SCAN_AGAIN_MS,
  SCAN_PAUSE_MS,
  SCAN_PAUSE_MS_MAX,
  STORM_ROUNDS,
} from "../limits.ts";
import { type Identity, isStill, nameOf, type Visit } from "./proc.ts";
import { type Sent, send } from "./signal.ts";

export interface EndAllOptions {
  /**
   * Scans for the processes to end and returns all of them. It may return one twice, or one that is gone already. Those
   * it passes to `meet` are signalled immediately: a process that hops from pid to pid is gone when the scan ends.
   */
  readonly find: (meet: Visit) => Promise<readonly Identity[]>;
  readonly clock: Clock;
  /** When to give up. Default FORCE_WAIT_MS. */
  readonly deadlineMs?: number;
  /** How many scans in a row must find no process. Default EMPTY_SCANS. */
  readonly emptyScans?: number;
  /**
   * Freezes all processes until a scan finds no new one, and only then kills. For a `find` by descent: when a parent
   * dies its children are reparented, and a search by descent misses them. Default false.
   */
  readonly freezeFirst?: boolean;
  /** Between two empty scans. Default SCAN_PAUSE_MS. */
  readonly pauseMs?: number;
  /** For tests. Defaults: the real functions. */
  readonly send?: (identity: Identity, signal: NodeJS.Signals) => Sent;
  readonly isStill?: (identity: Identity) => boolean;
}

export interface Ended {
  /** Processes that were sent SIGKILL and are gone. */
  readonly killed: readonly Identity[];
  /** Processes that were found and still exist. */
  readonly left: readonly Identity[];
  /** Whether enough scans in a row found no process. If false, an empty `left` proves nothing. */
  readonly sure: boolean;
}

/** Ends every process that `find` returns. Never rejects. */
export async function endAll(ending: EndAllOptions): Promise<Ended> {
  const { clock, deadlineMs = FORCE_WAIT_MS, emptyScans = EMPTY_SCANS, pauseMs = SCAN_PAUSE_MS } = ending;
  const rounds = new Rounds(ending.send ?? send, ending.isStill ?? isStill, ending.freezeFirst ?? false);
  const late = wait(clock, deadlineMs, "late" as const);
  let empty = 0;
  while (empty < emptyScans) {
    const found = await Promise.race([tryFind(ending.find, rounds.meet), late.passed]);
    if (found === "late") break;
    const met = rounds.over(found === "failed" ? [] : found);
    empty = found !== "failed" && !met ? empty + 1 : 0;
    if (empty >= emptyScans) break;
    // Backoff, for processes that outlive their SIGKILL.
    const againMs = Math.min(SCAN_AGAIN_MS * 2 ** rounds.withoutNewcomers, SCAN_PAUSE_MS_MAX);
    const again = wait(clock, met ? againMs : pauseMs, "awake" as const);
    const woken = await Promise.race([again.passed, late.passed]);
    again.cancel();
    if (woken === "late") break;
  }
  late.cancel();
  return { ...rounds.end(), sure: empty >= emptyScans };
}

/** The processes found so far, and the signals they were sent. */
class Rounds {
  readonly #send: NonNullable<EndAllOptions["send"]>;
  readonly #isStill: NonNullable<EndAllOptions["isStill"]>;
  /**
   * An entry stays until its process is gone, even if no scan finds it: a program can shed every mark but its identity.
   */
  readonly #there = new Map<string, Identity>();
  readonly #killed = new Map<string, Identity>();
  /** In this round: whether any process was found, even one already gone, and whether any for the first time. */
  #seen = false;
  #newcomers = false;
  #roundsWithNewcomers: number;
  /** Rounds in a row without a new process. */
  withoutNewcomers = 0;
  /** An abandoned scan may still call `meet`, which then does nothing. */
  #ended = false;

  constructor(
    send: NonNullable<EndAllOptions["send"]>,
    still: NonNullable<EndAllOptions["isStill"]>,
    freezeFirst: boolean,
  ) {
    this.#send = send;
    this.#isStill = still;
    this.#roundsWithNewcomers = freezeFirst ? STORM_ROUNDS : 0;
  }

  readonly meet: Visit = (one) => {
    this.#seen = true;
    if (this.#ended || this.#there.has(nameOf(one))) return;
    // In a fork storm each death makes room for another fork. A frozen process neither forks nor frees its room, so the
    // storm starves; once a scan finds no new process, all are killed.
    if (this.#signal(one, this.#roundsWithNewcomers < STORM_ROUNDS ? "SIGKILL" : "SIGSTOP") === "gone") return;
    this.#there.set(nameOf(one), one);
    this.#newcomers = true;
  };

  /** Ends a round. Returns whether it found a process, or one is left from before. */
  over(found: readonly Identity[]): boolean {
    for (const one of found) this.meet(one);
    this.#dropDead();
    if (this.#newcomers) this.#roundsWithNewcomers += 1;
    else this.#killAll();
    this.withoutNewcomers = this.#newcomers ? 0 : this.withoutNewcomers + 1;
    const met = this.#seen || this.#there.size > 0;
    this.#seen = false;
    this.#newcomers = false;
    return met;
  }

  /**
   * Sends a last SIGKILL to the processes that still exist, above all the frozen ones. They are reported as left all
   * the same.
   */
  end(): Pick<Ended, "killed" | "left"> {
    this.#ended = true;
    this.#dropDead();
    this.#killAll();
    const left = [...this.#there.values()];
    return { killed: [...this.#killed].flatMap(([name, one]) => (this.#there.has(name) ? [] : [one])), left };
  }

  #dropDead(): void {
    for (const [name, one] of this.#there) if (!this.#isStill(one)) this.#there.delete(name);
  }

  #killAll(): void {
    for (const one of this.#there.values()) this.#signal(one, "SIGKILL");
  }

  #signal(one: Identity, signal: "SIGKILL" | "SIGSTOP"): Sent {
    const sent = this.#send(one, signal);
    if (sent === "sent" && signal === "SIGKILL") this.#killed.set(nameOf(one), one);
    return sent;
  }
}

async function tryFind(find: EndAllOptions["find"], meet: Visit): Promise<readonly Identity[] | "failed"> {
  try {
    return await find(meet);
  } catch {
    // Most likely out of file descriptors. Retried until the deadline; meanwhile no process counts as gone.
    return "failed";
  }
}

interface Timeout<Value> {
  readonly passed: Promise<Value>;
  readonly cancel: () => void;
}

function wait<Value>(clock: Clock, ms: number, value: Value): Timeout<Value> {
  const { promise, resolve } = Promise.withResolvers<Value>();
  return { passed: promise, cancel: clock.after(ms, () => resolve(value)) };
}
