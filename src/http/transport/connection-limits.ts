// The connection limits of a listener. Each connection is an open file, so a low limit on open files lowers them: the
// other listener, commands and the store need files, too.
//
// Invariant: the connections of a port and of a private socket, including those reserved for stops, leave the files
// that the rest of the program needs. So no number of clients on one listener can block a stop on the other.
import { openFilesMax } from "../../system/open-files.ts";
import { CONNECTIONS_FOR_STOPS, CONNECTIONS_MAX } from "../limits.ts";

/** Files of a server without clients, files for one command, and a reserve for the store and lazily loaded modules. */
const FILES_OF_OTHERS = 70;

/** The private socket gets one in so many of the available connections. */
const SOCKET_SHARE = 4;

/** If few files can be open, one in so many connections of a listener is reserved for stops. */
const STOPS_SHARE = 8;

/** The minimum, however few files can be open. */
const STOPS_MIN = 2;
const CONNECTIONS_MIN = 4;

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsForStops: number;
}

export function connectionLimits(
  via: "tcp" | "socket",
  wanted = CONNECTIONS_MAX,
  filesMax = openFilesMax(),
): ConnectionLimits {
  if (filesMax === undefined) return { connectionsMax: wanted, connectionsForStops: CONNECTIONS_FOR_STOPS };
  const room = Math.max(0, filesMax - FILES_OF_OTHERS);
  const ofSocket = Math.floor(room / SOCKET_SHARE);
  const share = via === "socket" ? ofSocket : room - ofSocket;
  const forStops = Math.min(CONNECTIONS_FOR_STOPS, Math.max(STOPS_MIN, Math.floor(share / STOPS_SHARE)));
  return {
    connectionsMax: Math.min(wanted, Math.max(CONNECTIONS_MIN, share - forStops)),
    connectionsForStops: forStops,
  };
}
