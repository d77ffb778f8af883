// The file of a private socket. Users who may enter its directory may connect.
import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync, type Stats } from "node:fs";
import { createConnection } from "node:net";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { mustBeOurs, openPrivateDirectory, refused } from "../auth/private-directory.ts";
import { SOCKET_PATH_BYTES_MAX, SOCKET_PROBE_MS } from "../limits.ts";

/** Whether the path is valid for a socket. Systems truncate longer paths, or fail with an unclear error. */
export const fitsSocket = (path: string): boolean =>
  isAbsolute(path) && !path.includes("\0") && Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;

/** The name of a socket in a temporary directory, before it is moved to its final path. */
const DRAFT = "s";

/** A socket file that is bound under a temporary path and then moved to its final path. */
export interface SocketFile {
  /** The temporary path to bind. */
  readonly draft: string;
  /** Moves the socket to its final path and replaces the file of a crashed server. */
  place(): void;
  /** Whether the file at the path is still this socket. */
  isInPlace(): boolean;
  /** Removes the file, unless another server has replaced it. */
  remove(): void;
}

/**
 * Prepares a socket at `path`. The directory is private before the socket exists, so there is no moment at which other
 * users could connect. The socket of a crashed server is replaced; a live socket, or any other file, is an error.
 */
export async function prepareSocket(path: string, clock: Clock): Promise<SocketFile> {
  if (!fitsSocket(path) || !fitsSocket(join(dirname(path), ".XXXXXX", DRAFT))) {
    const message = `A socket needs an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes (got ${path}).`;
    throw new ControlError("invalid", message, { hint: "Use a shorter path, for example in $XDG_RUNTIME_DIR." });
  }
  openPrivateDirectory(dirname(path));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined) await requireDead(path, found, clock);
  // Not `join()`: it would remove the dot, and the temporary directory would be beside this one.
  const temporary = mkdtempSync(`${dirname(path)}/.`);
  const draft = join(temporary, DRAFT);
  let own: number | undefined;
  const isInPlace = (): boolean => own !== undefined && lstatSync(path, { throwIfNoEntry: false })?.ino === own;
  return {
    draft,
    isInPlace,
    place: () => {
      // The directory is private already; the mode shows it to people who list the file.
      chmodSync(draft, 0o600);
      own = lstatSync(draft).ino;
      // An atomic rename: after an unlink, another server's new socket could be mistaken for the old one.
      renameSync(draft, path);
      rmSync(temporary, { recursive: true, force: true });
    },
    remove: () => {
      rmSync(temporary, { recursive: true, force: true });
      if (isInPlace()) rmSync(path, { force: true });
      // Only once: the file of the next server may get the same inode number.
      own = undefined;
    },
  };
}

/** The paths to hide from commands: the directory, or only the file if the directory has other files. */
export function socketPaths(path: string): readonly string[] {
  const directory = dirname(path);
  const isOwn = !existsSync(directory) || readdirSync(directory).every((name) => name === basename(path));
  return isOwn ? [directory] : [path];
}

async function requireDead(path: string, found: Stats, clock: Clock): Promise<void> {
  if (!found.isSocket()) throw refused(`${path} exists and is not a socket.`, "Use another path for the socket.");
  mustBeOurs(path, found);
  if (!(await answers(path, clock))) return;
  throw new ControlError("conflict", `Another server is listening on ${path}.`, {
    hint: "Stop it, or use another path. `belay status` shows its state.",
  });
}

/** Whether a server listens on the socket. A server that is too busy to answer counts. */
function answers(path: string, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const done = (answered: boolean): void => {
      cancelTimer();
      socket.destroy();
      resolve(answered);
    };
    const cancelTimer = clock.after(SOCKET_PROBE_MS, () => done(true));
    socket.on("connect", () => done(true));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      done(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
    );
  });
}
