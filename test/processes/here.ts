// The ways to hold a tree together that this machine has. The others are named by `test/prepare-machine.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/engine/system-clock.ts";
import { lookAtMachine } from "../../src/process/machine.ts";
import { MECHANISMS, makeContainment } from "../../src/process/mechanisms.ts";
import type { Mechanism } from "../../src/spawner.ts";

export function here(): readonly Mechanism[] {
  const dir = mkdtempSync(join(tmpdir(), "belay-here-"));
  const around = { machine: lookAtMachine(), stateDir: dir, workspace: dir, clock: systemClock };
  const found = MECHANISMS.filter((mechanism) => {
    const containment = makeContainment(mechanism, around);
    containment?.close?.();
    return containment !== undefined;
  });
  rmSync(dir, { recursive: true, force: true });
  return found;
}
