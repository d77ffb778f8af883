// The polite signal: to a group, by its leader, or to what sits at a terminal.
import { childrenOf, type Identity, identityOf } from "./proc.ts";
import { type SignalPort, send, sendGroup } from "./signal.ts";

/** A stopped process cannot answer until it goes on, so each is told to, after it was asked. */
export function askGroup(leader: Identity, means?: SignalPort): void {
  sendGroup(leader, "SIGTERM", means);
  sendGroup(leader, "SIGCONT", means);
}

/**
 * The program that makes a terminal is not what is to end: it would take the terminal away before the command could
 * say a last word. Its child leads a session of its own on that terminal.
 */
export function askTerminal(maker: Identity): void {
  const inside = childrenOf(maker.pid).flatMap((pid) => identityOf(pid) ?? []);
  for (const one of inside) askGroup(one);
  if (inside.length === 0) {
    send(maker, "SIGTERM");
    send(maker, "SIGCONT");
  }
}
