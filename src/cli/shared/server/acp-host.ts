// Makes this program the host of a data directory: for an editor, a bridge, or a run without a server.
//
// Invariants
// 1. One host at a time: the program that holds the lock of the store.
// 2. What was opened is closed, even if a later step of opening fails.
import { ControlError } from "../../../core/errors.ts";
import { SHUTDOWN_MS } from "../../../core/limits.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Clock } from "../../../ports/clock.ts";
import { type Announcement, announce } from "../../../sdk/announcement.ts";
import type { DataDir, HostKind } from "../../../sdk/data-dir.ts";
import { version } from "../../../system/version.ts";
import type { Log } from "../../../telemetry/log.ts";
import type { ComposedServer } from "./compose-server.ts";

/** Limits of a host: connections of editors share one token name, and each follows all of its sessions. */
export const HOST_LIMITS = { streamsPerToken: 4_096, changesPerSecond: 200 } as const;

export interface HostOptions {
  readonly home: DataDir;
  /** A digest of the options of the requested agent. */
  readonly agentDigest: string;
  readonly kind: HostKind;
  /** `any`: a host with another agent is accepted, because no agent was requested. `none`: only this program. */
  readonly joins?: "any" | "none";
  /** Composes the server in this program. */
  readonly open: () => Promise<OpenedServer>;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly clock: Clock;
}

export interface OpenedServer {
  readonly server: ComposedServer;
  /** The store file, or `:memory:`. */
  readonly store: string;
}

/** The server, while this program is the host. */
export interface Hosted {
  readonly server: ComposedServer;
  readonly announcement: Announcement;
}

/** Opens the server in this program. Returns the error that names the holder if another program has the store. */
export async function host(options: HostOptions): Promise<Hosted | ControlError> {
  try {
    return await announced(await options.open(), options);
  } catch (error) {
    if (error instanceof ControlError && error.code === "store_locked") return error;
    throw error;
  }
}

/** Announces the server in `server.json`; closes it if that fails. */
async function announced(opened: OpenedServer, options: HostOptions): Promise<Hosted> {
  const { server } = opened;
  try {
    return { server, announcement: announceServer(opened, options) };
  } catch (error) {
    await server.close({ mode: "park", limitMs: 0 });
    throw error;
  }
}

function announceServer(
  { server, store }: OpenedServer,
  { home, agentDigest, kind, clock, log }: HostOptions,
): Announcement {
  const { listeners, lock } = server;
  const note = {
    ...{ pid: process.pid, socket: listeners.socket, startedAt: clock.now(), version: version(), store },
    ...{ host: kind, agent: agentDigest },
  };
  // The announcement has already logged that another program has the directory.
  const onLost = (): void => void server.close({ mode: "park", limitMs: SHUTDOWN_MS }).catch(() => {});
  return announce({
    home,
    note,
    lock,
    sockets: listeners,
    clock,
    onLost,
    warn: (text, about) => log.warn(text, about),
  });
}

/** Hides the server, then closes it: a program that connects from now on waits for the lock, and resumes the runs. */
export async function leave(hosted: Hosted, end: HostEnd, log: HostOptions["log"]): Promise<readonly SessionId[]> {
  const { server, announcement } = hosted;
  announcement.hide();
  try {
    const unfinished = await server.close(end);
    if (unfinished.length > 0)
      log.warn("some sessions did not come to rest in time; the next host recovers them", { unfinished });
    return unfinished;
  } catch (error) {
    log.error("closing the store failed", { error });
    return [];
  } finally {
    announcement.close();
  }
}

export type HostEnd = Parameters<ComposedServer["close"]>[0];

const NAMES: Readonly<Record<string, string>> = {
  editor: "`belay acp` of an editor",
  run: "a `belay run`",
  bridge: "a `belay bridge`",
} satisfies Record<HostKind, string>;

/** The name of a host for messages. A newer version may have written a kind that is unknown here. */
export const hostName = (kind: HostKind): string => NAMES[kind] ?? "a program of Belay";
