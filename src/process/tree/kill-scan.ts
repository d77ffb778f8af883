// Ends everybody who can be found, again and again, until nobody is found any more.
//
// Invariants
// 1. Nobody is signalled without proof of identity: finding and signalling are two moments, and a pid may have changed
//    hands between them.
// 2. Gone means found by nobody, several times in a row. A look that failed is no look.
// 3. It ends: at its deadline at the latest, also if a look never comes back.
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

export interface Ending {
  /**
   * Looks for whoever is to be ended, and answers them all; may name somebody twice, or somebody who is gone by then.
   * Those whom it tells of by `meet` are struck at on sight: whoever hops from pid to pid is gone when a look is over.
   */
  readonly find: (meet: Visit) => Promise<readonly Identity[]>;
  readonly clock: Clock;
  /** When it is given up. Default FORCE_WAIT_MS. */
  readonly deadlineMs?: number;
  /** How many looks in a row must find nobody. Default EMPTY_SCANS. */
  readonly emptyScans?: number;
  /**
   * Freezes everybody until a look meets nobody new, and only then kills. For a `find` that goes by descent: a parent
   * that dies hands its children to somebody else, and by descent they are not found any more. Default false.
   */
  readonly freezeFirst?: boolean;
  /** Between two such looks. Default SCAN_PAUSE_MS. */
  readonly pauseMs?: number;
  /** How it is done. Default the real thing. */
  readonly send?: (identity: Identity, signal: NodeJS.Signals) => Sent;
  readonly isStill?: (identity: Identity) => boolean;
}

export interface Ended {
  /** Whom we have sent SIGKILL, and who is gone. */
  readonly killed: readonly Identity[];
  /** Who was found and is still there. */
  readonly left: readonly Identity[];
  /** Whether enough looks in a row have found nobody. False with nobody left: nobody knows. */
  readonly sure: boolean;
}

/** Ends everybody whom `find` finds. Never rejects. */
export async function endAll(ending: Ending): Promise<Ended> {
  const { clock, deadlineMs = FORCE_WAIT_MS, emptyScans = EMPTY_SCANS, pauseMs = SCAN_PAUSE_MS } = ending;
  const rounds = new Rounds(ending.send ?? send, ending.isStill ?? isStill, ending.freezeFirst ?? false);
  const late = wait(clock, deadlineMs, "late" as const);
  let empty = 0;
  while (empty < emptyScans) {
    const found = await Promise.race([look(ending.find, rounds.meet), late.passed]);
    if (found === "late") break;
    const met = rounds.over(found === "failed" ? [] : found);
    empty = found !== "failed" && !met ? empty + 1 : 0;
    if (empty >= emptyScans) break;
    // Processes that stay although they were killed are looked for less and less often.
    const againMs = Math.min(SCAN_AGAIN_MS * 2 ** rounds.withoutNewcomers, SCAN_PAUSE_MS_MAX);
    const again = wait(clock, met ? againMs : pauseMs, "awake" as const);
    const woken = await Promise.race([again.passed, late.passed]);
    again.forget();
    if (woken === "late") break;
  }
  late.forget();
  return { ...rounds.end(), sure: empty >= emptyScans };
}

/** Whom we have met so far, and what they were sent. */
class Rounds {
  readonly #send: NonNullable<Ending["send"]>;
  readonly #isStill: NonNullable<Ending["isStill"]>;
  /** Stays until it is gone, also if nobody finds it any more: a program can shed every mark but its identity. */
  readonly #there = new Map<string, Identity>();
  readonly #killed = new Map<string, Identity>();
  /** In this round: whether anybody was seen at all, gone by then or not, and whether for the first time. */
  #seen = false;
  #newcomers = false;
  #roundsWithNewcomers: number;
  /** Rounds in a row that have met nobody for the first time. */
  withoutNewcomers = 0;
  /** A look that was given up may still come back; it is not listened to any more. */
  #ended = false;

  constructor(how: NonNullable<Ending["send"]>, still: NonNullable<Ending["isStill"]>, freezeFirst: boolean) {
    this.#send = how;
    this.#isStill = still;
    this.#roundsWithNewcomers = freezeFirst ? STORM_ROUNDS : 0;
  }

  readonly meet: Visit = (one) => {
    this.#seen = true;
    if (this.#ended || this.#there.has(nameOf(one))) return;
    // Each death in a fork storm makes room for another fork. What is frozen forks no more and keeps its room, so the
    // storm starves; once a look meets no newcomers all of it is killed.
    if (this.#strike(one, this.#roundsWithNewcomers < STORM_ROUNDS ? "SIGKILL" : "SIGSTOP") === "gone") return;
    this.#there.set(nameOf(one), one);
    this.#newcomers = true;
  };

  /** The look is over. Answers whether it has met anybody, or somebody is left from before. */
  over(found: readonly Identity[]): boolean {
    for (const one of found) this.meet(one);
    this.#forgetTheDead();
    if (this.#newcomers) this.#roundsWithNewcomers += 1;
    else this.#killThemAll();
    this.withoutNewcomers = this.#newcomers ? 0 : this.withoutNewcomers + 1;
    const met = this.#seen || this.#there.size > 0;
    this.#seen = false;
    this.#newcomers = false;
    return met;
  }

  /** The last word to those who are still there, frozen ones above all. They are told of as left all the same. */
  end(): Pick<Ended, "killed" | "left"> {
    this.#ended = true;
    this.#forgetTheDead();
    this.#killThemAll();
    const left = [...this.#there.values()];
    return { killed: [...this.#killed].flatMap(([name, one]) => (this.#there.has(name) ? [] : [one])), left };
  }

  #forgetTheDead(): void {
    for (const [name, one] of this.#there) if (!this.#isStill(one)) this.#there.delete(name);
  }

  #killThemAll(): void {
    for (const one of this.#there.values()) this.#strike(one, "SIGKILL");
  }

  #strike(one: Identity, signal: "SIGKILL" | "SIGSTOP"): Sent {
    const sent = this.#send(one, signal);
    if (sent === "sent" && signal === "SIGKILL") this.#killed.set(nameOf(one), one);
    return sent;
  }
}

async function look(find: Ending["find"], meet: Visit): Promise<readonly Identity[] | "failed"> {
  try {
    return await find(meet);
  } catch {
    // Out of file descriptors, most likely. It is tried again until the deadline; meanwhile nobody counts as gone.
    return "failed";
  }
}

interface Wait<Word> {
  readonly passed: Promise<Word>;
  readonly forget: () => void;
}

function wait<Word>(clock: Clock, ms: number, word: Word): Wait<Word> {
  const { promise, resolve } = Promise.withResolvers<Word>();
  return { passed: promise, forget: clock.after(ms, () => resolve(word)) };
}
