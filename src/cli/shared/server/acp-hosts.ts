// Who does the work for the editors of one home. The first `belay acp` opens the house and listens on the home's
// socket; those that come later are its guests. When the host goes with its editor, one of the guests opens the house
// anew, the others come back to it, and what was set down is taken up there.
//
// Invariants
// 1. Whoever is here keeps their control for life. A guest that becomes the host goes on over the socket, to itself:
//    what it waits for is waited for across the change, as across any other restart.
// 2. A home that a server works for, or a host with another agent, is not taken over, and not used unawares.

import { ControlError, toControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { type DataDir, readServer, type ServerNote } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import type { AuditTrail } from "../../../telemetry/audit/audit-trail.ts";
import { type Connection, openControl } from "../connect.ts";
import { holderOf } from "../store-holder.ts";
import { type HostEnd, type Hosted, type HostOptions, host, hostName, leave } from "./acp-host.ts";
import { type HostWatch, watchHost } from "./acp-host-watch.ts";
import type { ComposedServer } from "./compose-server.ts";
import { isServerWaiting } from "./next-server.ts";

/** How long a home may be in use by somebody who does not answer: longer than a host takes to open or to leave. */
const SETTLE_MS_MAX = 5_000;

/** How long a store may take to be opened: a large one is checked, and one of an older version is migrated. */
const OPENING_MS_MAX = 60_000;

/** First and longest pause between two looks at who is there. */
const LOOK_FIRST_MS = 50;
const LOOK_LAST_MS = 1_000;

/** How long a guest's request waits for somebody to do the work. A change of hosts takes a second or two. */
const PATIENCE_MS = 60_000;

/** The windows of an editor are closed together. Guests may still want what they have begun to be cancelled. */
const LINGER_MS = 250;

/** What a guest has. */
interface Visited {
  readonly door: Connection;
  readonly note: ServerNote;
}

export class AcpHosts {
  /** `editors`: the work is done among them, and goes with them. `server`: it goes on without any. */
  readonly kind: "editors" | "server";
  readonly control: BelayControl;
  readonly where: string;
  readonly #options: HostOptions;
  readonly #connection: Connection | undefined;
  #hosted: Hosted | undefined;
  #watch: HostWatch | undefined;
  #moving: Promise<void> = Promise.resolve();
  readonly #leaving = Promise.withResolvers<void>();
  #closing: Promise<readonly SessionId[] | undefined> | undefined;

  /** Finds who is there, or opens the house. Rejects with what keeps it from both. */
  static async open(options: HostOptions): Promise<AcpHosts> {
    let looks = new Looks(options.clock);
    let isTold = false;
    for (let holder = ""; ; ) {
      const found = options.joins === "none" ? undefined : await visit(options.home);
      if (found !== undefined) return new AcpHosts(options, await checkSameAgent(found, options));
      const isServers = options.joins !== "none" && isServerWaiting(options.home);
      const hosted = isServers ? takenOver(options.home) : await host(options);
      if ("house" in hosted) return new AcpHosts(options, hosted);
      if (options.joins === "none") throw hosted;
      // It names the program that has the directory. Each has its time to answer.
      if (hosted.message !== holder) looks = new Looks(options.clock);
      holder = hosted.message;
      const isOpening = holderOf(options.home.storeFile)?.since === undefined;
      if (looks.elapsed > (isOpening ? OPENING_MS_MAX : SETTLE_MS_MAX)) throw inUse(options.home, hosted);
      if (looks.elapsed > SETTLE_MS_MAX && !isTold) options.log.warn("waiting for the program that opens the store");
      isTold ||= looks.elapsed > SETTLE_MS_MAX;
      await looks.pause();
    }
  }

  private constructor(options: HostOptions, at: Hosted | Visited) {
    this.#options = options;
    if ("house" in at) {
      const { works } = at.house;
      this.#hosted = at;
      this.kind = "editors";
      this.control = works.belay;
      this.where = `in this program, by ${works.agent}`;
      return;
    }
    const { door, note } = at;
    this.#connection = door;
    this.control = door.control;
    this.kind = note.host === undefined ? "server" : "editors";
    this.where = note.host === undefined ? door.where : `in process ${note.pid}, ${hostName(note.host)}`;
    if (this.kind === "editors") this.#watchOver(note);
  }

  /** What this program does the work with. Undefined: another does it. */
  get hosted(): ComposedServer | undefined {
    return this.#hosted?.house;
  }

  /** Whether the work is done in this very program. */
  get hosts(): boolean {
    return this.#hosted !== undefined;
  }

  /** Where to put down who asked for what. A guest's host keeps it. */
  get audit(): AuditTrail | undefined {
    return this.#connection === undefined ? this.#hosted?.house.audit : undefined;
  }

  /**
   * Lets go. Live runs here are set down for the next host, or cancelled. Resolves with the sessions that had not come
   * to rest; undefined: another program does the work.
   */
  close(limitMs: number, mode: HostEnd["mode"] = "park"): Promise<readonly SessionId[] | undefined> {
    this.#closing ??= this.#close({ mode, limitMs });
    return this.#closing;
  }

  async #close(end: HostEnd): Promise<readonly SessionId[] | undefined> {
    this.#leaving.resolve();
    this.#watch?.stop();
    await this.#moving;
    let unfinished: readonly SessionId[] | undefined;
    if (this.#hosted !== undefined) {
      if (this.#hosted.house.works.belay.load.live > 0) await pause(this.#options.clock, LINGER_MS);
      unfinished = await leave(this.#hosted, end, this.#options.log);
    }
    await this.#connection?.close();
    return unfinished;
  }

  #watchOver({ socket }: ServerNote): void {
    if (socket === undefined) return;
    const watch = watchHost(socket);
    this.#watch = watch;
    void watch.gone.then(() => {
      if (this.#closing === undefined) this.#moving = this.#moveOn();
    });
  }

  /** The host is gone. Tries to be the next one, until somebody is. */
  async #moveOn(): Promise<void> {
    const { home, log } = this.#options;
    const looks = new Looks(this.#options.clock);
    let said = "";
    while (this.#closing === undefined) {
      // One that waits to take over is followed, not forestalled.
      const isServers = isServerWaiting(home);
      const hosted = isServers ? undefined : await host(this.#options).catch((error: unknown) => toControlError(error));
      if (hosted !== undefined && "house" in hosted) {
        this.#hosted = hosted;
        log.info("the editor that did the work is gone; it goes on in this program", { pid: process.pid });
        return;
      }
      const note = await serving(home);
      if (note !== undefined) return this.#follow(note);
      // The same again is not news.
      if (hosted !== undefined && hosted.code !== "store_locked" && hosted.message !== said)
        log.error("the work cannot be taken over", { error: hosted });
      said = hosted?.message ?? said;
      await Promise.race([looks.pause(), this.#leaving.promise]);
    }
  }

  #follow(note: ServerNote): void {
    const { log, mark } = this.#options;
    if (note.agent === mark) log.info("the editor that did the work is gone; another one does it", { pid: note.pid });
    else log.warn("the editor that did the work is gone; it goes on where another agent works", { pid: note.pid });
    if (note.host !== undefined) this.#watchOver(note);
  }
}

/** Looks at who is there, less and less often. */
class Looks {
  readonly #clock: Clock;
  readonly #since: number;
  #nextMs = LOOK_FIRST_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.elapsed();
  }

  get elapsed(): number {
    return this.#clock.elapsed() - this.#since;
  }

  pause(): Promise<void> {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(2 * ms, LOOK_LAST_MS);
    return pause(this.#clock, ms);
  }
}

const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));

/** The one who answers for this home. */
async function visit(home: DataDir): Promise<Visited | undefined> {
  const note = readServer(home);
  if (note === undefined) return undefined;
  const left = new AbortController();
  const unwatch = watchNote(home, note, () => left.abort());
  const patience = { patienceMs: PATIENCE_MS, signal: left.signal };
  try {
    const connection = await openControl({ home: home.dir }, process.env, patience);
    if (!hasChanged(home, note)) return { door: connection, note };
    await connection.close();
    return undefined;
  } catch (error) {
    return left.signal.aborted ? undefined : undefinedIfDisconnected(error);
  } finally {
    unwatch();
  }
}

/** Another program serves the directory by now, or none: the note may also have been a dead one's. */
function hasChanged(home: DataDir, { pid, startedAt }: ServerNote): boolean {
  const now = readServer(home);
  return now?.pid !== pid || now.startedAt !== startedAt;
}

/** A program that leaves while this one connects to it is not waited for: this one may open the directory itself. */
function watchNote(home: DataDir, note: ServerNote, onLeft: () => void): () => void {
  let cancel = (): void => {};
  const look = (): void => {
    if (hasChanged(home, note) || holderOf(home.storeFile) === undefined) onLeft();
    else cancel = systemClock.after(LOOK_FIRST_MS, look);
  };
  cancel = systemClock.after(LOOK_FIRST_MS, look);
  return () => cancel();
}

async function serving(home: DataDir): Promise<ServerNote | undefined> {
  const found = await visit(home);
  await found?.door.close();
  return found?.note;
}

const undefinedIfDisconnected = (error: unknown): undefined => {
  if (error instanceof ControlError && error.code === "disconnected") return undefined;
  throw error;
};

async function checkSameAgent(found: Visited, { home, mark, joins }: HostOptions): Promise<Visited> {
  const { host: kind, agent } = found.note;
  if (kind === undefined || agent === mark || joins === "any") return found;
  await found.door.close();
  const who = `Process ${found.note.pid}, ${hostName(kind)},`;
  throw new ControlError("invalid", `${who} works in the home ${home.dir}, with another agent.`, {
    hint: "Start both with the same options, or give each agent a home of its own: --home DIR.",
  });
}

const takenOver = ({ dir }: DataDir): ControlError =>
  new ControlError("store_locked", `A server takes over the home ${dir}.`);

const inUse = ({ dir }: DataDir, error: ControlError): ControlError =>
  new ControlError("store_locked", `The home ${dir} is in use by a program that does not answer. ${error.message}`, {
    hint: "It may be a run without a server: wait for its end. Or give this one a home of its own: --home DIR.",
    cause: error,
  });
