// The host of a data directory for as long as its program has work: of an editor, a bridge, or a run without a server.
//
// Invariants
// 1. One host at a time: the program that holds the lock of the store.
// 2. What was opened is closed, also if what comes after it could not be.
import { ControlError } from "../../../core/errors.ts";
import { SHUTDOWN_MS } from "../../../core/limits.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Clock } from "../../../ports/clock.ts";
import { type Announcement, announce } from "../../../sdk/announcement.ts";
import type { DataDir, HostKind } from "../../../sdk/data-dir.ts";
import { version } from "../../../system/version.ts";
import type { Log } from "../../../telemetry/log.ts";
import type { ComposedServer } from "./compose-server.ts";

/** Connections of editors share one name, and each follows all of its sessions. */
export const CROWD = { streamsPerToken: 4_096, changesPerSecond: 200 } as const;

export interface HostOptions {
  readonly home: DataDir;
  /** A digest of the agent that is wanted. */
  readonly mark: string;
  readonly kind: HostKind;
  /** `any`: a host with another agent will do, because none was asked for. `none`: only this program. */
  readonly joins?: "any" | "none";
  /** Opens the house in this very program. */
  readonly open: () => Promise<OpenedServer>;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly clock: Clock;
}

export interface OpenedServer {
  readonly house: ComposedServer;
  /** Where everything is kept. */
  readonly store: string;
}

/** The house, as long as this program is its host. */
export interface Hosted {
  readonly house: ComposedServer;
  readonly announcement: Announcement;
}

/** Opens the house here, unless somebody has it: then the answer says who. */
export async function host(options: HostOptions): Promise<Hosted | ControlError> {
  try {
    return await announced(await options.open(), options);
  } catch (error) {
    if (error instanceof ControlError && error.code === "store_locked") return error;
    throw error;
  }
}

/** With the note by which it is found; or, if that cannot be written, closed again. */
async function announced(opened: OpenedServer, options: HostOptions): Promise<Hosted> {
  const { house } = opened;
  try {
    return { house, announcement: found(opened, options) };
  } catch (error) {
    await house.close({ mode: "park", limitMs: 0 });
    throw error;
  }
}

function found({ house, store }: OpenedServer, { home, mark, kind, clock, log }: HostOptions): Announcement {
  const { listeners, lock } = house;
  const note = {
    ...{ pid: process.pid, socket: listeners.socket, startedAt: clock.now(), version: version(), store },
    ...{ host: kind, agent: mark },
  };
  // That the directory is another program's was reported before.
  const onLost = (): void => void house.close({ mode: "park", limitMs: SHUTDOWN_MS }).catch(() => {});
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

/** Not to be found first: whoever comes now waits for the lock, and takes up what is set down here. */
export async function leave(hosted: Hosted, end: HostEnd, log: HostOptions["log"]): Promise<readonly SessionId[]> {
  const { house, announcement } = hosted;
  announcement.hide();
  try {
    const unfinished = await house.close(end);
    if (unfinished.length > 0)
      log.warn("some had not come to rest in time; the next one recovers them", { unfinished });
    return unfinished;
  } catch (error) {
    log.error("the store was not closed in order", { error });
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

/** For messages. A note may be of a newer version, with a kind that is not known here. */
export const hostName = (kind: HostKind): string => NAMES[kind] ?? "a program of Belay";
