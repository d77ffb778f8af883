// How many connections a listener takes: as many as were asked for, and where few files may be open as many as leave
// room for the other listener, for commands and for the store. Each connection is an open file.
//
// Invariant: the connections of a port and of a private socket, those for stops included, never use up the files that
// the rest of the program needs. So no number of clients on one of them keeps a stop from the other.
import { openFilesMax } from "../../system/open-files.ts";
import { CONNECTIONS_FOR_STOPS, CONNECTIONS_MAX } from "../limits.ts";

/** Open in a server without clients, needed by one command, and kept free for the store and what is loaded late. */
const FILES_OF_OTHERS = 70;

/** Of the connections that there is room for, the private socket has one in so many. */
const SOCKET_SHARE = 4;

/** Of the connections of a listener where few files may be open, one in so many is for stops alone. */
const STOPS_SHARE = 8;

/** However few files may be open. */
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
