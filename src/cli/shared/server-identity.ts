// Checks that the server of a data directory is the process that listens at an address or a socket. The token of the
// directory is sent to no other process: while the server is down, any program on this machine may listen there,
// including a command of an agent.
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { ControlError } from "../../core/errors.ts";
import { mustBeOurs, refused, refuseReplaceable } from "../../http/auth/private-directory.ts";
import { type DataDir, readServer } from "../../sdk/data-dir.ts";

/**
 * Throws unless the process named in the directory's `server.json` listens there and has a file of the directory open,
 * which no contained command can. Without /proc, the address must be the one in `server.json`.
 */
export function mustBeServerOf(home: DataDir, url: URL): void {
  const dir = realpathSync(home.dir);
  mustBeOurs(dir, lstatSync(dir));
  refuseReplaceable(home.dir);
  const note = readServer(home);
  const named = note?.url === undefined ? null : URL.parse(note.url);
  if (note === undefined || named === null || portOf(named) !== portOf(url)) throw notItsServer(home, url);
  const sockets = listeningOn(Number(portOf(url)));
  if (sockets === undefined) return;
  const files = filesOf(note.pid);
  const isListening = sockets.length > 0 && sockets.every((inode) => files.includes(`socket:[${inode}]`));
  if (!isListening || !files.some((file) => file.startsWith(`${dir}/`))) throw notItsServer(home, url);
}

/**
 * Throws if another user could have created this socket in place of the server's own. A socket file belongs to the user
 * whose program listens on it. A socket that does not exist or cannot be accessed is not checked: no connection to it
 * is possible either.
 */
export function mustBeOwnSocket({ dir }: DataDir, socket: string): void {
  const found = statsOf(socket);
  if (found === undefined) return;
  const directory = statsOf(dir);
  const owner = directory?.uid ?? process.getuid?.();
  if (found.uid !== owner) {
    const problem = `${socket} belongs to another user (uid ${found.uid}): the server of ${dir} does not listen there.`;
    throw refused(problem, "If you mean that server, name its socket: --socket PATH.");
  }
  if (owner !== process.getuid?.()) return;
  for (const path of directory === undefined ? [socket] : [dir, socket]) refuseReplaceable(path);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

const portOf = ({ port, protocol }: URL): string => port || (protocol === "https:" ? "443" : "80");

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
/** `st` of these tables. */
const LISTEN = "0A";

/** The inodes of the sockets that listen on a port, on any address. Undefined: this system has no /proc/net. */
function listeningOn(port: number): readonly string[] | undefined {
  const inodes: string[] = [];
  for (const table of TABLES) {
    const text = read(table);
    // A machine without IPv6 has no second table.
    if (text === undefined && table === TABLES[0]) return undefined;
    for (const line of (text ?? "").split("\n").slice(1)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      if (state === LISTEN && Number.parseInt(local.split(":")[1] ?? "", 16) === port) inodes.push(inode);
    }
  }
  return inodes;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function filesOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        // Closed meanwhile.
        return [];
      }
    });
  } catch {
    return [];
  }
}

const notItsServer = ({ dir }: DataDir, { origin }: URL): ControlError =>
  new ControlError("forbidden", `The token of ${dir} is not sent to ${origin}: its server does not listen there.`, {
    hint: "Name the address and its token: --url URL with --token-file FILE, or with BELAY_TOKEN.",
  });
