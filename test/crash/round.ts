// One store, through as many deaths of its server as it is given, to a last life that must bring everything to rest.
//
// Invariants
// 1. Every child that is started is gone when the round is over, however that comes about.
// 2. A life ends by being killed, or it is a fault. Only the last one is asked to end.
import { setTimeout as pause } from "node:timers/promises";
import { type Chooser, SeededChooser } from "../../sim/chooser.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Message } from "../../src/core/read/transcript.ts";
import type { FollowerSlice } from "../oracle/caller-history.ts";
import { marked, markOf } from "../trees/shapes.ts";
import { checkRound, type Verdict } from "./check.ts";
import { LoadClients } from "./clients.ts";
import { CrashFixture, linesOf } from "./crash-fixture.ts";
import { type Death, Deaths, servingMs } from "./deaths.ts";
import { readEffects } from "./effects.ts";
import type { Finding, FindingKind } from "./finding.ts";
import { end, type LeftOver, outliving, workingIn } from "./left-over.ts";
import { Life } from "./life.ts";
import { makeOldFile } from "./old-file.ts";

export interface RoundWish {
  readonly seed: number;
  readonly number: number;
  readonly kills: number;
  /** A directory for this round, made if it is not there. */
  readonly dir: string;
  readonly cache: string;
  /** The points to go through, instead of those the seed chooses. */
  readonly points?: readonly string[] | undefined;
  /** The file with the edited modules that its servers load, if there are any. */
  readonly modules?: string | undefined;
  /** Once aborted, no further life is begun, and it rejects with the reason. */
  readonly stop?: AbortSignal | undefined;
  readonly onKill?: () => void;
}

export interface RoundResult {
  readonly number: number;
  readonly kills: number;
  readonly nestedKills: number;
  readonly acked: number;
  readonly operations: number;
  /** The points at which it really died, in order. */
  readonly hits: readonly string[];
  readonly findings: readonly Finding[];
}

/** Within this long after its last start everything is at rest. G24 says two seconds; a busy machine may take more. */
const REST_MS_MAX = 30_000;
/** How long a start may take, and an end that was asked for. */
const START_MS_MAX = 60_000;
const END_MS_MAX = 20_000;
/** From when its connections are cut until we hear that it is dead. */
const DEATH_TOLD_MS = 2_000;
/** How long one that did not get ready has to write down why. */
const EXPLAIN_MS = 5_000;

const SESSIONS = 3;
/** Before this many kills are left, a run that kills its server is sent. */
const POISON_KILLS = 6;
/** So many times, and then it has failed. */
const POISON_DEATHS = 3;

let marks = (process.pid % 10_000) * 10_000;

export async function playRound(wish: RoundWish): Promise<RoundResult> {
  const round = new Round(wish);
  const cut = (): void => round.cut();
  wish.stop?.addEventListener("abort", cut);
  process.prependOnceListener("exit", cut);
  try {
    for (let kill = 0; kill < wish.kills; kill += 1) await round.liveAndDie(wish.kills - kill);
    const result = await round.conclude();
    wish.stop?.throwIfAborted();
    return result;
  } finally {
    wish.stop?.removeEventListener("abort", cut);
    process.removeListener("exit", cut);
    await round.clear();
  }
}

class Round {
  readonly #wish: RoundWish;
  readonly #chooser: Chooser;
  readonly #stage: CrashFixture;
  readonly #deaths: Deaths;
  readonly #crowd: LoadClients;
  readonly #before: FollowerSlice[] = [];
  readonly #findings: Finding[] = [];
  readonly #marks: string[] = [];
  /** Those that were told of, by pid. */
  readonly #left = new Set<number>();
  readonly #sessions: readonly SessionId[];
  #life: Life | undefined;
  #poisoned = false;
  #nested = 0;
  #kills = 0;

  constructor(wish: RoundWish) {
    const { seed, number, dir, points } = wish;
    this.#wish = wish;
    this.#chooser = new SeededChooser(seed * 100_003 + number);
    this.#stage = new CrashFixture(dir, number % 2 === 0 ? "socket" : "tcp");
    this.#deaths = new Deaths(this.#chooser, points);
    this.#crowd = new LoadClients(this.#chooser, `r${number}`);
    this.#sessions = Array.from({ length: SESSIONS }, (_, index): SessionId => `ses_r${number}s${index}`);
    // A new file, or one of an earlier version.
    const version = number % 3;
    if (version > 0) this.#before.push(makeOldFile(this.#stage.store, version, `ses_r${number}old`));
  }

  async liveAndDie(killsLeft: number): Promise<void> {
    const death = this.#deaths.next();
    const life = this.#begin(death);
    const timer = death.kind === "starting" ? setTimeout(() => life.kill(), death.ms) : undefined;
    const port = await this.#started(life);
    if (port === undefined) this.#nested += 1;
    else await this.#serve(life, death, killsLeft);
    clearTimeout(timer);
    await this.#buried(life);
  }

  /** The last life: what was cut off is taken up, everybody is told, and the log is held against all of it. */
  async conclude(): Promise<RoundResult> {
    const transcripts = new Map<SessionId, readonly Message[]>();
    let life: Life;
    let before: number;
    // The run that kills its server may have deaths left: the life behind them is the last one.
    do {
      before = this.#deathsByPoison();
      life = await this.#lastLife(transcripts);
    } while (life.over && this.#deathsByPoison() > before && before < POISON_DEATHS);
    if (life.over) this.#fault(life, "died, and nobody had killed it");
    await this.#crowd.leave();
    const { code } = await life.end(END_MS_MAX);
    if (code !== 0) this.#fault(life, `did not end when it was asked to (${code})`);
    await this.#checkProcesses("after the last server has ended");
    for (const line of linesOf(this.#stage.notices)) this.#report("faults", `An operator was told: ${line}`);
    const { acked, findings } = await this.#judge(transcripts);
    return {
      ...{ number: this.#wish.number, kills: this.#kills, nestedKills: this.#nested, acked },
      operations: this.#crowd.history.requests.length,
      hits: linesOf(this.#stage.hits),
      findings: [...this.#findings, ...findings],
    };
  }

  async #lastLife(transcripts: Map<SessionId, readonly Message[]>): Promise<Life> {
    await this.#crowd.part();
    const left = this.#leftBusy();
    const life = this.#begin(undefined);
    if ((await this.#started(life)) !== undefined) {
      await this.#takenUp(left, life);
      if (await this.#join()) await this.#rest(transcripts, life);
      else if (!(await hasDied(life))) this.#fault(life, "could not be asked any more");
    }
    return life;
  }

  #deathsByPoison(): number {
    return linesOf(this.#stage.hits).filter((hit) => hit === "poison").length;
  }

  async #judge(transcripts: ReadonlyMap<SessionId, readonly Message[]>): Promise<Verdict> {
    const { requests, slices } = this.#crowd.history;
    const history = { requests, slices: [...slices, ...this.#before] };
    try {
      const { logs, rows } = await this.#stage.read();
      return checkRound({ history, logs, rows, effects: readEffects(this.#stage.effects), transcripts });
    } catch (thrown) {
      this.#report("faults", `The file cannot be read any more: ${String(thrown)}`);
      return { findings: [], acked: 0 };
    }
  }

  #leftBusy(): ReadonlyMap<number, number> {
    try {
      return this.#stage.headsOfBusy();
    } catch {
      return new Map(); // A file without tables has nothing in it.
    }
  }

  /** Nobody asks anything of it yet: what was cut off is taken up all the same. */
  async #takenUp(left: ReadonlyMap<number, number>, life: Life): Promise<void> {
    const began = performance.now();
    const isLeft = (): boolean => [...this.#leftBusy()].some(([session, head]) => left.get(session) === head);
    while (isLeft() && !life.over) {
      if (performance.now() - began > REST_MS_MAX) {
        this.#report("stuck", `A run that was cut off was not taken up within ${REST_MS_MAX} ms.`);
        return;
      }
      await pause(10);
    }
  }

  async clear(): Promise<void> {
    await this.#crowd.leave();
    this.cut();
    await this.#life?.died;
    for (const pid of [...marked(this.#marks).values()].flat()) end(pid);
    for (const { pid } of workingIn(this.#stage.dir)) end(pid);
  }

  /** The life that goes on ends now. */
  cut(): void {
    this.#life?.kill();
  }

  #begin(death: Death | undefined): Life {
    this.#wish.stop?.throwIfAborted();
    marks += 1;
    const mark = markOf(marks);
    const { hits } = this.#stage;
    const point = death?.kind === "point" ? `${death.point}#${death.nth}` : undefined;
    const { modules, cache } = this.#wish;
    const life = new Life({ server: this.#stage.wish(mark), point, hits, modules, cache });
    this.#marks.push(mark);
    this.#life = life;
    return life;
  }

  /** Its port; undefined if it has died on the way. */
  async #started(life: Life): Promise<number | undefined> {
    const late = setTimeout(() => {
      this.#report("stuck", `A server was not ready after ${START_MS_MAX} ms. What it said: ${life.said}`);
      life.explain();
    }, START_MS_MAX);
    const later = setTimeout(() => life.kill(), START_MS_MAX + EXPLAIN_MS);
    const port = await life.ready;
    clearTimeout(late);
    clearTimeout(later);
    if (port === undefined) return undefined;
    this.#stage.servesAt(port);
    this.#deaths.served();
    // What earlier lives have left was to be ended before this one is ready.
    const [own] = this.#marks.slice(-1);
    await this.#checkProcesses("after the next server was ready", own);
    return port;
  }

  async #serve(life: Life, death: Death, killsLeft: number): Promise<void> {
    const timer = setTimeout(() => life.kill(), servingMs(death));
    try {
      if (await this.#join()) {
        if (!this.#poisoned && killsLeft <= this.#wish.kills / 2 && killsLeft >= POISON_KILLS) this.#poison();
        await this.#work(life);
      }
    } finally {
      await life.died;
      clearTimeout(timer);
    }
  }

  #poison(): void {
    this.#poisoned = true;
    this.#unheeded(this.#crowd.poison(this.#poisonSession));
  }

  async #work(life: Life): Promise<void> {
    while (!life.over) {
      const acting = this.#crowd.act();
      this.#unheeded(acting);
      await Promise.race([acting.catch(() => undefined), pause(this.#chooser.below(60)), life.died]);
      await pause(this.#chooser.below(15));
    }
  }

  /** Whatever a client throws that is no answer of a server is a fault of ours. */
  #unheeded(acting: Promise<unknown>): void {
    acting.catch((thrown: unknown) => this.#report("faults", `A client failed: ${String(thrown)}`));
  }

  get #poisonSession(): SessionId {
    return `ses_r${this.#wish.number}poison`;
  }

  /** Answers whether clients could be brought to this life. */
  async #join(): Promise<boolean> {
    if (this.#crowd.joined) return true;
    try {
      const clients = await this.#stage.connect(new SeededChooser(this.#wish.seed + this.#wish.number));
      for (const id of [...this.#sessions, this.#poisonSession]) await clients.hasty.createSession({ id });
      this.#crowd.join(clients);
    } catch {
      return false; // It died meanwhile. The next life is asked again, and what was made is made.
    }
    for (const id of [...this.#sessions, ...this.#before.map(({ sessionId }) => sessionId)]) this.#crowd.watch(id);
    return true;
  }

  async #rest(transcripts: Map<SessionId, readonly Message[]>, life: Life): Promise<void> {
    const late = AbortSignal.timeout(REST_MS_MAX);
    const crowd = this.#crowd;
    const resting = this.#resting(transcripts);
    try {
      await Promise.race([resting, aborted(late), life.died]);
      if (!life.over) return;
      // Nobody waits for it any more, and nobody goes on with the next life by himself.
      await crowd.part();
      await resting;
    } catch (thrown) {
      if (await hasDied(life)) return;
      if (!late.aborted) this.#report("faults", `The last server could not be asked: ${String(thrown)}`);
      for (const busy of crowd.joined ? await crowd.busy() : []) this.#report("stuck", busy);
      if (late.aborted) this.#report("stuck", `Not everything was at rest ${REST_MS_MAX} ms after the last start.`);
    }
  }

  async #resting(transcripts: Map<SessionId, readonly Message[]>): Promise<void> {
    const crowd = this.#crowd;
    await crowd.makeSure();
    while (!(await crowd.settle())) await pause(20);
    await crowd.told();
    await crowd.askOutcomes();
    while (!(await crowd.heardAll())) await pause(20);
    for (const id of await crowd.allSessions()) transcripts.set(id, await crowd.transcript(id));
  }

  async #buried(life: Life): Promise<void> {
    const { code, signal } = await life.died;
    this.#kills += 1;
    this.#wish.onKill?.();
    if (signal !== "SIGKILL") this.#fault(life, `died by itself (${code ?? signal})`);
    const hit = linesOf(this.#stage.hits).at(-1);
    if (hit !== undefined) this.#deaths.passed(hit);
  }

  async #checkProcesses(when: string, own?: string): Promise<void> {
    for (const [mark, pids] of marked(this.#marks.filter((one) => one !== own))) {
      this.#report("processesLeft", `${pids.join()} with the mark ${mark} are alive ${when}.`);
    }
    // What a server has started for itself, in whichever life.
    const others = (): readonly LeftOver[] =>
      workingIn(this.#stage.dir, this.#marks).filter(({ pid }) => !this.#left.has(pid));
    for (const { pid, args } of await outliving(others)) {
      this.#left.add(pid);
      this.#report("processesLeft", `${pid} (${args}) works for a server that is gone, and is alive ${when}.`);
    }
  }

  #fault(life: Life, what: string): void {
    this.#report("faults", `A server ${what}: ${life.said}`);
  }

  #report(kind: FindingKind, message: string): void {
    this.#findings.push({ kind, message });
  }
}

/** Whoever talked to it may have noticed first. */
async function hasDied(life: Life): Promise<boolean> {
  await Promise.race([life.died, pause(DEATH_TOLD_MS)]);
  return life.over;
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
