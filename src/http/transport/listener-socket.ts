// The file of a private socket: who may connect is who may enter its directory.
import { chmodSync, existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync, type Stats } from "node:fs";
import { createConnection } from "node:net";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { mustBeOurs, openPrivateDirectory, refused } from "../auth/private-directory.ts";
import { SOCKET_PATH_BYTES_MAX, SOCKET_PROBE_MS } from "../limits.ts";

/** Whether a socket can be there at all. Systems cut longer ones off, or say something nobody understands. */
export const fitsSocket = (path: string): boolean =>
  isAbsolute(path) && !path.includes("\0") && Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;

/** The name of a socket in a directory of its own, before it is put in its place. */
const DRAFT = "s";

/** A socket that is bound under a name of its own, and then put in its place. */
export interface SocketFile {
  /** Where to bind. Nobody looks for it there. */
  readonly draft: string;
  /** Puts it in its place, whatever a dead server has left there. */
  place(): void;
  /** Whether it is still there, and no other server's. */
  isInPlace(): boolean;
  /** Takes it away, unless another server has put its own there since. */
  remove(): void;
}

/**
 * Makes room for a socket at `path`. The directory is closed to others before anything is in it, so there is no moment
 * at which they could connect. What a dead server has left is replaced; whatever is anything else, or alive, stays.
 */
export async function prepareSocket(path: string, clock: Clock): Promise<SocketFile> {
  if (!fitsSocket(path) || !fitsSocket(join(dirname(path), ".XXXXXX", DRAFT))) {
    const message = `A socket needs an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes; this is none: ${path}`;
    throw new ControlError("invalid", message, { hint: "Use a shorter directory, like the one for run-time files." });
  }
  openPrivateDirectory(dirname(path));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined) await requireDead(path, found, clock);
  // Not `join()`: it would take the dot for the directory itself, and the draft would lie beside it.
  const aside = mkdtempSync(`${dirname(path)}/.`);
  const draft = join(aside, DRAFT);
  let own: number | undefined;
  const isInPlace = (): boolean => own !== undefined && lstatSync(path, { throwIfNoEntry: false })?.ino === own;
  return {
    draft,
    isInPlace,
    place: () => {
      // The directory keeps others out already; the mode says so where people look.
      chmodSync(draft, 0o600);
      own = lstatSync(draft).ino;
      // Not removed and made again: in between, another server's fresh socket could be taken for the old one.
      renameSync(draft, path);
      rmSync(aside, { recursive: true, force: true });
    },
    remove: () => {
      rmSync(aside, { recursive: true, force: true });
      if (isInPlace()) rmSync(path, { force: true });
      // Once: the file of the next server may get the same number.
      own = undefined;
    },
  };
}

/** What no command may reach: with its directory, unless that has other files. A file that is replaced shows again. */
export function socketPaths(path: string): readonly string[] {
  const directory = dirname(path);
  const isOwn = !existsSync(directory) || readdirSync(directory).every((name) => name === basename(path));
  return isOwn ? [directory] : [path];
}

async function requireDead(path: string, found: Stats, clock: Clock): Promise<void> {
  if (!found.isSocket()) throw refused(`${path} is something else than a socket.`, "Name another path for the socket.");
  mustBeOurs(path, found);
  if (!(await answers(path, clock))) return;
  throw new ControlError("conflict", `Another server is listening on ${path}.`, {
    hint: "Stop it, or use another path. `belay status` asks it how it is.",
  });
}

/** Only a refusal says that nobody is there. One who is too busy to answer is somebody. */
function answers(path: string, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const done = (answered: boolean): void => {
      dispose();
      socket.destroy();
      resolve(answered);
    };
    const dispose = clock.after(SOCKET_PROBE_MS, () => done(true));
    socket.on("connect", () => done(true));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      done(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
    );
  });
}
