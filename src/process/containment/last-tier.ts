// The mechanism of the last start, kept in the state directory so that a change can be reported. It decides nothing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mechanism } from "../../ports/spawner.ts";
import { MECHANISMS, TIER_OF } from "./mechanisms.ts";

const FILE = "last-mechanism";

/** Writes down what holds processes now. Returns a sentence for the operator if it was another mechanism before. */
export function noteMechanism(dir: string, now: Mechanism): string | undefined {
  const before = lastMechanism(dir);
  try {
    if (before !== now) writeFileSync(join(dir, FILE), `${now}\n`, { mode: 0o600 });
  } catch {
    // A full disk reports itself elsewhere; the change is reported again at the next start.
  }
  if (before === undefined || before === now) return undefined;
  return `Processes are held by ${nameOf(now)} from now on; at the last start it was ${nameOf(before)}.`;
}

const nameOf = (mechanism: Mechanism): string => `${mechanism} (tier ${TIER_OF[mechanism]})`;

function lastMechanism(dir: string): Mechanism | undefined {
  try {
    const text = readFileSync(join(dir, FILE), "utf8").trim();
    return MECHANISMS.find((one) => one === text);
  } catch {
    return undefined;
  }
}
