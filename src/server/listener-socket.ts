// The file of a private socket: who may connect is who may enter its directory.
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, isAbsolute } from "node:path";
import { ControlError } from "../core/control-error.ts";
import type { Clock } from "../ports.ts";
import { SOCKET_PATH_BYTES_MAX, SOCKET_PROBE_MS } from "./limits.ts";
import { mustBeOurs, openPrivateDirectory, refused } from "./private-directory.ts";

/** Whether a socket can be there at all. Systems cut longer ones off, or say something nobody understands. */
export const fitsSocket = (path: string): boolean =>
  isAbsolute(path) && !path.includes("\0") && Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;

/**
 * Makes room for a socket at `path`. The directory is closed to others before anything is in it, so there is no moment
 * at which they could connect. What a dead server has left is removed; whatever is anything else, or alive, stays.
 */
export async function prepareSocket(path: string, clock: Clock): Promise<void> {
  if (!fitsSocket(path)) {
    const message = `A socket needs an absolute path of at most ${SOCKET_PATH_BYTES_MAX} bytes; this is none: ${path}`;
    throw new ControlError("invalid", message, { hint: "Use a shorter directory, like the one for run-time files." });
  }
  openPrivateDirectory(dirname(path));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw refused(`${path} is something else than a socket.`, "Name another path for the socket.");
  mustBeOurs(path, found);
  if (await answers(path, clock)) {
    throw new ControlError("conflict", `Another server is listening on ${path}.`, {
      hint: "Stop it, or use another path. `belay status` asks it how it is.",
    });
  }
  // While we asked, somebody else may have removed it and be listening there by now.
  if (lstatSync(path, { throwIfNoEntry: false })?.ino === found.ino) rmSync(path);
}

/** The directory keeps others out already; the mode says so where people look. */
export const closeSocketFile = (path: string): void => chmodSync(path, 0o600);

/** Only a refusal says that nobody is there. One who is too busy to answer is somebody. */
function answers(path: string, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const done = (answered: boolean): void => {
      takeBack();
      socket.destroy();
      resolve(answered);
    };
    const takeBack = clock.after(SOCKET_PROBE_MS, () => done(true));
    socket.on("connect", () => done(true));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      done(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
    );
  });
}
