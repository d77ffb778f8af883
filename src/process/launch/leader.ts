// The leader of a tree, as a containment may use it: what it can be told, and what became of it.
import type { Leader } from "../containment/containment.ts";
import type { Identity } from "../tree/proc.ts";
import type { Started } from "./start.ts";

export function toLeader(started: Pick<Started, "child" | "liveness" | "control">, identity: Identity): Leader {
  const { child, liveness, control } = started;
  return {
    identity,
    kill: (signal: NodeJS.Signals): void => {
      child.kill(signal);
    },
    get exit() {
      const { exitCode: code, signalCode: signal } = child;
      return code === null && signal === null ? undefined : { code, signal };
    },
    get released(): boolean {
      return liveness.readableEnded || liveness.closed;
    },
    tell: (text: string): void => {
      control.write(text);
    },
  };
}
