// `belay serve`: runs a server until a signal.
//
// Invariants
// 1. The first signal shuts down gracefully, within --drain-ms; the second exits at once. Either way server.json and
//    the socket are removed.
// 2. A reader of its output that closes the pipe does not end it.
import { ControlError } from "../../../core/errors.ts";
import { type Announcement, announce } from "../../../sdk/announcement.ts";
import { type DataDir, makeDataDir, openDataDir, readServer, type ServerNote } from "../../../sdk/data-dir.ts";
import { isAlive } from "../../../store/sqlite/file/owner.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { version } from "../../../system/version.ts";
import { type Log, openLog } from "../../../telemetry/log.ts";
import type { LineForm } from "../../../telemetry/log-line.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { commandName } from "../../shared/command-name.ts";
import { EXIT_CODE, EXIT_FOUND, EXIT_OK, type StopSignal } from "../../shared/exit-code.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { hostName } from "../../shared/server/acp-host.ts";
import { type ComposedServer, composeServer } from "../../shared/server/compose-server.ts";
import { waitAsServer } from "../../shared/server/next-server.ts";
import { makePlan, type RuntimePlan } from "../../shared/server/runtime.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { holderOf } from "../../shared/store-holder.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { LogLevel } from "./log-level.ts";
import { type Greeting, greet, shellQuoted } from "./serve-greeting.ts";
import { drainMsOf, levelOf, type ServeFlags, serverOf } from "./serve-options.ts";

export async function runServe(flags: ServeFlags): Promise<number> {
  const limitMs = drainMsOf(flags);
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const level = new LogLevel({
    clock: systemClock,
    read: () => levelOf(flags, home, process.env),
    onProblem: (error) => log.warn("the log level was not changed", { error, ...adviceOf(error) }),
  });
  ignoreClosedPipes();
  const stopRequest = new StopRequest();
  const plan = await makePlan({ home, flags, server: serverOf(flags), trust: "ask" });
  const redact = redactor(plan.taken.secrets);
  const log = openLog({
    ...{ redact, clock: systemClock, form: formOf(flags) },
    // Read for each line, so that it can change.
    get level() {
      return level.current;
    },
  });
  const open = (): Promise<ComposedServer> =>
    composeServer({ plan, tcp: flags.tcp, log, redact, version: version(), first: "processes" });
  const server = await whenFree(open, { home, log, stopped: stopRequest.received });
  if (server === undefined) return EXIT_OK;
  const announcement = announceServer(server, plan, { log, flags, onLost: () => stopRequest.lose() });
  stopRequest.onReload(() => {
    try {
      const now = level.reload();
      server.reload();
      log.info(`read again: tokens, certificate, log level (${now})`);
    } catch (error) {
      // An unreadable certificate does not end the server: the old one stays in use.
      log.warn("not read again; the previous settings stay in effect", { error, ...adviceOf(error) });
    }
  });
  const cause = await stopRequest.received;
  log.info(`${cause}: shutting down gracefully (send the signal again to force)`, { limitMs, live: flags.onStop });
  const closed = server.close({ mode: flags.onStop, limitMs }).finally(() => announcement.close());
  if (cause === DIRECTORY_LOST) {
    // The cause was logged when the directory was lost.
    await closed.catch(() => undefined);
    return EXIT_CODE.store_locked;
  }
  const unfinished = await closed;
  if (unfinished.length === 0) log.info("shut down gracefully");
  else log.warn("some sessions did not come to rest in time; they are recovered at the next start", { unfinished });
  return unfinished.length === 0 ? EXIT_OK : EXIT_FOUND;
}

/** How often to retry while a run without a server has the directory. */
const RETRY_MS = 250;

/** How often to retry while the run that was waited for is closing: 30 s, longer than its grace. */
const TRIES_WITHOUT_NOTE_MAX = 120;

interface Waiting {
  readonly home: DataDir;
  readonly log: Log;
  readonly stopped: Promise<unknown>;
}

/** Opens the server, after the end of a `belay run` that has the directory. Undefined: a signal came first. */
async function whenFree(
  open: () => Promise<ComposedServer>,
  { home, log, stopped }: Waiting,
): Promise<ComposedServer | undefined> {
  let isLeaving = false;
  void stopped.then(() => {
    isLeaving = true;
  });
  let stopWaiting: (() => void) | undefined;
  let waitedFor: number | undefined;
  let triesWithoutNote = 0;
  try {
    while (!isLeaving) {
      try {
        return await open();
      } catch (error) {
        const note = noteOfHolder(home);
        // A run that ends removes its note first and gives the lock back last.
        triesWithoutNote = note === undefined ? triesWithoutNote + 1 : 0;
        const isEnding = note === undefined && waitedFor !== undefined && triesWithoutNote <= TRIES_WITHOUT_NOTE_MAX;
        if (!isLocked(error) || !(note?.host === "run" || isEnding)) throw occupied(error, home);
        if (note !== undefined && waitedFor !== note.pid) {
          log.info("waiting for the end of a run without a server", { pid: note.pid });
          waitedFor = note.pid;
        }
        stopWaiting ??= waitAsServer(home);
        await Promise.race([new Promise<void>((resolve) => void systemClock.after(RETRY_MS, resolve)), stopped]);
      }
    }
    return undefined;
  } finally {
    stopWaiting?.();
  }
}

const isLocked = (error: unknown): boolean => error instanceof ControlError && error.code === "store_locked";

/** Another program has taken over the data directory, so this one can no longer record its work. */
const DIRECTORY_LOST = "data directory lost";

/** Handles stop and reload signals from the start of the program. */
class StopRequest {
  readonly #received = Promise.withResolvers<StopSignal | typeof DIRECTORY_LOST>();
  #reload: (() => void) | undefined;

  constructor() {
    onStopSignals((signal) => this.#onSignal(signal));
  }

  get received(): Promise<StopSignal | typeof DIRECTORY_LOST> {
    return this.#received.promise;
  }

  lose(): void {
    this.#received.resolve(DIRECTORY_LOST);
  }

  onReload(reload: () => void): void {
    this.#reload = reload;
  }

  #onSignal(signal: StopSignal): "leaving" | "staying" {
    // At a terminal SIGHUP means that the terminal was closed; otherwise it requests a reload.
    if (signal === "SIGHUP" && process.stdin.isTTY !== true) {
      this.#reload?.();
      return "staying";
    }
    this.#received.resolve(signal);
    return "leaving";
  }
}

/** The hint of an error, for the log. */
const adviceOf = (error: unknown): { readonly hint?: string } =>
  error instanceof ControlError ? { hint: error.hint } : {};

/** Keeps the server running when the reader of its output closes the pipe. */
function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.removeAllListeners("error");
    stream.on("error", () => {});
  }
}

const formOf = ({ logJson }: ServeFlags): LineForm =>
  logJson === true || process.stderr.isTTY !== true ? "json" : "pretty";

interface AnnounceOptions {
  readonly log: Log;
  readonly flags: ServeFlags;
  readonly onLost: () => void;
}

/** Announces the server to other commands, and prints its addresses. */
function announceServer(
  server: ComposedServer,
  plan: RuntimePlan,
  { log, flags, onLost }: AnnounceOptions,
): Announcement {
  const { home, store } = plan;
  const { socket, url } = server.listeners;
  const note: ServerNote = {
    ...{ pid: process.pid, socket, startedAt: systemClock.now(), version: version(), store },
    ...(url === undefined ? {} : { url }),
  };
  const { listeners: sockets, lock } = server;
  const warn = (text: string, about = {}): void => log.warn(text, about);
  const announcement = announce({ home, note, lock, sockets, clock: systemClock, warn, onLost });
  const greeting = greetingOf(server, plan, flags);
  if (flags.json === true) print(JSON.stringify({ ...note, tokenFile: greeting.tokenFile, agent: greeting.agent }));
  else for (const line of greet(greeting, process.stdout.isTTY === true)) print(line);
  log.info("ready", { ...note, tier: greeting.tier ?? "not known yet" });
  return announcement;
}

function greetingOf(
  { runtime, listeners, tokenFile }: ComposedServer,
  { home, config, store }: RuntimePlan,
  { onStop }: ServeFlags,
): Greeting {
  const { socket, url, instead } = listeners;
  const usual = usualHome() === home.dir;
  return {
    ...{ version: version(), url, socket, instead, store, tokenFile, onStop },
    ...{ agent: runtime.agent, workspace: runtime.workspace },
    notices: process.pid === 1 ? [...runtime.notices, FIRST] : runtime.notices,
    mode: runtime.isDemo ? undefined : config.mode,
    tier: runtime.belay.load.tier,
    belay: commandName(),
    options: usual ? "" : `--home ${shellQuoted(home.dir)}`,
    prompt: runtime.isDemo ? "count to 30" : "What is in this folder?",
  };
}

const FIRST =
  "belay is the first process here and cannot reap orphans: use Node.js 22.15 or newer, or docker run --init";

/** Undefined: this user has no home directory, so a data directory has to be named. */
function usualHome(): string | undefined {
  try {
    return openDataDir({ env: { ...process.env, BELAY_HOME: undefined } }).dir;
  } catch {
    return undefined;
  }
}

/** The content of server.json, if its process holds the lock: a killed server leaves its file behind. */
function noteOfHolder(home: DataDir): ServerNote | undefined {
  const note = readServer(home);
  const holder = holderOf(home.storeFile);
  if (note === undefined || holder === undefined) return undefined;
  // The file does not name a holder that is still opening it, or has its store in memory.
  const isHolders = holder.pid === undefined ? isAlive(note.pid) : holder.pid === note.pid;
  return isHolders ? note : undefined;
}

/** If the error is a taken lock, an error that names the holder. */
function occupied(error: unknown, home: DataDir): unknown {
  const note = noteOfHolder(home);
  if (!isLocked(error) || note === undefined) return error;
  const { pid, url, socket, startedAt } = note;
  const where = [url, socket].filter((one) => one !== undefined).join(" and ");
  const who = note.host === undefined ? "a server" : hostName(note.host);
  const since = dayAndTime(startedAt);
  const message = `The data directory is in use by ${who}: process ${pid}, at ${where}, since ${since}.`;
  return new ControlError("store_locked", message, {
    hint: `Use that one: belay ps. Or end it: kill ${pid}. Or give this one its own home: --home DIR.`,
    cause: error,
  });
}
