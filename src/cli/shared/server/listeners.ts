// Opens the listeners of a server: always its private socket, and a TCP port unless that is disabled.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ServerConfig } from "../../../config/config.ts";
import { ControlError } from "../../../core/errors.ts";
import type { Served } from "../../../http/auth/host.ts";
import { type Listener, type ListenOptions, listen, type TcpPlace } from "../../../http/transport/listener.ts";
import type { Handle } from "../../../http/transport/node-server.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { proxyOf } from "../../commands/serve/serve-options.ts";

/** The default port. If it is taken and was not requested explicitly, any free port is used. */
export const DEFAULT_PORT = 23_529;

export interface ListenersOptions {
  readonly home: DataDir;
  readonly server: ServerConfig;
  readonly tcp: boolean;
  readonly onTrouble: (thrown: unknown, requestId: string) => void;
}

export interface Listeners {
  readonly socket: string;
  /** Undefined: there is no port. */
  readonly served: Served | undefined;
  /** The URL for clients on this machine. */
  readonly url: string | undefined;
  /** The default port, if another program had it. */
  readonly instead: number | undefined;
  reload(): void;
  /** Whether the socket's file still exists. */
  isInPlace(): boolean;
  /** Opens the socket again at its path. Connections to the socket whose file was removed stay open. */
  restore(): Promise<void>;
  close(limitMs: number): Promise<void>;
  /** Removes the socket file synchronously, for a forced exit. */
  forget(): void;
}

/** Opens both listeners or none: if the second fails, the first is closed. */
export async function openListeners(handle: Handle, options: ListenersOptions): Promise<Listeners> {
  const { socket: asked } = options.server;
  const own = asked === undefined && options.home.socketFile === undefined;
  const path = asked ?? options.home.socketFile ?? join(mkdtempSync(join(tmpdir(), "belay-")), "belay.sock");
  const tidy = (): void => {
    if (own) rmSync(dirname(path), { recursive: true, force: true });
  };
  const { connections } = options.server.crowd ?? {};
  const limits = connections === undefined ? {} : { connectionsMax: connections };
  const common = { clock: systemClock, onTrouble: options.onTrouble, limits };
  const openSocket = (): Promise<Listener> =>
    listen(handle, { ...common, place: { kind: "socket", path } }).catch((error: unknown) => {
      throw error instanceof ControlError && error.code === "conflict" ? inUse(error) : error;
    });
  const sockets = [await openSocket()];
  try {
    const { listener, instead } = options.tcp ? await openTcp(handle, options.server, common) : NONE;
    const all = (): readonly Listener[] => (listener === undefined ? sockets : [...sockets, listener]);
    return {
      socket: path,
      ...servedAt(listener?.address),
      instead,
      reload: () => {
        for (const one of all()) one.reload();
      },
      isInPlace: () => sockets.some((one) => one.isInPlace()),
      restore: async () => void sockets.push(await openSocket()),
      close: async (limitMs) => {
        await Promise.all(all().map((one) => one.close({ limitMs })));
        tidy();
      },
      forget: () => {
        for (const socket of sockets) socket.hide();
        tidy();
      },
    };
  } catch (error) {
    await Promise.all(sockets.map((one) => one.close({ limitMs: 0 })));
    tidy();
    throw error;
  }
}

/** If the socket answers, the whole data directory is in use. */
const inUse = (error: ControlError): ControlError =>
  new ControlError("store_locked", error.message, { hint: "Use that server, or give this one its own home." });

/** The URL of a server that listens on every address says `localhost`, since no client can connect to 0.0.0.0. */
function servedAt(address: Listener["address"] | undefined): Pick<Listeners, "served" | "url"> {
  if (address?.kind !== "tcp") return { served: undefined, url: undefined };
  const { served, url } = address;
  return { served, url: url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=:|$)/, "$1localhost") };
}

const NONE = { listener: undefined, instead: undefined } as const;

async function openTcp(
  handle: Handle,
  server: ServerConfig,
  common: Omit<ListenOptions, "place">,
): Promise<{ readonly listener: Listener; readonly instead: number | undefined }> {
  const { host, port, tls } = server;
  const place: TcpPlace = {
    ...{ kind: "tcp", host, trustedProxy: proxyOf(server) },
    ...(tls === undefined ? {} : { tls: { certFile: tls.cert, keyFile: tls.key } }),
  };
  const open = (at: number): Promise<Listener> => listen(handle, { ...common, place: { ...place, port: at } });
  try {
    return { listener: await open(port ?? DEFAULT_PORT), instead: undefined };
  } catch (error) {
    if (!(error instanceof ControlError) || error.code !== "conflict") throw error;
    if (port !== undefined) throw taken(error);
    return { listener: await open(0), instead: DEFAULT_PORT };
  }
}

/** `unavailable`, as for any address that cannot be listened on: `conflict` is for requests on a session. */
const taken = (error: ControlError): ControlError =>
  new ControlError("unavailable", error.message, {
    hint: "End that program, or choose another port: --port 0 takes any that is free, --no-tcp opens none.",
    cause: error,
  });
