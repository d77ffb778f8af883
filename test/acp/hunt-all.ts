// node test/acp/hunt-all.ts: lets the probe loose on every known mistake of the door, and says what gave each away.
import { availableParallelism } from "node:os";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";

const left = [...MISTAKES];
const missed: string[] = [];

async function hunter(): Promise<void> {
  for (let mistake = left.shift(); mistake !== undefined; mistake = left.shift()) {
    const by = await hunt(mistake.edits);
    console.error(`${mistake.name}: ${by?.slice(0, 100) ?? "missed"}`);
    if (by === undefined) missed.push(mistake.name);
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, hunter));
const passed = MISTAKES.length - missed.length;
console.log(JSON.stringify({ suite: "acp mistakes", passed, failed: missed.length, missed }));
if (missed.length > 0) process.exitCode = 1;
