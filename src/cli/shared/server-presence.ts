// Checks whether a server is running, by a request that needs no token.
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";
import type { ServerNote } from "../../sdk/data-dir.ts";
import { systemClock } from "../../system/system-clock.ts";

export type ServerAddress = Pick<ServerNote, "socket" | "url">;

/** A server is silent after this long without an answer; a message then says that the command waits for it. */
export const SILENT_MS = 3_000;

/** `silent`: a server is running but too busy to answer. */
export type Presence = "answers" | "silent" | "absent";

export function presenceOf({ socket, url }: ServerAddress): Promise<Presence> {
  if (socket !== undefined) return presence((onAnswer) => getHttp({ socketPath: socket, ...HEALTH }, onAnswer));
  const to = url === undefined ? undefined : URL.parse(url);
  if (to === undefined || to === null) return Promise.resolve("absent");
  const { protocol, hostname, port } = to;
  const where = { hostname: hostname.replaceAll(/[[\]]/g, ""), port, ...HEALTH };
  if (protocol === "http:") return presence((onAnswer) => getHttp({ ...where, headers: { host: to.host } }, onAnswer));
  // No secret is sent and the answer is not trusted, so that a self-signed certificate is accepted.
  return presence((onAnswer) => getHttps({ ...where, rejectUnauthorized: false }, onAnswer));
}

const HEALTH = { path: "/healthz", timeout: SILENT_MS, agent: false, headers: { host: "localhost" } } as const;

/** A full backlog or a cut connection: only a running server causes these errors. */
const BUSY: ReadonlySet<string | undefined> = new Set(["EAGAIN", "ECONNRESET", "EPIPE"]);

function presence(
  send: (onAnswer: (answer: { resume(): unknown }) => void) => ReturnType<typeof getHttp>,
): Promise<Presence> {
  return new Promise((resolve) => {
    const request = send((answer) => {
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

/** Polls a server until disposed, and calls back once if it is silent. Its timer keeps no program alive. */
export function onSilence(address: ServerAddress, call: () => void): () => void {
  let cancelTimer = (): void => {};
  let isOver = false;
  const poll = async (): Promise<void> => {
    const presence = await presenceOf(address);
    if (isOver) return;
    if (presence === "silent") call();
    else wait();
  };
  const wait = (): void => {
    cancelTimer = systemClock.after(SILENT_MS, () => void poll(), "idle");
  };
  wait();
  return () => {
    isOver = true;
    cancelTimer();
  };
}
