// Where Belay keeps its things on this machine, and the note by which a running server is found.
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
  /** The token of this user, for the command line. */
  readonly tokenFile: string;
  /** Written by a server while it runs. */
  readonly serverFile: string;
  /** Undefined: no path that this machine takes for a socket is known beforehand; the server's note has one. */
  readonly socketFile: string | undefined;
  /** A folder, because the trail is several files. */
  readonly auditDir: string;
  /** A word that says how much a running server logs. */
  readonly levelFile: string;
  /** The configurations that the user trusts. */
  readonly trustFile: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A note is a few lines. Whatever is larger was not written by us. */
const NOTE_BYTES_MAX = 64 * 1024;

/** Names everything and makes nothing: whoever only looks leaves no trace. */
export function openDataDir({ home, env }: { readonly home?: string | undefined; readonly env: Environment }): DataDir {
  if (home === "") throw nameless();
  const dir = resolve(home ?? filled(env.BELAY_HOME) ?? join(stateDir(env), "belay"));
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

/** A variable that is set to nothing is as good as not set. */
const filled = (value: string | undefined): string | undefined => (value === "" ? undefined : value);

function stateDir(env: Environment): string {
  const given = filled(env.XDG_STATE_HOME);
  // The specification wants a relative path to be ignored.
  if (given?.startsWith("/")) return given;
  return join(filled(env.HOME) ?? accountDir(), ".local", "state");
}

/** A uid without an entry in the list of users has none. */
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

/** In the home; if that is too long for a socket, under the directory for such things, named after the home. */
function socketFile(dir: string, env: Environment): string | undefined {
  const runtime = filled(env.XDG_RUNTIME_DIR);
  const name = `${randomIds(systemClock).digest(dir).slice(0, 16)}.sock`;
  const places = [join(dir, "belay.sock"), ...(runtime?.startsWith("/") ? [join(runtime, "belay", name)] : [])];
  return places.find(fitsSocket);
}

/**
 * The socket of a directory, the same for every program that serves it. If the directory is too deep for one, it is
 * beside the user's other temporary files, in a directory of its own that must be this user's.
 */
export function socketOf({ dir, socketFile }: Pick<DataDir, "dir" | "socketFile">): string {
  const digest = randomIds(systemClock).digest(dir).slice(0, 16);
  return socketFile ?? join(tmpdir(), `belay-${process.getuid?.() ?? 0}-${digest}`, "belay.sock");
}

/** The socket of a store that was named, for the program that has it open outside of a data directory. */
export const socketOfStore = (file: string): string =>
  socketOf({ dir: `${canonicalPath(file)}#store`, socketFile: undefined });

/** A script whose variable is empty must not have the directory it happens to be in taken for the home. */
const nameless = (): ControlError =>
  new ControlError("invalid", "--home names no directory: it is empty.", {
    hint: "Give one, or leave the option out: then BELAY_HOME counts, or the usual place.",
  });

/**
 * Makes the directory if need be, closed to others. One that was there before is never changed: to close `/tmp` or a
 * project would lock everybody else out of it. If others may look into it, it is refused.
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

/** One after the other. All at once would try for ever where the file system takes none, as below /proc. */
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
  new ControlError("invalid", `Others may look into ${dir}. It was there before, and is left as it is.`, {
    hint: `Give a directory of its own, which Belay makes; or, if nothing else uses this one: chmod 700 ${dir}`,
  });

const foreign = (dir: string): ControlError =>
  new ControlError("forbidden", `${dir} belongs to another user.`, {
    hint: "Its owner could read what is kept there. Give another directory with --home DIR or BELAY_HOME.",
  });

export type HostKind = "editor" | "run" | "bridge";

/** What a running server tells the command line of the same user. */
export interface ServerNote {
  readonly pid: number;
  readonly url?: string;
  readonly socket?: string;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly version: string;
  readonly store?: string;
  /** What serves the directory for as long as it has work: `belay acp`, `run` or `bridge`. Undefined: a server. */
  readonly host?: HostKind;
  /** A digest of the agent of such a host. */
  readonly agent?: string;
}

/**
 * The note as it was written in this directory; one that was copied with a directory names the server of another. It
 * counts only while the lock of the directory is held: a server may be killed.
 */
export function readServer({ serverFile }: Pick<DataDir, "serverFile">): ServerNote | undefined {
  try {
    if (statSync(serverFile).size > NOTE_BYTES_MAX) return undefined;
    const read: unknown = JSON.parse(readFileSync(serverFile, "utf8"));
    return isElsewhere(read, dirname(serverFile)) ? undefined : noteOf(read);
  } catch {
    // Not there, not readable, or not ours: no server is named.
    return undefined;
  }
}

/** Versions before this one wrote no identity. */
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

/** Whole or not at all, and for nobody else's eyes. */
export function writeServer({ dir, serverFile }: DataDir, note: ServerNote): void {
  const draft = join(dir, `.server.${process.pid}`);
  // Left by somebody who had our number, and died.
  rmSync(draft, { force: true });
  const text = JSON.stringify({ ...note, directory: identityOf(dir) }, undefined, 2);
  writeFileSync(draft, `${text}\n`, { mode: 0o600, flag: "wx" });
  renameSync(draft, serverFile);
}

/** Takes the note away, if it is still this server's own. */
export function removeServer(home: DataDir, { pid, startedAt }: ServerNote): void {
  const found = readServer(home);
  if (found?.pid === pid && found.startedAt === startedAt) rmSync(home.serverFile, { force: true });
}
