// Sends SIGTERM to a process group, or to the processes on a terminal.
import { childrenOf, type Identity, identityOf } from "./proc.ts";
import { type SignalPort, send, sendGroup } from "./signal.ts";

/** SIGCONT follows SIGTERM because a stopped process handles SIGTERM only once it continues. */
export function sigtermGroup(leader: Identity, means?: SignalPort): void {
  sendGroup(leader, "SIGTERM", means);
  sendGroup(leader, "SIGCONT", means);
}

/**
 * The program that makes the terminal is not signalled: its end would remove the terminal before the command could
 * write its last output. Its child leads a session on that terminal and receives the signal instead.
 */
export function sigtermTerminal(maker: Identity): void {
  const inside = childrenOf(maker.pid).flatMap((pid) => identityOf(pid) ?? []);
  for (const one of inside) sigtermGroup(one);
  if (inside.length === 0) {
    send(maker, "SIGTERM");
    send(maker, "SIGCONT");
  }
}
