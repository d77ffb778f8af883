// Whether a server is there, found out by a request that needs no token.
import { get as askPlain } from "node:http";
import { get as askTls } from "node:https";
import type { ServerNote } from "../../sdk/data-dir.ts";
import { systemClock } from "../../system/system-clock.ts";

export type ServerAddress = Pick<ServerNote, "socket" | "url">;

/** After this long without an answer a server is silent, and a message says that it is waited for. */
export const SILENT_MS = 3_000;

/** `silent`: it accepts connections, or would if it were less busy. */
export type Presence = "answers" | "silent" | "absent";

export function presenceOf({ socket, url }: ServerAddress): Promise<Presence> {
  if (socket !== undefined) return presence((heard) => askPlain({ socketPath: socket, ...HEALTH }, heard));
  const to = url === undefined ? undefined : URL.parse(url);
  if (to === undefined || to === null) return Promise.resolve("absent");
  const { protocol, hostname, port } = to;
  const where = { hostname: hostname.replaceAll(/[[\]]/g, ""), port, ...HEALTH };
  if (protocol === "http:") return presence((heard) => askPlain({ ...where, headers: { host: to.host } }, heard));
  // Nothing is told and nothing believed here, so that a certificate of one's own will do.
  return presence((heard) => askTls({ ...where, rejectUnauthorized: false }, heard));
}

const HEALTH = { path: "/healthz", timeout: SILENT_MS, agent: false, headers: { host: "localhost" } } as const;

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

/** Calls once if the server is silent at some moment, until it is disposed of. Keeps no program alive. */
export function onSilence(address: ServerAddress, call: () => void): () => void {
  let dispose = (): void => {};
  let isOver = false;
  const look = async (): Promise<void> => {
    const presence = await presenceOf(address);
    if (isOver) return;
    if (presence === "silent") call();
    else wait();
  };
  const wait = (): void => {
    dispose = systemClock.after(SILENT_MS, () => void look(), "idle");
  };
  wait();
  return () => {
    isOver = true;
    dispose();
  };
}
