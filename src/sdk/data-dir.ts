// The paths of a data directory, and the note by which commands find its running server.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ControlError } from "../core/errors.ts";
import { refuseReplaceable } from "../http/auth/private-directory.ts";
import { fitsSocket } from "../http/transport/listener-socket.ts";
import { canonicalPath } from "../store/sqlite/file/owner.ts";
import { randomIds } from "../system/random-ids.ts";
import { systemClock } from "../system/system-clock.ts";

export interface DataDir {
  readonly dir: string;
  readonly storeFile: string;
  /** Hashes of all tokens. */
  readonly tokensFile: string;
  /** This user's token, for the command line. */
  readonly tokenFile: string;
  /** Written by a server while it runs. */
  readonly serverFile: string;
  /** Undefined: no fixed path is short enough for a socket on this machine; the server's note has the path. */
  readonly socketFile: string | undefined;
  /** A directory, because the audit log has several files. */
  readonly auditDir: string;
  /** Contains the log level of a running server. */
  readonly levelFile: string;
  /** The configurations that the user trusts. */
  readonly trustFile: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A note has a few lines. Belay never writes a larger one. */
const NOTE_BYTES_MAX = 64 * 1024;

/** Computes paths and creates nothing, so that commands that only read leave no trace. */
export function openDataDir({ home, env }: { readonly home?: string | undefined; readonly env: Environment }): DataDir {
  if (home === "") throw nameless();
  const dir = resolve(home ?? nonEmpty(env.BELAY_HOME) ?? join(stateDir(env), "belay"));
  return {
    dir,
    storeFile: join(dir, "belay.db"),
    tokensFile: join(dir, "tokens.json"),
    tokenFile: join(dir, "token"),
    serverFile: join(dir, "server.json"),
    socketFile: socketFile(dir, env),
    auditDir: join(dir, "audit"),
    levelFile: join(dir, "log-level"),
    trustFile: join(dir, "trusted.json"),
  };
}

/** An empty variable counts as unset. */
const nonEmpty = (value: string | undefined): string | undefined => (value === "" ? undefined : value);

function stateDir(env: Environment): string {
  const given = nonEmpty(env.XDG_STATE_HOME);
  // The XDG specification says to ignore relative paths.
  if (given?.startsWith("/")) return given;
  return join(nonEmpty(env.HOME) ?? accountDir(), ".local", "state");
}

/** A uid without an entry in the user database has no home directory. */
function accountDir(): string {
  try {
    return homedir();
  } catch (cause) {
    throw new ControlError("invalid", "This user has no home directory: HOME is not set, and the system names none.", {
      hint: "Name a data directory: --home DIR, or BELAY_HOME.",
      cause,
    });
  }
}

/**
 * In the data directory; if that path is too long for a socket, in the runtime directory, under a name derived from
 * it.
 */
function socketFile(dir: string, env: Environment): string | undefined {
  const runtime = nonEmpty(env.XDG_RUNTIME_DIR);
  const name = `${randomIds(systemClock).digest(dir).slice(0, 16)}.sock`;
  const places = [join(dir, "belay.sock"), ...(runtime?.startsWith("/") ? [join(runtime, "belay", name)] : [])];
  return places.find(fitsSocket);
}

/**
 * The socket of a directory, the same for every program that serves it. If the directory's path is too long for one,
 * it is under the temporary directory, in a directory that must belong to this user.
 */
export function socketOf({ dir, socketFile }: Pick<DataDir, "dir" | "socketFile">): string {
  const digest = randomIds(systemClock).digest(dir).slice(0, 16);
  return socketFile ?? join(tmpdir(), `belay-${process.getuid?.() ?? 0}-${digest}`, "belay.sock");
}

/** The socket of a store outside of a data directory, for the program that has it open. */
export const socketOfStore = (file: string): string =>
  socketOf({ dir: `${canonicalPath(file)}#store`, socketFile: undefined });

/** An empty variable in a script must not select the current directory. */
const nameless = (): ControlError =>
  new ControlError("invalid", "--home must name a directory (got an empty string).", {
    hint: "Name one, or omit the option to use BELAY_HOME or the default directory.",
  });

/**
 * Creates the directory if necessary, private to this user. An existing directory is never changed: making `/tmp` or
 * a project private would lock other users out. If other users can read it, it is refused.
 */
export function makeDataDir({ dir }: DataDir): void {
  try {
    makeDirs(dir);
    const stats = statSync(dir);
    if (!stats.isDirectory()) throw new Error(`${dir} is not a directory.`);
    const { uid, mode } = stats;
    if (process.getuid !== undefined && uid !== process.getuid()) throw foreign(dir);
    refuseReplaceable(dir);
    if ((mode & 0o077) !== 0) throw open(dir);
  } catch (error) {
    if (error instanceof ControlError) throw error;
    throw new ControlError("invalid", `${dir} cannot be used as a directory for Belay.`, {
      hint: "Give another one with --home DIR or BELAY_HOME, or make this one writable for you.",
      cause: error,
    });
  }
}

/** One directory at a time: a recursive `mkdir` never returns where the file system allows none, as below /proc. */
function makeDirs(dir: string): void {
  if (existsSync(dir)) return;
  makeDirs(dirname(dir));
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(dir)) throw error;
  }
}

const open = (dir: string): ControlError =>
  new ControlError("invalid", `Other users can read ${dir}. It existed before, so Belay does not change it.`, {
    hint: `Name a new directory, which Belay creates; or, if nothing else uses this one: chmod 700 ${dir}`,
  });

const foreign = (dir: string): ControlError =>
  new ControlError("forbidden", `${dir} belongs to another user.`, {
    hint: "Its owner could read what is kept there. Give another directory with --home DIR or BELAY_HOME.",
  });

export type HostKind = "editor" | "run" | "bridge";

/** What a running server publishes for the command line of the same user. */
export interface ServerNote {
  readonly pid: number;
  readonly url?: string;
  readonly socket?: string;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly version: string;
  readonly store?: string;
  /** The command that serves the directory while it has work: `belay acp`, `run` or `bridge`. Undefined: a server. */
  readonly host?: HostKind;
  /** A digest of the agent of such a host. */
  readonly agent?: string;
}

/**
 * Reads the note, if it was written in this directory: a note that was copied with a directory names the server of
 * another. It is valid only while the lock of the directory is held, because a server may be killed.
 */
export function readServer({ serverFile }: Pick<DataDir, "serverFile">): ServerNote | undefined {
  try {
    if (statSync(serverFile).size > NOTE_BYTES_MAX) return undefined;
    const read: unknown = JSON.parse(readFileSync(serverFile, "utf8"));
    return isElsewhere(read, dirname(serverFile)) ? undefined : noteOf(read);
  } catch {
    // Missing, unreadable or not Belay's: there is no note.
    return undefined;
  }
}

/** Older versions wrote no identity. */
function isElsewhere(read: unknown, dir: string): boolean {
  if (typeof read !== "object" || read === null || !("directory" in read)) return false;
  return read.directory !== identityOf(dir);
}

/** Stays the same if the directory is renamed. */
function identityOf(dir: string): string {
  const { dev, ino } = statSync(dir, { bigint: true });
  return `${dev}.${ino}`;
}

function noteOf(read: unknown): ServerNote | undefined {
  if (typeof read !== "object" || read === null) return undefined;
  const { pid, url, socket, startedAt, version, store, host, agent } = read as Readonly<Record<string, unknown>>;
  if (!Number.isSafeInteger(pid) || typeof startedAt !== "number" || typeof version !== "string") return undefined;
  const texts = Object.entries({ url, socket, store, host, agent }).filter(([, text]) => typeof text === "string");
  return { pid: Number(pid), startedAt, version, ...Object.fromEntries(texts) };
}

/** Written atomically, and readable only by this user. */
export function writeServer({ dir, serverFile }: DataDir, note: ServerNote): void {
  const draft = join(dir, `.server.${process.pid}`);
  // Left by a crashed process that had the same pid.
  rmSync(draft, { force: true });
  const text = JSON.stringify({ ...note, directory: identityOf(dir) }, undefined, 2);
  writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: "wx" });
  renameSync(draft, serverFile);
}

/** Removes the note if this server wrote it. */
export function removeServer(home: DataDir, { pid, startedAt }: ServerNote): void {
  const found = readServer(home);
  if (found?.pid === pid && found.startedAt === startedAt) rmSync(home.serverFile, { force: true });
}
