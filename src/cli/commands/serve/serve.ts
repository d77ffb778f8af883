// `belay serve`: opens a house with a server around it, says so, and stays until it is asked to end.
//
// Invariants
// 1. The first signal ends it in order, within --drain-ms; the second at once. Either way the note by which it is found
//    and its socket are gone.
// 2. Whoever reads its log, or stops reading it, cannot end it.
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
  outliveReaders();
  const ending = new Ending();
  const plan = await makePlan({ home, flags, server: serverOf(flags), trust: "ask" });
  const redact = redactor(plan.taken.secrets);
  const log = openLog({
    ...{ redact, clock: systemClock, form: formOf(flags) },
    // Asked for each line, so that it can change.
    get level() {
      return level.current;
    },
  });
  const open = (): Promise<ComposedServer> =>
    composeServer({ plan, tcp: flags.tcp, log, redact, version: version(), first: "processes" });
  const server = await whenFree(open, { home, log, asked: ending.asked });
  if (server === undefined) return EXIT_OK;
  const announcement = present(server, plan, { log, flags, onLost: () => ending.lose() });
  ending.onReload(() => {
    try {
      const now = level.reload();
      server.reload();
      log.info(`read again: tokens, certificate, log level (${now})`);
    } catch (error) {
      // A certificate that cannot be read is no reason to go: the old one still works.
      log.warn("not read again; what was read before still counts", { error, ...adviceOf(error) });
    }
  });
  const cause = await ending.asked;
  log.info(`${cause}: ending in order; once more ends at once`, { limitMs, live: flags.onStop });
  const closed = server.close({ mode: flags.onStop, limitMs }).finally(() => announcement.close());
  if (cause === DIRECTORY_LOST) {
    // Why was reported when it was lost.
    await closed.catch(() => undefined);
    return EXIT_CODE.store_locked;
  }
  const unfinished = await closed;
  if (unfinished.length === 0) log.info("ended in order");
  else log.warn("some had not come to rest in time; they are recovered at the next start", { unfinished });
  return unfinished.length === 0 ? EXIT_OK : EXIT_FOUND;
}

/** How often a directory that a run has is tried again. */
const RUN_LOOK_MS = 250;

interface Waiting {
  readonly home: DataDir;
  readonly log: Log;
  readonly asked: Promise<unknown>;
}

/** Opens it, after the end of a `belay run` that has the directory. Undefined: it was asked to end before. */
async function whenFree(
  open: () => Promise<ComposedServer>,
  { home, log, asked }: Waiting,
): Promise<ComposedServer | undefined> {
  let isLeaving = false;
  void asked.then(() => {
    isLeaving = true;
  });
  let stopWaiting: (() => void) | undefined;
  try {
    for (let waitedFor: number | undefined; !isLeaving; ) {
      try {
        return await open();
      } catch (error) {
        const note = noteOfHolder(home);
        if (!isLocked(error) || note?.host !== "run") throw occupied(error, home);
        if (waitedFor !== note.pid) log.info("waiting for the end of a run without a server", { pid: note.pid });
        waitedFor = note.pid;
        stopWaiting ??= waitAsServer(home);
        await Promise.race([new Promise<void>((resolve) => void systemClock.after(RUN_LOOK_MS, resolve)), asked]);
      }
    }
    return undefined;
  } finally {
    stopWaiting?.();
  }
}

const isLocked = (error: unknown): boolean => error instanceof ControlError && error.code === "store_locked";

/** Another program has taken over the data directory, so the work of this one cannot be recorded any more. */
const DIRECTORY_LOST = "data directory lost";

/** Asked to end, or to read something again. Heard from the first moment on. */
class Ending {
  readonly #asked = Promise.withResolvers<StopSignal | typeof DIRECTORY_LOST>();
  #reload: (() => void) | undefined;

  constructor() {
    onStopSignals((signal) => this.#hear(signal));
  }

  get asked(): Promise<StopSignal | typeof DIRECTORY_LOST> {
    return this.#asked.promise;
  }

  lose(): void {
    this.#asked.resolve(DIRECTORY_LOST);
  }

  onReload(reload: () => void): void {
    this.#reload = reload;
  }

  #hear(signal: StopSignal): "leaving" | "staying" {
    // Whoever was started on a terminal is told by it that the terminal is gone.
    if (signal === "SIGHUP" && process.stdin.isTTY !== true) {
      this.#reload?.();
      return "staying";
    }
    this.#asked.resolve(signal);
    return "leaving";
  }
}

/** What to do about it is part of what went wrong. */
const adviceOf = (error: unknown): { readonly hint?: string } =>
  error instanceof ControlError ? { hint: error.hint } : {};

/** A server goes on when nobody reads what it says. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.removeAllListeners("error");
    stream.on("error", () => {});
  }
}

const formOf = ({ logJson }: ServeFlags): LineForm =>
  logJson === true || process.stderr.isTTY !== true ? "json" : "pretty";

interface Presenting {
  readonly log: Log;
  readonly flags: ServeFlags;
  readonly onLost: () => void;
}

/** Announces it to commands, and prints where it is. */
function present(server: ComposedServer, plan: RuntimePlan, { log, flags, onLost }: Presenting): Announcement {
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
  { works, listeners, tokenFile }: ComposedServer,
  { home, config, store }: RuntimePlan,
  { onStop }: ServeFlags,
): Greeting {
  const { socket, url, instead } = listeners;
  const usual = usualHome() === home.dir;
  return {
    ...{ version: version(), url, socket, instead, store, tokenFile, onStop },
    ...{ agent: works.agent, workspace: works.workspace },
    notices: process.pid === 1 ? [...works.notices, FIRST] : works.notices,
    mode: works.isDemo ? undefined : config.mode,
    tier: works.belay.load.tier,
    belay: commandName(),
    options: usual ? "" : `--home ${shellQuoted(home.dir)}`,
    prompt: works.isDemo ? "count to 30" : "What is in this folder?",
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

/** The note counts only if its process holds the lock: one that was killed has left its own. */
function noteOfHolder(home: DataDir): ServerNote | undefined {
  const note = readServer(home);
  const holder = holderOf(home.storeFile);
  if (note === undefined || holder === undefined) return undefined;
  // The file does not name a holder that has only begun to open it, or keeps everything in memory.
  const isHolders = holder.pid === undefined ? isAlive(note.pid) : holder.pid === note.pid;
  return isHolders ? note : undefined;
}

/** Who has it already, if that is what is wrong. */
function occupied(error: unknown, home: DataDir): unknown {
  const note = noteOfHolder(home);
  if (!isLocked(error) || note === undefined) return error;
  const { pid, url, socket, startedAt } = note;
  const where = [url, socket].filter((one) => one !== undefined).join(" and ");
  const who = note.host === undefined ? "a server" : hostName(note.host);
  const since = dayAndTime(startedAt);
  const message = `The data directory is in use by ${who}: process ${pid}, at ${where}, since ${since}.`;
  return new ControlError("store_locked", message, {
    hint: `Use that one: belay ps. Or end it: kill ${pid}. Or give this one a home of its own: --home DIR.`,
    cause: error,
  });
}
