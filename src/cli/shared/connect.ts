// How a command comes to the Belay it speaks to: a server that was named, the running server of this home, or a store
// that no server has open.
import { readFileSync, statSync } from "node:fs";
import { get as askPlain } from "node:http";
import { get as askTls } from "node:https";
import { ControlError } from "../../core/errors.ts";
import type { BelayControl } from "../../ports/control.ts";
import { type DataDir, type Environment, openDataDir, readServer, type ServerNote } from "../../sdk/data-dir.ts";
import { systemClock } from "../../system/system-clock.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import { mustBeServerOf } from "./server-identity.ts";
import type { Holder } from "./store-holder.ts";

export interface Connection {
  readonly control: BelayControl;
  /** `store`: nobody is at work there, so nothing happens until a server opens it. */
  readonly kind: "server" | "store";
  /** Who answered, for people. */
  readonly where: string;
  close(): Promise<void>;
}

/** After this long without an answer people are told that the server is waited for. */
const ASK_MS_MAX = 3_000;

/** A token is 43 characters. Whatever is much larger is not a file with a token. */
const TOKEN_BYTES_MAX = 4_096;

/** How long a server that was there may be gone before a command gives up. */
const PATIENCE_MS = 10_000;

export interface Patience {
  /** How long a server that was there may be silent. `Infinity`: until it answers, or the user leaves. */
  readonly patienceMs?: number;
  /** How long it may refuse connections, as one that is restarted does. Default: `patienceMs`. */
  readonly absentMs?: number;
  /** Aborts connecting. */
  readonly signal?: AbortSignal;
}

/** For stops: one that was typed is kept and sent again until the server has answered it, or is gone. */
export const UNTIL_ANSWERED: Patience = { patienceMs: Number.POSITIVE_INFINITY, absentMs: PATIENCE_MS };

/** Opens the way that the options name. Rejects with a ControlError that says what to do. */
export async function openControl(
  options: ConnectionOptions,
  env: Environment = process.env,
  { patienceMs = PATIENCE_MS, absentMs = patienceMs, signal }: Patience = {},
): Promise<Connection> {
  if (options.store !== undefined) return throughStore(options.store);
  const home = openDataDir({ home: options.home, env });
  const place = await findServer(options, home);
  const token = tokenOf(options, env, place);
  const { connectBelay } = await import("../../client/belay-client.ts");
  const aborted = signal === undefined ? {} : { signal };
  const rest = { patienceMs, absentMs, ...aborted, ...(token === undefined ? {} : { token }) };
  if (place.url === undefined) return server(await connectBelay({ socket: place.socket, ...rest }), place.socket);
  if (token !== undefined && place.url.protocol === "http:" && !isLoopback(place.url)) throw inTheOpen(place.url);
  return server(await connectBelay({ url: place.url.href, ...rest }), place.url.origin);
}

type ServerPlace =
  | { readonly socket: string; readonly url?: undefined; readonly home?: undefined }
  /** `home`: that whose token may be shown to it. */
  | { readonly socket?: undefined; readonly url: URL; readonly home: DataDir | undefined };

/** The server that is meant, if there is one. One that does not answer in time is there all the same: it is busy. */
async function findServer({ socket, url }: ConnectionOptions, home: DataDir): Promise<ServerPlace> {
  if (socket !== undefined) {
    if (!(await isThere({ socket }))) throw noServerAt(socket);
    return { socket };
  }
  if (url !== undefined) {
    const parsed = urlOf(url);
    if (!(await isThere({ url }))) throw noServerAt(parsed.origin);
    return { url: parsed, home: isLoopback(parsed) ? home : undefined };
  }
  return inDataDirectory(home);
}

/** How long the holder of a data directory may be without a socket: it is starting, or it has none. */
const STARTING_MS_MAX = 3_000;
const STARTING_LOOK_MS = 50;

/**
 * The server of a data directory, by every way that is known: its sockets first, then the address of its note, which
 * counts only if that process holds the lock. While the lock is held, a server that starts is waited for.
 */
async function inDataDirectory(home: DataDir): Promise<ServerPlace> {
  const { holderOf } = await import("./store-holder.ts");
  for (let waitedMs = 0; ; waitedMs += STARTING_LOOK_MS) {
    const note = readServer(home);
    let busy: ServerPlace | undefined;
    const holder = holderOf(home.storeFile);
    for (const place of waysTo(home, note, holder)) {
      const presence = await presenceOf(addressOf(place));
      if (presence === "answers") return place;
      if (presence === "absent" || busy !== undefined) continue;
      busy = place;
      sayWaiting(place.socket ?? place.url.origin);
    }
    if (busy !== undefined) return busy;
    if (holder === undefined) throw note === undefined ? notRunning(home) : notAnswering(home, note);
    if (waitedMs >= STARTING_MS_MAX) throw unreachable(home, holder);
    await new Promise<void>((resolve) => void systemClock.after(STARTING_LOOK_MS, resolve));
  }
}

/** `holder` undefined: nobody has the lock, and a note that is left may name an address that is another's by now. */
function waysTo(home: DataDir, note: ServerNote | undefined, holder: Holder | undefined): readonly ServerPlace[] {
  const sockets = [...new Set([note?.socket, home.socketFile])].filter((path) => path !== undefined);
  const ways: readonly ServerPlace[] = sockets.map((socket) => ({ socket }));
  const url = note?.url === undefined ? null : URL.parse(note.url);
  const isHolders = holder !== undefined && (holder.pid === undefined || holder.pid === note?.pid);
  return url !== null && isHolders ? [...ways, { url, home }] : ways;
}

const addressOf = ({ socket, url }: ServerPlace): Pick<ServerNote, "socket" | "url"> => ({
  ...(socket === undefined ? {} : { socket }),
  ...(url === undefined ? {} : { url: url.href }),
});

/** Opens, works, and closes, whatever becomes of the work. */
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

const server = (control: BelayControl, address: string): Connection => ({
  control,
  kind: "server",
  where: `the server at ${address}`,
  close: async () => void (await control.close()),
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
 * The token that was named, else that of the environment, else that of the home. The last one is only for the server
 * of that home, and that of the environment only for an address that was typed. A socket wants none: who may open it
 * may ask, and a token that somebody keeps in the environment for another server would only be refused.
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

/** Whether a server is there, by asking: a process id may be another's by now. Says if it has to be waited for. */
async function isThere(place: Pick<ServerNote, "socket" | "url">): Promise<boolean> {
  const presence = await presenceOf(place);
  if (presence === "silent") sayWaiting(place.socket ?? place.url);
  return presence !== "absent";
}

function sayWaiting(address: string | undefined): void {
  process.stderr.write(`belay: The server at ${address} does not answer yet. Waiting for it; Ctrl-C leaves.\n`);
}

/** `silent`: it accepts connections, or would if it were less busy. */
type Presence = "answers" | "silent" | "absent";

function presenceOf({ socket, url }: Pick<ServerNote, "socket" | "url">): Promise<Presence> {
  if (socket !== undefined) return presence((heard) => askPlain({ socketPath: socket, ...HEALTH }, heard));
  const to = url === undefined ? undefined : URL.parse(url);
  if (to === undefined || to === null) return Promise.resolve("absent");
  const { protocol, hostname, port } = to;
  const where = { hostname: hostname.replaceAll(/[[\]]/g, ""), port, ...HEALTH };
  if (protocol === "http:") return presence((heard) => askPlain({ ...where, headers: { host: to.host } }, heard));
  // Nothing is told and nothing believed here, so that a certificate of one's own will do.
  return presence((heard) => askTls({ ...where, rejectUnauthorized: false }, heard));
}

const HEALTH = { path: "/healthz", timeout: ASK_MS_MAX, agent: false, headers: { host: "localhost" } } as const;

/** A queue of connections that is full, or a connection that is cut: only a server that is there has those. */
const BUSY: ReadonlySet<string | undefined> = new Set(["EAGAIN", "ECONNRESET", "EPIPE"]);

function presence(
  ask: (heard: (answer: { resume(): unknown }) => void) => ReturnType<typeof askPlain>,
): Promise<Presence> {
  return new Promise((resolve) => {
    const request = ask((answer) => {
      answer.resume();
      resolve("answers");
    });
    request.on("timeout", () => {
      resolve("silent");
      request.destroy();
    });
    request.on("error", ({ code }: NodeJS.ErrnoException) => resolve(BUSY.has(code) ? "silent" : "absent"));
  });
}

const START =
  "Start one with `belay serve` in another shell; or name one with --url or --socket, or a file with --store.";

/** Nothing listens there: not a server that is merely busy. */
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

const notAnswering = ({ serverFile }: DataDir, { pid }: ServerNote): NoServer =>
  new NoServer(
    `The server that was started here as process ${pid} does not answer.`,
    `It has probably been killed, and has left ${serverFile}. ${START}`,
  );

/** A program that opened the store through the library serves no socket, unless it asked for one. */
function unreachable({ dir }: DataDir, { pid }: Holder): NoServer {
  const who = pid === undefined ? "a process" : `process ${pid}`;
  const end = pid === undefined ? "end that program" : `kill -INT ${pid}`;
  return new NoServer(
    `The data directory ${dir} is in use by ${who}, which answers neither on its socket nor at its address.`,
    `Its work is stopped where it runs: Ctrl-C there, or ${end}.`,
  );
}

const inTheOpen = ({ origin }: URL): ControlError =>
  new ControlError("invalid", `The token is not sent to ${origin}: everybody on the way could read it.`, {
    hint: "Use https, or bring the server's socket or port to this machine with ssh -L.",
  });
