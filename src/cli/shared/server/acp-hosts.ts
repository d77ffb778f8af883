// Shares one data directory among the editors that use it. The first `belay acp` becomes the host: it opens the store
// and listens on the directory's socket. Later ones connect to it as clients. When the host exits with its editor, one
// of the clients becomes the next host and resumes the parked runs, and the others reconnect to it.
//
// Invariants
// 1. `control` stays valid across a change of hosts. A client that becomes the host keeps using the socket, to itself:
//    its waits survive the change, as they survive any restart of a server.
// 2. A directory with a server, or with a host that has another agent, is not taken over, nor used without a message.

import { get } from "node:http";
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
import type { ComposedServer } from "./compose-server.ts";
import { isServerWaiting } from "./next-server.ts";

/** How long to wait for a program that has the directory and does not answer: longer than a host takes to close. */
const SETTLE_MS_MAX = 5_000;

/** How long opening a store may take: a large one is checked, and one of an older version is migrated. */
const OPENING_MS_MAX = 60_000;

/** First and longest pause between two attempts to find or to become the host. */
const BACKOFF_FIRST_MS = 50;
const BACKOFF_LAST_MS = 1_000;

/** How long a client's request waits for a host. A change of hosts takes a second or two. */
const PATIENCE_MS = 60_000;

/** All windows of an editor close together: time for the clients to cancel their runs before the host exits. */
const LINGER_MS = 250;

/** A client's connection to the host. */
interface Joined {
  readonly connection: Connection;
  readonly note: ServerNote;
}

export class AcpHosts {
  /** `editors`: the host is a program of an editor, and ends with the last one. `server`: it runs without editors. */
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

  /** Connects to the host, or becomes the host. Rejects with the reason why neither is possible. */
  static async open(options: HostOptions): Promise<AcpHosts> {
    let backoff = new Backoff(options.clock);
    let isWaitReported = false;
    for (let holder = ""; ; ) {
      const found = options.joins === "none" ? undefined : await join(options.home);
      if (found !== undefined) return new AcpHosts(options, await checkSameAgent(found, options));
      const isServers = options.joins !== "none" && isServerWaiting(options.home);
      const hosted = isServers ? takenOver(options.home) : await host(options);
      if ("server" in hosted) return new AcpHosts(options, hosted);
      if (options.joins === "none") throw hosted;
      // The message names the program that has the directory. Each of them gets the full time to answer.
      if (hosted.message !== holder) backoff = new Backoff(options.clock);
      holder = hosted.message;
      const isOpening = holderOf(options.home.storeFile)?.since === undefined;
      const { elapsed } = backoff;
      if (elapsed > (isOpening ? OPENING_MS_MAX : SETTLE_MS_MAX)) throw inUse(options.home, hosted);
      if (elapsed > SETTLE_MS_MAX && !isWaitReported) options.log.warn("waiting for the program that opens the store");
      isWaitReported ||= elapsed > SETTLE_MS_MAX;
      await backoff.pause();
    }
  }

  private constructor(options: HostOptions, at: Hosted | Joined) {
    this.#options = options;
    if ("server" in at) {
      const { runtime } = at.server;
      this.#hosted = at;
      this.kind = "editors";
      this.control = runtime.belay;
      this.where = `in this program, by ${runtime.agent}`;
      return;
    }
    const { connection, note } = at;
    this.#connection = connection;
    this.control = connection.control;
    this.kind = note.host === undefined ? "server" : "editors";
    this.where = note.host === undefined ? connection.where : `in process ${note.pid}, ${hostName(note.host)}`;
    if (this.kind === "editors") this.#watchOver(note);
  }

  /** The server in this program. Undefined: another program is the host. */
  get hosted(): ComposedServer | undefined {
    return this.#hosted?.server;
  }

  /** Whether this program is the host. */
  get hosts(): boolean {
    return this.#hosted !== undefined;
  }

  /** The audit trail to write to. Undefined for a client: its host writes the records. */
  get audit(): AuditTrail | undefined {
    return this.#connection === undefined ? this.#hosted?.server.audit : undefined;
  }

  /**
   * Disconnects. If this program is the host, it parks its live runs for the next host, or cancels them. Resolves with
   * the sessions that did not come to rest in time; undefined: another program is the host.
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
      if (this.#hosted.server.runtime.belay.load.live > 0) await pause(this.#options.clock, LINGER_MS);
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

  /** Finds the next host after the last one has exited, or becomes it. */
  async #moveOn(): Promise<void> {
    const { home, log } = this.#options;
    const backoff = new Backoff(this.#options.clock);
    let lastError = "";
    while (this.#closing === undefined) {
      // A server that waits for the directory has precedence.
      const isServers = isServerWaiting(home);
      const hosted = isServers ? undefined : await host(this.#options).catch((error: unknown) => toControlError(error));
      if (hosted !== undefined && "server" in hosted) {
        this.#hosted = hosted;
        log.info("the host has exited; this program is the next host", { pid: process.pid });
        return;
      }
      const note = await serving(home);
      if (note !== undefined) return this.#follow(note);
      // A repeated error is logged once.
      if (hosted !== undefined && hosted.code !== "store_locked" && hosted.message !== lastError)
        log.error("this program cannot become the host", { error: hosted });
      lastError = hosted?.message ?? lastError;
      await Promise.race([backoff.pause(), this.#leaving.promise]);
    }
  }

  #follow(note: ServerNote): void {
    const { log, agentDigest } = this.#options;
    if (note.agent === agentDigest)
      log.info("the host has exited; another program is the next host", { pid: note.pid });
    else log.warn("the host has exited; the next host has another agent", { pid: note.pid });
    if (note.host !== undefined) this.#watchOver(note);
  }
}

/** Pauses with exponential backoff. */
class Backoff {
  readonly #clock: Clock;
  readonly #since: number;
  #nextMs = BACKOFF_FIRST_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.elapsed();
  }

  get elapsed(): number {
    return this.#clock.elapsed() - this.#since;
  }

  pause(): Promise<void> {
    const ms = this.#nextMs;
    this.#nextMs = Math.min(2 * ms, BACKOFF_LAST_MS);
    return pause(this.#clock, ms);
  }
}

const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));

interface HostWatch {
  /** Resolves when the host has exited, or is closing. */
  readonly gone: Promise<void>;
  stop(): void;
}

/** Watches the host by the stream of all its events, which stays open while the host runs. The events are discarded. */
function watchHost(socketPath: string): HostWatch {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const request = get(
    { socketPath, path: "/v1/events", agent: false, headers: { host: "localhost", accept: "text/event-stream" } },
    (answer) => {
      answer.resume();
      answer.on("error", () => resolve());
      answer.on("close", resolve);
    },
  );
  request.on("error", () => resolve());
  request.on("close", resolve);
  return { gone, stop: () => void request.destroy() };
}

/** Connects to the program that `server.json` of this directory names. Undefined: none runs. */
async function join(home: DataDir): Promise<Joined | undefined> {
  const note = readServer(home);
  if (note === undefined) return undefined;
  const left = new AbortController();
  const unwatch = watchNote(home, note, () => left.abort());
  const patience = { patienceMs: PATIENCE_MS, signal: left.signal };
  try {
    const connection = await openControl({ home: home.dir }, process.env, patience);
    if (!hasChanged(home, note)) return { connection, note };
    await connection.close();
    return undefined;
  } catch (error) {
    return left.signal.aborted ? undefined : undefinedIfDisconnected(error);
  } finally {
    unwatch();
  }
}

/** Whether another program serves the directory by now, or none. */
function hasChanged(home: DataDir, { pid, startedAt }: ServerNote): boolean {
  const now = readServer(home);
  return now?.pid !== pid || now.startedAt !== startedAt;
}

/** Calls back when the host exits during the connection attempt: this program may then open the directory itself. */
function watchNote(home: DataDir, note: ServerNote, onLeft: () => void): () => void {
  let cancelTimer = (): void => {};
  const poll = (): void => {
    if (hasChanged(home, note) || holderOf(home.storeFile) === undefined) onLeft();
    else cancelTimer = systemClock.after(BACKOFF_FIRST_MS, poll);
  };
  cancelTimer = systemClock.after(BACKOFF_FIRST_MS, poll);
  return () => cancelTimer();
}

async function serving(home: DataDir): Promise<ServerNote | undefined> {
  const found = await join(home);
  await found?.connection.close();
  return found?.note;
}

const undefinedIfDisconnected = (error: unknown): undefined => {
  if (error instanceof ControlError && error.code === "disconnected") return undefined;
  throw error;
};

async function checkSameAgent(found: Joined, { home, agentDigest, joins }: HostOptions): Promise<Joined> {
  const { host: kind, agent } = found.note;
  if (kind === undefined || agent === agentDigest || joins === "any") return found;
  await found.connection.close();
  const who = `Process ${found.note.pid}, ${hostName(kind)},`;
  throw new ControlError("invalid", `${who} works in the home ${home.dir}, with another agent.`, {
    hint: "Start both with the same options, or give each agent its own home: --home DIR.",
  });
}

const takenOver = ({ dir }: DataDir): ControlError =>
  new ControlError("store_locked", `A server takes over the home ${dir}.`);

const inUse = ({ dir }: DataDir, error: ControlError): ControlError =>
  new ControlError("store_locked", `The home ${dir} is in use by a program that does not answer. ${error.message}`, {
    hint: "It may be a run without a server: wait for its end. Or give this one its own home: --home DIR.",
    cause: error,
  });
