// How a command comes to the Belay it speaks to: a server that was named, the running server of this home, or a store
// that no server has open.
import { readFileSync, statSync } from "node:fs";
import { get as askPlain } from "node:http";
import { get as askTls } from "node:https";
import type { BelayControl } from "../control.ts";
import { ControlError } from "../core/control-error.ts";
import type { DoorOptions } from "./door-options.ts";
import { type Environment, type Home, openHome, readServer, type ServerNote } from "./home.ts";

export interface Door {
  readonly control: BelayControl;
  /** `store`: nobody is at work there, so nothing happens until a server opens it. */
  readonly kind: "server" | "store";
  /** Who answered, for people. */
  readonly where: string;
  close(): Promise<void>;
}

/** How long a server may take to say that it is there. A live one answers at once; a busy machine is slower. */
const ASK_MS_MAX = 3_000;

/** A token is 43 characters. Whatever is much larger is not a file with a token. */
const TOKEN_BYTES_MAX = 4_096;

/** How long a server that was there may be gone before a command gives up. */
const PATIENCE_MS = 10_000;

export interface Patience {
  readonly patienceMs?: number;
}

/** Opens the way that the options name. Rejects with a ControlError that says what to do. */
export async function openControl(
  options: DoorOptions,
  env: Environment = process.env,
  { patienceMs = PATIENCE_MS }: Patience = {},
): Promise<Door> {
  if (options.store !== undefined) return throughStore(options.store);
  const home = openHome({ home: options.home, env });
  const place = await findServer(options, home);
  const token = tokenOf(options, env, place);
  const { connectBelay } = await import("../client/belay-client.ts");
  const rest = { patienceMs, ...(token === undefined ? {} : { token }) };
  if (place.url === undefined) return server(await connectBelay({ socket: place.socket, ...rest }), place.socket);
  if (token !== undefined && place.url.protocol === "http:" && !isLoopback(place.url)) throw inTheOpen(place.url);
  return server(await connectBelay({ url: place.url.href, ...rest }), place.url.origin);
}

type ServerPlace =
  | { readonly socket: string; readonly url?: undefined; readonly home?: undefined }
  /** `home`: that whose token may be shown to it. */
  | { readonly url: URL; readonly home: Home | undefined };

/** The server that is meant, if somebody answers there. */
async function findServer({ socket, url }: DoorOptions, home: Home): Promise<ServerPlace> {
  if (socket !== undefined) {
    if (!(await isServing({ socket }))) throw nobodyAt(socket);
    return { socket };
  }
  if (url !== undefined) {
    const parsed = urlOf(url);
    if (!(await isServing({ url }))) throw nobodyAt(parsed.origin);
    return { url: parsed, home: isLoopback(parsed) ? home : undefined };
  }
  const note = readServer(home);
  if (note === undefined) throw await aloneAt(home, notRunning(home));
  if (!(await isServing(note))) throw await aloneAt(home, notAnswering(home, note));
  if (note.socket !== undefined) return { socket: note.socket };
  return { url: urlOf(note.url ?? ""), home };
}

/** Opens, works, and closes, whatever becomes of the work. */
export async function withControl<T>(
  options: DoorOptions,
  work: (door: Door) => Promise<T>,
  patience: Patience = {},
): Promise<T> {
  const door = await openControl(options, process.env, patience);
  try {
    return await work(door);
  } finally {
    await door.close();
  }
}

async function throughStore(file: string): Promise<Door> {
  const { openRestingStore } = await import("./resting-store.ts");
  const control = await openRestingStore(file);
  const where = `${file}, which no server has open`;
  return { control, kind: "store", where, close: async () => void (await control.close()) };
}

const server = (control: BelayControl, address: string): Door => ({
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
 * The token that was named, else that of the environment, else that of the home. The last one is only for servers of
 * this machine: it is not shown to whoever is at some address that was typed. A socket wants none: who may open it may
 * ask, and a token that somebody keeps in the environment for another server would only be refused.
 */
function tokenOf(options: DoorOptions, env: Environment, { url, home }: ServerPlace): string | undefined {
  if (options.tokenFile !== undefined) return readToken(options.tokenFile);
  if (url === undefined) return undefined;
  const given = env.BELAY_TOKEN?.trim();
  if (given !== undefined && given !== "") return given;
  if (home === undefined || statSync(home.tokenFile, { throwIfNoEntry: false }) === undefined) return undefined;
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

/** Whether somebody answers there. By asking: a process id may be somebody else's by now. */
function isServing({ socket, url }: Pick<ServerNote, "socket" | "url">): Promise<boolean> {
  if (socket !== undefined) return answers((heard) => askPlain({ socketPath: socket, ...HEALTH }, heard));
  const to = url === undefined ? undefined : URL.parse(url);
  if (to === undefined || to === null) return Promise.resolve(false);
  const { protocol, hostname, port } = to;
  const where = { hostname: hostname.replaceAll(/[[\]]/g, ""), port, ...HEALTH };
  if (protocol === "http:") return answers((heard) => askPlain({ ...where, headers: { host: to.host } }, heard));
  // Nothing is told and nothing believed here, so that a certificate of one's own will do.
  return answers((heard) => askTls({ ...where, rejectUnauthorized: false }, heard));
}

const HEALTH = { path: "/healthz", timeout: ASK_MS_MAX, agent: false, headers: { host: "localhost" } } as const;

type Asked = ReturnType<typeof askPlain>;

function answers(ask: (heard: (answer: { resume(): unknown }) => void) => Asked): Promise<boolean> {
  return new Promise((resolve) => {
    const request = ask((answer) => {
      answer.resume();
      resolve(true);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
    request.on("close", () => resolve(false));
  });
}

const START =
  "Start one with `belay serve` in another shell; or name one with --url or --socket, or a file with --store.";

const nobodyAt = (address: string): ControlError =>
  new ControlError("disconnected", `No server answers at ${address}.`, {
    hint: "Check the address, and that the server runs: `belay serve` starts one.",
  });

const notRunning = ({ dir }: Home): ControlError =>
  new ControlError("disconnected", `No server is running for the home ${dir}.`, { hint: START });

const notAnswering = ({ serverFile }: Home, { pid }: ServerNote): ControlError =>
  new ControlError("disconnected", `The server that was started here as process ${pid} does not answer.`, {
    hint: `It has probably been killed, and has left ${serverFile}. ${START}`,
  });

/** A `belay run` without a server is reached by nobody else, and whoever looks for it should be told where it is. */
async function aloneAt({ storeFile }: Home, error: ControlError): Promise<ControlError> {
  const { holderOf } = await import("./store-holder.ts");
  const pid = holderOf(storeFile);
  if (pid === undefined) return error;
  const message = `${error.message} But process ${pid} works alone on its store, as \`belay run\` does without one.`;
  return new ControlError("disconnected", message, {
    hint:
      `What goes on there is stopped there: Ctrl-C, or kill -INT ${pid}. ` +
      "To see and stop runs from any shell, start `belay serve` once it has ended.",
  });
}

const inTheOpen = ({ origin }: URL): ControlError =>
  new ControlError("invalid", `The token is not sent to ${origin}: everybody on the way could read it.`, {
    hint: "Use https, or bring the server's socket or port to this machine with ssh -L.",
  });
