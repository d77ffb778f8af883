// A server that has inherited the root directory as a file descriptor, and whose command tries to use it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mechanism, Profile } from "../../src/ports/spawner.ts";
import { openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";

const [workspace = ".", mechanism, profile] = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), "belay-inherited-"));
const chosen = { mechanism: mechanism as Mechanism, profile: profile as Profile };
const spawner = await openSpawner({ dir, workspace, clock: systemClock, ...chosen });
const child = await spawner.spawn({
  ...{ id: "proc_inherited.1", sessionId: "ses_inherited" },
  command: "echo asked; cd /proc/self/fd/20/etc && echo found it",
});
await child.ended;
process.stdout.write(child.output.excerpt().head);
await spawner.close();
rmSync(dir, { recursive: true, force: true });
