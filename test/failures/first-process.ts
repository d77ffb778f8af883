// Run as the first process of a namespace, by first-process.test.ts: starts a tree whose members nobody reaps, stops
// it, and says who is left by its own account and by that of the kernel.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";

const dir = mkdtempSync(join(tmpdir(), "belay-first-"));
const spawner = await openSpawner({ dir, workspace: dir, clock: systemClock, mechanism: "group" });
const orphans = "for n in 1 2 3; do setsid sh -c '(sleep 600 &)'; done; echo up; sleep 600";
const child = await spawner.spawn({ id: "proc_first.1", sessionId: "ses_first", command: orphans });
for await (const page of child.output.follow()) if (page.text.includes("up")) break;
child.stop(0);
const { escaped } = await child.ended;
const states = readdirSync("/proc")
  .filter((name) => /^\d+$/.test(name))
  .flatMap((name) => {
    const stat = readFileSync(`/proc/${name}/stat`, "utf8");
    return stat.includes("(sleep)") ? [stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3)] : [];
  });
await spawner.close();
rmSync(dir, { recursive: true, force: true });
console.log(JSON.stringify({ pid: process.pid, escaped, states }));
