// Connects a command to a Belay: a server that was named, the running server of this data directory, the program that
// has a store open, or a store that no program has open.
import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ControlError } from "../../core/errors.ts";
import { isOpenToOthers } from "../../http/auth/private-directory.ts";
import type { BelayControl } from "../../ports/control.ts";
import {
  type DataDir,
  type Environment,
  openDataDir,
  readServer,
  type ServerNote,
  socketOfStore,
} from "../../sdk/data-dir.ts";
import { canonicalPath } from "../../store/sqlite/file/owner.ts";
import { systemClock } from "../../system/system-clock.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import { mustBeOwnSocket, mustBeServerOf } from "./server-identity.ts";
import { onSilence, presenceOf, type ServerAddress, SILENT_MS } from "./server-presence.ts";
import type { Holder } from "./store-holder.ts";

export interface Connection {
  readonly control: BelayControl;
  /** `store`: no worker drives it, so nothing happens until a server opens it. */
  readonly kind: "server" | "store";
  /** Where the connection leads, for messages. */
  readonly where: string;
  /** Whether the server is running, busy or not. */
  isThere?(): Promise<boolean>;
  close(): Promise<void>;
}

/** A token is 43 characters. A much larger file is not a token file. */
const TOKEN_BYTES_MAX = 4_096;

/** How long a server that was running may be unreachable before a command gives up. */
const PATIENCE_MS = 10_000;

export interface Patience {
  /** How long a running server may not answer. `Infinity`: until it answers, or the user presses Ctrl-C. */
  readonly patienceMs?: number;
  /** How long it may refuse connections, as during a restart. Default: `patienceMs`. */
  readonly absentMs?: number;
  /** Aborts connecting. */
  readonly signal?: AbortSignal;
}

/** For stops: the request is sent again until the server has answered it, or is gone. */
export const UNTIL_ANSWERED: Patience = { patienceMs: Number.POSITIVE_INFINITY, absentMs: PATIENCE_MS };

/**
 * Opens the connection that the options name. Rejects with a ControlError whose hint says what to do. Prints a message
 * if the server does not answer while connecting, or later while a command waits for it without a limit.
 */
export async function openControl(
  options: ConnectionOptions,
  env: Environment = process.env,
  { patienceMs = PATIENCE_MS, absentMs = patienceMs, signal }: Patience = {},
): Promise<Connection> {
  const home = openDataDir({ home: options.home, env });
  const found = await findServer(options, home, { patienceMs, signal });
  if (found === "none" && options.store !== undefined) return throughStore(options.store);
  if (found === "none") throw noServer(home);
  const { place, isSilent } = found;
  const token = tokenOf(options, env, place);
  if (token !== undefined && place.url?.protocol === "http:" && !isLoopback(place.url)) throw unencrypted(place.url);
  const { connectBelay } = await import("../../client/belay-client.ts");
  const target = place.url === undefined ? { socket: place.socket } : { url: place.url.href };
  const rest = { ...target, patienceMs, absentMs, ...(token === undefined ? {} : { token }) };
  const unwatch = isSilent ? () => {} : watchSilence(place);
  const isNamed = options.socket !== undefined || options.url !== undefined;
  const connecting = isNamed
    ? connectBelay({ ...rest, ...(signal === undefined ? {} : { signal }) })
    : unlessGone(options.store ?? home.storeFile, place, {
        signal,
        gone: () => (options.store === undefined ? notRunning(home) : noServerAt(nameOf(place))),
        connect: (unless) => connectBelay({ ...rest, signal: unless }),
      });
  const control = await connecting.finally(unwatch);
  return server(control, place, patienceMs === Number.POSITIVE_INFINITY ? watchSilence(place) : () => {});
}

type ServerPlace =
  | { readonly socket: string; readonly url?: undefined; readonly home?: undefined }
  /** `home`: the data directory whose token may be sent to it. */
  | { readonly socket?: undefined; readonly url: URL; readonly home: DataDir | undefined };

interface FoundServer {
  readonly place: ServerPlace;
  /** It did not answer in time, so it is busy. A message about this was printed. */
  readonly isSilent: boolean;
}

/** The server that the options name, if it runs. A server that does not answer in time counts as running but busy. */
async function findServer(
  options: ConnectionOptions,
  home: DataDir,
  limits: WaitLimits,
): Promise<FoundServer | "none"> {
  const place = namedPlace(options, home);
  if (options.store !== undefined) return findHolder(ofStore(options.store, home), limits);
  if (place === undefined) return findHolder(ofDirectory(home), limits);
  const presence = await presenceOf(addressOf(place));
  if (presence === "absent") throw noServerAt(nameOf(place));
  if (presence === "silent") printWaiting(nameOf(place));
  return { place, isSilent: presence === "silent" };
}

function namedPlace({ socket, url }: ConnectionOptions, home: DataDir): ServerPlace | undefined {
  if (socket !== undefined) return { socket };
  if (url === undefined) return undefined;
  const parsed = urlOf(url);
  return { url: parsed, home: isLoopback(parsed) ? home : undefined };
}

interface WaitLimits {
  readonly patienceMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A server whose socket file was removed creates it again within this time. */
const RESTORED_MS = 3_000;

/** A server of a data directory listens as soon as it has opened the store, on a busy machine within this time. */
const SOCKET_MS = 30_000;

/** The same for a named store. Usually a program that uses the library has it open, without a socket. */
const STORE_SOCKET_MS = 5_000;

const POLL_MS = 50;

/** How to find the process that holds a store. */
interface HolderSearch {
  /** The data directory whose sockets are tried. */
  readonly home: DataDir;
  readonly store: string;
  /** For messages. */
  readonly name: string;
  /** A holder that has had the store for longer than this has no socket, except one that is being created again. */
  readonly socketMs: number;
  readonly restoredMs: number;
  waysTo(holder: Holder | undefined): readonly ServerPlace[];
  unreachable(holder: Holder): ControlError;
}

/** A data directory: its sockets, then the address in `server.json`, which counts only if its process has the lock. */
const ofDirectory = (home: DataDir): HolderSearch => ({
  home,
  store: home.storeFile,
  name: home.dir,
  socketMs: SOCKET_MS,
  restoredMs: RESTORED_MS,
  waysTo: (holder) => waysTo(home, readServer(home), holder),
  unreachable: (holder) => unreachable(home, holder),
});

/** A named store: its own socket, or those of the data directory whose `server.json` names it. */
function ofStore(file: string, home: DataDir): HolderSearch {
  const store = canonicalPath(file);
  const homes = [openDataDir({ home: dirname(store), env: process.env }), home];
  return {
    home,
    store,
    name: file,
    socketMs: STORE_SOCKET_MS,
    restoredMs: 0,
    waysTo: (holder) => {
      if (holder === undefined) return [];
      const notes = homes.map((one) => [one, readServer(one)] as const);
      const named = notes.filter(([, note]) => note?.store !== undefined && canonicalPath(note.store) === store);
      return [...ownSocket(file), ...named.flatMap(([one, note]) => waysTo(one, note, holder))];
    },
    unreachable: (holder) => heldStore(file, holder),
  };
}

/** The socket is in the shared temporary directory, so another user could have created theirs there first. */
function ownSocket(file: string): readonly ServerPlace[] {
  const socket = socketOfStore(file);
  const found = lstatSync(dirname(socket), { throwIfNoEntry: false });
  const isOurs = found?.isDirectory() === true && found.uid === process.getuid?.() && !isOpenToOthers(found);
  return isOurs ? [{ socket }] : [];
}

/** Finds the program that has a store open, by every known address. Waits for one that has the lock and is starting. */
async function findHolder(search: HolderSearch, { patienceMs, signal }: WaitLimits): Promise<FoundServer | "none"> {
  const { holderOf } = await import("./store-holder.ts");
  const began = systemClock.elapsed();
  for (let isWaitReported = false; ; ) {
    let busy: ServerPlace | undefined;
    const holder = holderOf(search.store);
    for (const place of search.waysTo(holder)) {
      if (place.socket !== undefined) mustBeOwnSocket(search.home, place.socket);
      const presence = await presenceOf(addressOf(place));
      if (presence === "answers") return { place, isSilent: false };
      if (presence === "absent" || busy !== undefined) continue;
      busy = place;
      printWaiting(nameOf(place));
    }
    if (busy !== undefined) return { place: busy, isSilent: true };
    if (holder === undefined) return "none";
    const waitedMs = systemClock.elapsed() - began;
    const isOver = waitedMs >= patienceMs || (waitedMs >= search.restoredMs && isOlder(holder, search.socketMs));
    if (isOver) throw search.unreachable(holder);
    if (!isWaitReported && waitedMs >= SILENT_MS) {
      printWaiting(`${search.name}, ${whoHolds(holder)},`);
      isWaitReported = true;
    }
    signal?.throwIfAborted();
    await new Promise<void>((resolve) => void systemClock.after(POLL_MS, resolve));
  }
}

interface Connecting<T> {
  readonly signal: AbortSignal | undefined;
  readonly gone: () => ControlError;
  connect(signal: AbortSignal): Promise<T>;
}

/** Connects, and gives up as soon as the server has exited and no process holds the directory. */
async function unlessGone<T>(store: string, place: ServerPlace, { signal, gone, connect }: Connecting<T>): Promise<T> {
  const { holderOf } = await import("./store-holder.ts");
  const left = new AbortController();
  let isOver = false;
  const poll = async (): Promise<void> => {
    const isGone = holderOf(store) === undefined && (await presenceOf(addressOf(place))) === "absent";
    if (isGone) left.abort();
    else if (!isOver) cancelTimer = systemClock.after(POLL_MS, () => void poll());
  };
  let cancelTimer = systemClock.after(POLL_MS, () => void poll());
  try {
    return await connect(signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]));
  } catch (error) {
    throw left.signal.aborted ? gone() : error;
  } finally {
    isOver = true;
    cancelTimer();
  }
}

const isOlder = ({ since }: Holder, ms: number): boolean => since !== undefined && systemClock.now() - since >= ms;

const whoHolds = ({ pid }: Holder): string => (pid === undefined ? "a process" : `process ${pid}`);

/**
 * `holder` undefined: no process has the lock, and the `server.json` that was left behind may name an address or a
 * socket that another server uses now. The socket that is named after the directory is never another server's.
 */
function waysTo(home: DataDir, note: ServerNote | undefined, holder: Holder | undefined): readonly ServerPlace[] {
  const isHolders = holder !== undefined && (holder.pid === undefined || holder.pid === note?.pid);
  const noted = isHolders ? note?.socket : undefined;
  const sockets = [...new Set([noted, home.socketFile])].filter((path) => path !== undefined);
  const ways: readonly ServerPlace[] = sockets.map((socket) => ({ socket }));
  const url = note?.url === undefined ? null : URL.parse(note.url);
  return url !== null && isHolders ? [...ways, { url, home }] : ways;
}

const nameOf = ({ socket, url }: ServerPlace): string => socket ?? url.origin;

const addressOf = ({ socket, url }: ServerPlace): ServerAddress => ({
  ...(socket === undefined ? {} : { socket }),
  ...(url === undefined ? {} : { url: url.href }),
});

/** Connects, does the work, and closes the connection even if the work fails. */
export async function withControl<T>(
  options: ConnectionOptions,
  work: (connection: Connection) => Promise<T>,
  patience: Patience = {},
): Promise<T> {
  const connection = await openControl(options, process.env, patience);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

async function throughStore(file: string): Promise<Connection> {
  const { openOfflineStore } = await import("./offline-store.ts");
  const control = await openOfflineStore(file);
  const where = `${file}, which no server has open`;
  return { control, kind: "store", where, close: async () => void (await control.close()) };
}

const server = (control: BelayControl, place: ServerPlace, unwatch: () => void): Connection => ({
  control,
  kind: "server",
  where: `the server at ${nameOf(place)}`,
  isThere: async () => (await presenceOf(addressOf(place))) !== "absent",
  close: async () => {
    unwatch();
    await control.close();
  },
});

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:") && url.username === "") return url;
  throw new ControlError("invalid", "--url is not the address of a server.", {
    hint: "It looks like http://127.0.0.1:23529 or https://belay.example.com, without a name or a password in it.",
  });
}

const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);

/**
 * The token of --token-file, else that of the environment, else that of the data directory. The last one is sent only
 * to the server of that directory, and that of the environment only to an address that was typed. A socket needs none:
 * opening it is the authorisation, and a token in the environment that is for another server would only be refused.
 */
function tokenOf(options: ConnectionOptions, env: Environment, { url, home }: ServerPlace): string | undefined {
  if (options.tokenFile !== undefined) return readToken(options.tokenFile);
  if (url === undefined) return undefined;
  const given = env.BELAY_TOKEN?.trim();
  if (options.url !== undefined && given !== undefined && given !== "") return given;
  if (home === undefined || statSync(home.tokenFile, { throwIfNoEntry: false }) === undefined) return undefined;
  mustBeServerOf(home, url);
  return readToken(home.tokenFile);
}

function readToken(file: string): string {
  let token = "";
  try {
    if (statSync(file).size <= TOKEN_BYTES_MAX) token = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new ControlError("invalid", `The token file ${file} cannot be read.`, {
      hint: "Check its name, and that it is yours. `belay token` tells where tokens are, and adds some.",
      cause: error,
    });
  }
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new ControlError("invalid", `There is no token in ${file}.`, {
    hint: "A token file has one line, the token. `belay token add` makes one.",
  });
}

const watchSilence = (place: ServerPlace): (() => void) =>
  onSilence(addressOf(place), () => printWaiting(nameOf(place)));

function printWaiting(address: string): void {
  process.stderr.write(`belay: The server at ${address} does not answer yet. Waiting for it; Ctrl-C leaves.\n`);
}

const START =
  "Start one with `belay serve` in another shell; or name one with --url or --socket, or a file with --store.";

/** No process listens there. A server that is merely busy is not this error. */
export class NoServer extends ControlError {
  constructor(message: string, hint: string) {
    super("disconnected", message, { hint });
  }
}

const noServerAt = (address: string): NoServer =>
  new NoServer(
    `No server answers at ${address}.`,
    "Check the address, and that the server runs: `belay serve` starts one.",
  );

const notRunning = ({ dir }: DataDir): NoServer => new NoServer(`No server is running for the home ${dir}.`, START);

function noServer(home: DataDir): NoServer {
  const note = readServer(home);
  return note === undefined ? notRunning(home) : notAnswering(home, note);
}

const notAnswering = ({ serverFile }: DataDir, { pid }: ServerNote): NoServer =>
  new NoServer(
    `The server that was started here as process ${pid} does not answer.`,
    `It has probably been killed, and has left ${serverFile}. ${START}`,
  );

/** A program that opened the store through the library has no socket, unless it requested one. */
function unreachable({ dir }: DataDir, holder: Holder): NoServer {
  const { pid } = holder;
  const who = whoHolds(holder);
  const end = pid === undefined ? "end that program" : `kill -INT ${pid}`;
  return new NoServer(
    `The data directory ${dir} is in use by ${who}, which answers neither on its socket nor at its address.`,
    `Its work is stopped where it runs: Ctrl-C there, or ${end}.`,
  );
}

/** A program that uses the library answers no commands, unless it serves the directory of its store. */
function heldStore(file: string, holder: Holder): ControlError {
  const { pid } = holder;
  const end = pid === undefined ? "end that program" : `kill -INT ${pid}`;
  return new ControlError("store_locked", `${file} is in use by ${whoHolds(holder)}, which answers no commands.`, {
    hint: `Its work is stopped where it runs: Ctrl-C there, or ${end}. Or use another file.`,
  });
}

const unencrypted = ({ origin }: URL): ControlError =>
  new ControlError("invalid", `The token is not sent to ${origin}: it would travel unencrypted.`, {
    hint: "Use https, or bring the server's socket or port to this machine with ssh -L.",
  });
